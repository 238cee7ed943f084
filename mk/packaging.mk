# Packages, releases and the tests of these.

# for which systems make packages makes archives of the plugin
SYSTEMS  ?= linux darwin windows

RELEASED     = KUBELET_SUPERVISOR_TEST_RELEASES="$(CURDIR)/bin/releases"

.PHONY: packages
packages: ## deb, rpm, image, plugin's archives, alerts and SBOMs into dist/
	VERSION="$(VERSION)" SYSTEMS="$(SYSTEMS)" packaging/build.sh dist

.PHONY: test-packages
test-packages: SYSTEMS = linux
test-packages: packages ## the packages, checked by lintian and rpmlint
	@test/parts/debian.sh lintian rpmlint rpm fakeroot attr
	packaging/lint.sh dist
	go test -C packaging/image ./...
	folder="$$(test/parts/prometheus.sh)"; KUBELET_SUPERVISOR_TEST_PROMETHEUS="$$folder" go test -C packaging/mixin ./...

.PHONY: test-reproducible
test-reproducible: packages ##+ the packages, built once more elsewhere with the same bytes
	VERSION="$(VERSION)" packaging/reproducible.sh dist

.PHONY: release
release: ## all that is published of a tag: make release VERSION=v0.1.0 MINISIGN_KEY=… OPENPGP_KEY=…
	VERSION="$(VERSION)" packaging/release.sh "dist/release-$(VERSION)"

.PHONY: test-release
test-release: root parts-node ## two releases of tags in a clone, verified, installed and used (root; half an hour)
	@test/parts/debian.sh apt-utils createrepo-c gpg gpg-agent jq minisign mmdebstrap skopeo squashfs-tools
	test/release/releases.sh bin/releases v0.1.0 v0.2.0
	$(RELEASED) go test -C packaging/image -tags release -count 1 -v -run '^TestPushed' . 2>&1 | test/report.sh
	$(RELEASED) $(REAL) go test -tags e2e,release -count 1 -v -timeout 20m -run '^TestAStrangersCluster$$' ./test/fleet 2>&1 | test/report.sh
	folder="$$(test/parts/prometheus.sh)"; $(RELEASED) KUBELET_SUPERVISOR_TEST_PROMETHEUS="$$folder" go test -tags release -count 1 -v -timeout 60m $(TEST) ./test/release 2>&1 | test/report.sh
	KUBELET_SUPERVISOR_TEST_SHARED="$(CURDIR)/bin/releases" KUBELET_SUPERVISOR_TEST_ROOTS="$$(test/parts/root.sh bookworm $(MACHINE_DEBIAN) dnf gpg)" \
	  go test -tags systemd,release -count 1 -v -timeout 30m -run '^TestFromARelease' ./test/systemd 2>&1 | test/report.sh

.PHONY: scan
scan: ##+ govulncheck on what is released; where its database is out of reach it fails, and says NOT SCANNED
	test/scan/scan.sh . packaging/image packaging/mixin
