# make            lists the targets
# Real parts (etcd, kube-apiserver, kubelet, containerd) are built once into a cache outside the tree: see test/parts/build.sh,
# also for KUBELET_SUPERVISOR_PARTS=/FOLDER with prebuilt ones.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.NOTPARALLEL:

VERSION  ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
VERSION  := $(VERSION)# asked once: somebody may commit meanwhile
FUZZTIME ?= 10s
# how many random lives make test-lives has, and how many random schedules of a fleet
LIVES    ?= 5000
# on how many made-up nodes the forecast is held against the kubelet's own admission
DIFFERENTIAL ?= 1500
SCHEDULES ?= 20000
# how long make soak takes, and which sequence of steps (0: a random one)
SOAK     ?= 5m
SEED     ?= 0
# 1: a Prometheus reads all programs of make soak-pools, and the dashboard is drawn of it
WATCH    ?=
# flags of test/mutate, such as -files=trial.go, or -share=0.1 -seed=7
MUTATE   ?=
# whose code make mutate changes: names of packages, or all that test/mutate/targets.go knows
PACKAGES ?= decide
# go test flags for one run, such as -run=TestX
TEST     ?=
# empty for every systemd in every test of make test-systemd
SHORT    ?= -short
# with how many nodes make bench-scale measures
NODES    ?= 1 100 500 1000
# beside how many nodes make bench-pools measures the controller of pools
POOLS    ?= 100 1000 5000
# over how many nodes make bench-fleet rolls out, and how many of them have a real supervisor
FLEET    ?= 1000
MACHINES ?= 200
# what a reader of its figures has to know of the run
FLEET_NOTE ?=
# beside which commit make bench-storm measures this one, and with how many nodes
BEFORE   ?= de8319d
STORM    ?= $(lastword $(NODES))
# how many power cuts make test-machine makes, on machines with a fake kubelet, and on whole nodes
CUTS      ?= 10
NODE_CUTS ?= 2
# for which systems make packages makes archives of the plugin
SYSTEMS  ?= linux darwin windows
# part of make conformance: CARRIER/GROUP/FIRST_STATE, each may be empty
CASES    ?=

PARTS        = $(shell test/parts/build.sh --folder)
LINTER       = golangci-lint-2.15.0
LINTER_PATH  = $(shell KUBELET_SUPERVISOR_PARTS= test/parts/build.sh --folder)/$(LINTER)
NODE_PARTS  := etcd containerd containerd-shim-runc-v2 ctr pause.tar kube-apiserver-1.36.3 kubelet-1.36.3 kubectl-1.36.3
NODE_DEBIAN := runc containernetworking-plugins iproute2 mount e2fsprogs util-linux
MACHINE_DEBIAN := systemd systemd-sysv dbus rpm mount
RELEASED     = KUBELET_SUPERVISOR_TEST_RELEASES="$(CURDIR)/bin/releases"
REAL         = KUBELET_SUPERVISOR_PARTS="$(PARTS)" KUBELET_SUPERVISOR_TEST_KUBELET="$(PARTS)/kubelet-1.36.3"

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## static binaries into bin/
	packaging/compile.sh "$(VERSION)" "$(CURDIR)/bin" kubelet-supervisor kubectl-kubelet kubelet-supervisor-controller

.PHONY: demo
demo: root demo-program ## the whole story on this machine: a real node, then a pool of three (root; two minutes; first time: about 10 min of building)
	@$(REAL) bin/demo

.PHONY: demo-program
demo-program: parts-node build
	CGO_ENABLED=0 go build -o bin/ ./test/demo ./test/fakekubelet

# what make test is, what takes too long for it, and what a machine of make test-fresh cannot do
TESTS     := vet lint parts test-unit test-differential test-packages test-systemd test-e2e
LONG      := fuzz test-lives test-hostile test-differential-long test-pure test-crash-points test-reproducible test-release bench-check test-demo test-e2e-long test-kubeadm
NOT_FRESH := test-systemd
TARGETS   ?= $(filter-out $(NOT_FRESH),$(TESTS))

.PHONY: test
test: root vet lint parts build ## vet, lint, unit tests, packages, systemd, end-to-end tests on real parts (root; the first time 20 min of building before that)
	@test/side-by-side.sh bin/test unit "$(MAKE) test-unit" packages "$(MAKE) test-differential && $(MAKE) test-packages"
	@test/side-by-side.sh bin/test systemd "$(MAKE) test-systemd" e2e "$(MAKE) test-e2e"

.PHONY: test-long
test-long: root $(LONG) ## what make test has no time for: fuzzing, random lives, packages built twice, every systemd for every test of it, Leases and trials that take minutes, the benchmarks' round, the demo, a kubeadm cluster (root)
	$(MAKE) test-systemd SHORT=

.PHONY: test-fresh
test-fresh: root ## make test as on a machine that was just installed and booted: a minimal Debian with Go, git and make, empty caches (root; everything is built anew); TARGETS="lint test-unit" for a part
	@test/parts/debian.sh mmdebstrap util-linux
	@echo "NOT RUN ON A FRESH MACHINE: $(or $(strip $(filter-out $(TARGETS),$(TESTS))),nothing). $(NOT_FRESH) needs a systemd of its own."
	@test/fresh/run.sh $(TARGETS)

# The other processors of Kubernetes' nodes, and one of 32 bits more. Packages are made for amd64 and arm64 alone; for these the node's program is to build.
PROCESSORS := ppc64le s390x arm 386

.PHONY: vet
vet: ## go vet, the end-to-end tests and the conformance suite included; the plugin for other systems, the node's program for other processors
	go vet ./...
	go vet -tags e2e,long,conformance,systemd,machine,release,kubeadm ./...
	go vet -C packaging/image ./...
	go vet -C packaging/mixin ./...
	cd test/differential/kubelet && go vet -modfile=../../parts/kubernetes/go.mod .
	for system in darwin windows; do GOOS=$$system go vet ./plugin/... ./cmd/kubectl-kubelet || exit; done
	ours="$$(go list -deps ./cmd/kubelet-supervisor | grep "^$$(go list -m)/")"; \
	for processor in $(PROCESSORS); do GOARCH=$$processor go vet $$ours || exit; done

.PHONY: lint
lint: ## golangci-lint and shellcheck
	@test/parts/debian.sh shellcheck
	@KUBELET_SUPERVISOR_PARTS= test/parts/build.sh $(LINTER)
	$(LINTER_PATH) run --build-tags e2e,long,conformance,systemd,machine,release,kubeadm
	git ls-files -z '*.sh' ':!*/testdata/*' .ci/run | xargs -0 shellcheck

.PHONY: manifests
manifests: ## the deep copies and packaging/manifests/controller/crd.yaml from the types in fleet/api
	UPDATE=1 go test -count=1 -run '^TestGeneratedFilesAreUpToDate$$' ./fleet/api/v1alpha1

# A test of each sees to it that its code starts no goroutine and keeps nothing, so the race detector, which takes them five times as long, is
# for make test-long.
PURE := ./decide ./fleet/rollout

.PHONY: test-unit
test-unit: ## unit tests with the race detector (but for pure packages); where the real kubelet and kubectl are built, pre-flight and the plugin's names are held against them
	@test/parts/debian.sh gcc libc6-dev dbus-daemon
	CGO_ENABLED=1 KUBELET_SUPERVISOR_PARTS="$(PARTS)" KUBELET_SUPERVISOR_TEST_KUBELET="$$(ls "$(PARTS)/kubelet-1.36.3" 2>/dev/null || :)" \
	  test/again/again.sh go test -race -timeout 20m $(TEST) $$(go list ./... | grep -vxF "$$(go list $(PURE))")
	go test -timeout 20m $(TEST) $(PURE) 2>&1 | test/report.sh

.PHONY: test-hostile
test-hostile: ## every command of the plugin against everything that a hostile node, kubelet or writer may answer
	go test -tags long -timeout 60m -run Hostile ./plugin 2>&1 | test/report.sh

.PHONY: test-pure
test-pure: ## the pure packages with the race detector
	CGO_ENABLED=1 go test -race -timeout 20m $(PURE) 2>&1 | test/report.sh

.PHONY: test-e2e
test-e2e: root parts build ## end-to-end tests on real parts, in two halves side by side, each with a cluster of its own (root); TEST=-run=TestX for one
	@test/parts/debian.sh jq
	$(REAL) KUBELET_SUPERVISOR_TEST_BINARY="$(CURDIR)/bin/kubelet-supervisor" KUBELET_SUPERVISOR_TEST_PLUGIN="$(CURDIR)/bin/kubectl-kubelet" \
	  KUBELET_SUPERVISOR_TEST_CONTROLLER="$(CURDIR)/bin/kubelet-supervisor-controller" test/e2e/run.sh $(TEST)

.PHONY: test-e2e-long
test-e2e-long: root parts-node build ## end-to-end tests that take a minute or more, most on a cluster of their own, side by side (root; 20 minutes)
	@test/parts/kubelets/build.sh kube-apiserver 1.30
	$(REAL) KUBELET_SUPERVISOR_TEST_BINARY="$(CURDIR)/bin/kubelet-supervisor" \
	  KUBELET_SUPERVISOR_TEST_CONTROLLER="$(CURDIR)/bin/kubelet-supervisor-controller" \
	  test/again/again.sh go test -tags e2e,long -p 1 -count 1 -v -timeout 30m -parallel 8 -run '^Test(Slow|Long)' $(TEST) ./test/e2e ./test/fleet

.PHONY: conformance
conformance: root parts build ## upstream's own end-to-end table, on annotation and field (root; 10 to 20 min); CASES=field/T6 or CASES=/T6 for a part
	go test -c -tags e2e,conformance -o bin/conformance.test ./test/e2e
	cd test/e2e && $(REAL) KUBELET_SUPERVISOR_TEST_BINARY="$(CURDIR)/bin/kubelet-supervisor" \
	  KUBELET_SUPERVISOR_CONFORMANCE_TABLE="$(CURDIR)/bin/conformance.txt" \
	  "$(CURDIR)/bin/conformance.test" -test.run '^TestConformance$$/$(CASES)' -test.timeout 60m

.PHONY: packages
packages: ## deb and rpm of supervisor, controller and plugin for amd64 and arm64 into dist/, the controller's image, the plugin's Krew manifest and archives, alerts and dashboard, SBOMs, checksums
	VERSION="$(VERSION)" SYSTEMS="$(SYSTEMS)" packaging/build.sh dist

AGAINST = DIFFERENTIAL=$(DIFFERENTIAL) SEED=$(SEED) KUBELET_SUPERVISOR_TEST_ADMISSION="$(CURDIR)/bin/differential/admission-$(1)" \
	  go test -count=1 -v -timeout 3h ./test/differential 2>&1 | test/report.sh

.PHONY: test-differential
test-differential: ## the forecast, held against the kubelet's own admission code on DIFFERENTIAL (1500) nodes that chance makes up; SEED=7 for one of them (first time: 5 min of building)
	test/differential/build.sh bin/differential
	$(call AGAINST,1.36.3)

.PHONY: record-forecast
record-forecast: ## asks the kubelet's admission code anew about the nodes in forecast/testdata, with which the forecast's own tests are run; SEEDS=1-100,250 for others
	test/differential/build.sh bin/differential
	RECORD="$(CURDIR)/forecast/testdata/kubelet.jsonl.gz" SEEDS="$(SEEDS)" KUBELET_SUPERVISOR_TEST_ADMISSION="$(CURDIR)/bin/differential/admission-1.36.3" \
	  go test -count=1 -v -run '^TestRecord$$' ./test/differential

.PHONY: test-differential-long
test-differential-long: DIFFERENTIAL = 100000
test-differential-long: test-differential ## make test-differential on 100,000 nodes, and against two kubelets before the newest (first time: 20 min of building)
	test/differential/build.sh bin/differential 1.35 1.34
	$(call AGAINST,1.35.4)
	$(call AGAINST,1.34.4)

.PHONY: test-packages
test-packages: SYSTEMS = linux
test-packages: packages ## the packages, checked by lintian and rpmlint, the image, the plugin from its archive, alerts and dashboard
	@test/parts/debian.sh lintian rpmlint rpm fakeroot attr
	packaging/lint.sh dist
	go test -C packaging/image ./...
	folder="$$(test/parts/prometheus.sh)"; KUBELET_SUPERVISOR_TEST_PROMETHEUS="$$folder" go test -C packaging/mixin ./...

.PHONY: release
release: ## all that is published of a tag, into dist/release-VERSION: make release VERSION=v0.1.0 MINISIGN_KEY=… OPENPGP_KEY=…
	VERSION="$(VERSION)" packaging/release.sh "dist/release-$(VERSION)"

.PHONY: scan
scan: ## govulncheck on what is released and what packs it, where the database of vulnerabilities can be had; elsewhere it fails and says NOT SCANNED
	test/scan/scan.sh . packaging/image packaging/mixin

.PHONY: test-release
test-release: root parts-node ## two releases of tags in a clone: one made twice, verified and used in a real cluster, both installed from by apt and dnf on throw-away machines, to and fro (root; half an hour)
	@test/parts/debian.sh apt-utils createrepo-c gpg gpg-agent jq minisign mmdebstrap skopeo squashfs-tools
	test/release/releases.sh bin/releases v0.1.0 v0.2.0
	$(RELEASED) go test -C packaging/image -tags release -count 1 -v -run '^TestPushed' . 2>&1 | test/report.sh
	$(RELEASED) $(REAL) go test -tags e2e,release -count 1 -v -timeout 20m -run '^TestAStrangersCluster$$' ./test/fleet 2>&1 | test/report.sh
	folder="$$(test/parts/prometheus.sh)"; $(RELEASED) KUBELET_SUPERVISOR_TEST_PROMETHEUS="$$folder" go test -tags release -count 1 -v -timeout 60m $(TEST) ./test/release 2>&1 | test/report.sh
	KUBELET_SUPERVISOR_TEST_SHARED="$(CURDIR)/bin/releases" KUBELET_SUPERVISOR_TEST_ROOTS="$$(test/parts/root.sh bookworm $(MACHINE_DEBIAN) dnf gpg)" \
	  go test -tags systemd,release -count 1 -v -timeout 30m -run '^TestFromARelease' ./test/systemd 2>&1 | test/report.sh

.PHONY: test-reproducible
test-reproducible: packages ## the packages, built once more elsewhere with the same bytes
	VERSION="$(VERSION)" packaging/reproducible.sh dist

.PHONY: test-systemd
test-systemd: root ## the packages on throw-away machines with a real systemd, each test on 252 or 257, with SHORT= on both (root; first time: two minutes more)
	@test/parts/debian.sh mmdebstrap iproute2 util-linux
	@test/parts/build.sh kubelet-1.36.3 containerd
	test/systemd/shared.sh bin/systemd "$(PARTS)"
	KUBELET_SUPERVISOR_TEST_SHARED="$(CURDIR)/bin/systemd" KUBELET_SUPERVISOR_TEST_ROOTS="$$(test/parts/root.sh bookworm $(MACHINE_DEBIAN)) $$(test/parts/root.sh trixie $(MACHINE_DEBIAN))" \
	  test/again/again.sh go test -tags systemd -count 1 -v -timeout 30m $(SHORT) $(TEST) ./test/systemd

.PHONY: test-machine
test-machine: root parts-node ## virtual machines with pure cgroup v2, systemd and the real kubelet: reboots, sleep, clock, power cuts, kubeadm init, join, upgrade and reset, a kubelet upgraded by apt, SELinux enforcing (root; slow, for the processor is emulated; first time 10 to 15 min more); CUTS=200 for many
	@test/parts/debian.sh qemu-system-x86 mmdebstrap e2fsprogs cpio kmod apt-utils
	@test/parts/kubelets/build.sh 1.35
	@test/parts/more/kubeadm/build.sh
	kernel="$$(test/machine/kernel.sh)"; root="$$(test/machine/root.sh "$$kernel" "$(PARTS)")"; \
	test/machine/shared.sh bin/machine "$$kernel"; test/machine/images.sh "$(PARTS)" bin/machine/images.img; test/machine/packages.sh "$(PARTS)" bin/machine/packages.img; \
	selinux="$$(test/machine/root.sh "$$kernel" "$(PARTS)" kubelet)"; reference="$$(test/machine/root.sh "$$kernel" "$(PARTS)" debian)"; \
	$(REAL) KUBELET_SUPERVISOR_TEST_KERNEL="$$kernel" KUBELET_SUPERVISOR_TEST_ROOT="$$root" KUBELET_SUPERVISOR_TEST_ROOT_SELINUX="$$selinux" \
	  KUBELET_SUPERVISOR_TEST_ROOT_REFERENCE="$$reference" KUBELET_SUPERVISOR_TEST_SHARED="$(CURDIR)/bin/machine" \
	  CUTS=$(CUTS) NODE_CUTS=$(NODE_CUTS) go test -tags machine -count 1 -v -timeout 5h $(TEST) ./test/machine 2>&1 | test/report.sh

.PHONY: test-kubeadm
test-kubeadm: root parts-node ## kubeadm init, join, upgrade and reset of a control plane and a worker, on throw-away machines with a real systemd, kubelet and containerd (root; 10 min; first time 10 min more)
	@test/parts/debian.sh mmdebstrap iproute2 util-linux
	@test/parts/kubelets/build.sh 1.35
	@test/parts/more/kubeadm/build.sh
	test/systemd/kubeadm.sh bin/kubeadm "$(PARTS)"
	KUBELET_SUPERVISOR_TEST_SHARED="$(CURDIR)/bin/kubeadm" KUBELET_SUPERVISOR_TEST_ROOTS="$$(test/parts/root.sh bookworm systemd systemd-sysv dbus mount runc containernetworking-plugins iproute2 procps)" \
	  go test -tags systemd,kubeadm -count 1 -v -timeout 2h -run '^TestKubeadm' $(TEST) ./test/systemd 2>&1 | test/report.sh

.PHONY: fuzz
fuzz: ## every fuzz target for FUZZTIME (10s), after the corpora in testdata/fuzz
	@git grep -l '^func Fuzz' -- '*_test.go' | while read -r file; do \
	  sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' "$$file" | while read -r target; do \
	    echo "$$target in $$(dirname "$$file")"; \
	    go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 100x "./$$(dirname "$$file")" </dev/null; \
	  done; \
	done

.PHONY: test-lives
test-lives: ## LIVES (5000) random lives of the core and SCHEDULES (20000) of the core of rollouts, instead of make test's few
	LIVES=$(LIVES) go test -count=1 -run '^(TestRandomLives|TestTheWallClockDecidesNothing)$$' ./decide
	SCHEDULES=$(SCHEDULES) go test -count=1 -timeout 30m -v -run '^TestRandomSchedules$$' ./fleet/rollout | test/report.sh

.PHONY: test-crash-points
test-crash-points: ## kill -9 at every point of every change, instead of make test's every other one
	EVERY_POINT=1 go test -count=1 -run '^TestCrashAtEveryPoint$$' ./supervisor/cli

comma := ,
space := $(subst ,, )

.PHONY: mutate
mutate: ## whether the tests of packages notice when their code is changed in one place; PACKAGES="sync store", or all; MUTATE="-files=trial.go", MUTATE="-share=0.1 -seed=7" for a part
	go build -o bin/mutate ./test/mutate
	bin/mutate -package=$(subst $(space),$(comma),$(strip $(PACKAGES))) $(MUTATE)

.PHONY: soak
soak: root parts-node build ## kill supervisor, kubelet and cluster at random, and check the rules (root); SOAK=8h, SEED=7 for one sequence, CLOCK=1 to jump this machine's clock, too
	go build -o bin/soak ./test/soak
	@$(REAL) bin/soak -time=$(SOAK) -seed=$(SEED) -clock=$(if $(CLOCK),true,false) -commit="$(VERSION)" -json="bin/soak-$(VERSION).json"

.PHONY: soak-page
soak-page: ## docs/evidence/soak.md from all that make soak has measured of this version
	go build -o bin/soak ./test/soak
	@mkdir -p docs/evidence
	bin/soak -page=docs/evidence/soak.md "bin/soak-$(VERSION).json"

.PHONY: soak-pools
soak-pools: root parts-node build $(if $(WATCH),watch-parts) ## everything together: a pool of 41 nodes, one with the real kubelet, whose people and programs do what they like, held against the rules by the API server's audit log (root); SOAK=1h, SEED=7; WATCH=1 for docs/evidence/dashboard-soak.md
	CGO_ENABLED=0 go build -o bin/ ./test/soakpools ./test/fakekubelet
	@folder="$(if $(WATCH),$$(test/parts/prometheus.sh node-exporter))"; \
	$(REAL) bin/soakpools -time=$(SOAK) -seed=$(SEED) -commit="$(VERSION)" -json="bin/soak-pools-$(VERSION).json" \
	  $(if $(WATCH),-mixin=bin/rendered -prometheus="$$folder" -dashboard=docs/evidence/dashboard-soak.md)

.PHONY: soak-pools-page
soak-pools-page: root ## docs/evidence/soak-pools.md from all that make soak-pools has seen of this version, with series and picture
	@test/parts/debian.sh gnuplot-nox fonts-dejavu-core
	go build -o bin/ ./test/soakpools
	bin/soakpools -page=docs/evidence/soak-pools.md "bin/soak-pools-$(VERSION).json"

.PHONY: bench-program
bench-program: root parts-node build
	CGO_ENABLED=0 go build -o bin/ ./test/bench ./test/fakekubelet ./test/scale/scalehost

.PHONY: bench
bench: bench-program ## measure everything beside its reference, into docs/evidence/benchmarks.md and bin/bench.json (root; 7 min on a machine that is idle)
	@$(REAL) bin/bench run -commit="$(VERSION)" -json=bin/bench.json
	bin/bench page -document=docs/evidence/benchmarks.md bin/bench.json bin/bench-upstream.json

.PHONY: bench-upstream
bench-upstream: bench-program ## the removed feature itself, kubelet 1.23, and ours beside it, for the same page: before make bench (root; 15 min; first time: 10 min of building)
	@test/parts/build.sh kube-apiserver-1.24.17
	@test/parts/kubelets/build.sh 1.23
	@$(REAL) bin/bench upstream -commit="$(VERSION)" -json=bin/bench-upstream.json
	[ ! -e bin/bench.json ] || bin/bench page -document=docs/evidence/benchmarks.md bin/bench.json bin/bench-upstream.json

.PHONY: matrix
matrix: bench-program ## what works with which kubelet, 1.23 to the newest, and with which API server, 1.24 to the newest, into docs/evidence/compatibility.md (root; 5 min; first time: 30 min of building)
	@test/parts/build.sh kube-apiserver-1.24.17
	@test/parts/kubelets/build.sh
	@test/parts/kubelets/build.sh kube-apiserver 1.30 1.33
	@$(REAL) bin/bench matrix -commit="$(VERSION)" -json=bin/matrix.json
	@$(REAL) bin/bench servers -commit="$(VERSION)" -json=bin/servers.json
	bin/bench page -document=docs/evidence/compatibility.md bin/matrix.json bin/servers.json

.PHONY: bench-storm
bench-storm: bench-program ## 1,000 nodes, one ConfigMap edited every 2 s, and a kube-apiserver's restart, beside commit BEFORE, into docs/evidence/storm.md (root; half an hour on a machine that is idle); STORM=100 for fewer nodes
	test/scale/before.sh $(BEFORE) bin/scalehost-before
	@$(REAL) bin/bench storm -nodes=$(STORM) -commit="$(BEFORE)" -host=bin/scalehost-before -json=bin/storm-before.json
	@$(REAL) bin/bench storm -nodes=$(STORM) -commit="$(VERSION)" -json=bin/storm.json
	bin/bench page -document=docs/evidence/storm.md bin/storm-before.json bin/storm.json

.PHONY: bench-scale
bench-scale: bench-program ## one node for longer, and 1 to 1,000 nodes on this machine, into docs/evidence/scale.md (root; an hour and a half on a machine that is idle); NODES="1 100" for others
	@$(REAL) bin/bench long -commit="$(VERSION)" -json=bin/bench-long.json
	@for nodes in $(NODES); do $(REAL) bin/bench nodes -commit="$(VERSION)" -nodes="$$nodes" -json="bin/scale-$$nodes.json"; done
	bin/bench page -document=docs/evidence/scale.md bin/bench-long.json $(NODES:%=bin/scale-%.json) bin/rollout.json

.PHONY: bench-pools
bench-pools: bench-program ## the controller of pools beside 100, 1,000 and 5,000 nodes, into docs/evidence/pools.md (root; a quarter of an hour); POOLS="100" for others
	@for nodes in $(POOLS); do $(REAL) bin/bench pools -commit="$(VERSION)" -nodes="$$nodes" -json="bin/pools-$$nodes.json"; done
	bin/bench page -document=docs/evidence/pools.md $(POOLS:%=bin/pools-%.json)

.PHONY: test-demo
test-demo: root demo-program ## make demo, which checks all that it shows; five minutes at most (root)
	$(REAL) timeout --kill-after=1m 5m bin/demo

.PHONY: bench-fleet
bench-fleet: bench-program ## a pool of 1,000 nodes rolled out, 200 of them real supervisors, with kube-apiserver killed in a wave, into its section of docs/evidence/scale.md (root; a quarter of an hour); FLEET=120 MACHINES=20 for fewer
	go test -c -o bin/rollout.test ./fleet/rollout
	@$(REAL) bin/bench rollout -commit="$(VERSION)" -nodes=$(FLEET) -machines=$(MACHINES) -json=bin/rollout.json
	bin/bench page -document=docs/evidence/scale.md -section="A pool, rolled out" -note="$(FLEET_NOTE)" bin/rollout.json

.PHONY: bench-check
bench-check: root parts-node build ## whether everything can be measured: one short round and a small fleet, whose figures mean nothing (root; five minutes)
	$(REAL) KUBELET_SUPERVISOR_TEST_BINARY="$(CURDIR)/bin/kubelet-supervisor" KUBELET_SUPERVISOR_TEST_CONTROLLER="$(CURDIR)/bin/kubelet-supervisor-controller" \
	  go test -tags e2e -p 1 -count 1 -v -timeout 10m ./test/bench ./test/scale/...

.PHONY: watch
watch: root parts-node build watch-parts ## the mixin, looked at: a real Prometheus reads supervisors and controllers through good and bad changes, and every panel is drawn, into docs/evidence/dashboard.md (root; 6 min)
	CGO_ENABLED=0 go build -o bin/ ./test/watch ./test/fakekubelet
	folder="$$(test/parts/prometheus.sh node-exporter)"; $(REAL) bin/watch -commit="$(VERSION)" -mixin=bin/rendered -prometheus="$$folder" -picture=docs/evidence/dashboard.png -page=docs/evidence/dashboard.md

.PHONY: watch-parts
watch-parts:
	@test/parts/debian.sh gnuplot-nox fonts-dejavu-core
	go build -C packaging/mixin -o "$(CURDIR)/bin/mixin" .
	bin/mixin --output bin/rendered

.PHONY: parts
parts: ## the real parts that the end-to-end tests need: about 10 min from nothing on two processors
	@test/parts/debian.sh $(NODE_DEBIAN)
	@test/parts/build.sh

.PHONY: parts-node
parts-node:
	@test/parts/debian.sh $(NODE_DEBIAN)
	@test/parts/build.sh $(NODE_PARTS)

.PHONY: root
root:
	@[ "$$(id -u)" = 0 ] || { echo "This needs root, for network namespaces, cgroups and mounts: run it as root." >&2; exit 1; }

.PHONY: clean
clean: ## remove bin/ and dist/ (the real parts stay in the cache: test/parts/build.sh --folder says where)
	rm -rf bin dist
