# What needs the real parts: the demo, end-to-end tests, and machines with systemd or a kernel of their own.

# empty for every systemd in every test of make test-systemd
SHORT    ?= -short
# how many power cuts make test-machine makes, on machines with a fake kubelet, and on whole nodes
CUTS      ?= 10
NODE_CUTS ?= 2
# part of make conformance: CARRIER/GROUP/FIRST_STATE, each may be empty
CASES    ?=

NODE_PARTS  := etcd containerd containerd-shim-runc-v2 ctr pause.tar kube-apiserver-1.36.3 kubelet-1.36.3 kubectl-1.36.3
NODE_DEBIAN := runc containernetworking-plugins iproute2 mount e2fsprogs util-linux
MACHINE_DEBIAN := systemd systemd-sysv dbus rpm mount

.PHONY: demo
demo: root demo-program ## the whole story on this machine: a real node, then a pool of three (root; 2 min; the first time 10 min more)
	@$(REAL) bin/demo

.PHONY: demo-program
demo-program: parts-node build
	CGO_ENABLED=0 go build -o bin/ ./test/demo ./test/fakekubelet

.PHONY: test-demo
test-demo: root demo-program ##+ make demo, which checks all that it shows (root; 5 min at most)
	$(REAL) timeout --kill-after=1m 5m bin/demo

.PHONY: test-e2e
test-e2e: root parts build ## end-to-end tests on real parts, on two clusters side by side (root); TEST=-run=TestX for one
	@test/parts/debian.sh jq
	$(REAL) KUBELET_SUPERVISOR_TEST_BINARY="$(CURDIR)/bin/kubelet-supervisor" KUBELET_SUPERVISOR_TEST_PLUGIN="$(CURDIR)/bin/kubectl-kubelet" \
	  KUBELET_SUPERVISOR_TEST_CONTROLLER="$(CURDIR)/bin/kubelet-supervisor-controller" test/e2e/run.sh $(TEST)

.PHONY: test-e2e-long
test-e2e-long: root parts-node build ##+ end-to-end tests that take a minute or more, on clusters of their own (root; 20 min)
	@test/parts/kubelets/build.sh kube-apiserver 1.30
	$(REAL) KUBELET_SUPERVISOR_TEST_BINARY="$(CURDIR)/bin/kubelet-supervisor" \
	  KUBELET_SUPERVISOR_TEST_CONTROLLER="$(CURDIR)/bin/kubelet-supervisor-controller" \
	  test/again/again.sh go test -tags e2e,long -p 1 -count 1 -v -timeout 30m -parallel 8 -run '^Test(Slow|Long)' $(TEST) ./test/e2e ./test/fleet

.PHONY: conformance
conformance: root parts build ## upstream's own end-to-end table (root; 10 to 20 min); CASES=field/T6 or CASES=/T6 for a part
	go test -c -tags e2e,conformance -o bin/conformance.test ./test/e2e
	cd test/e2e && $(REAL) KUBELET_SUPERVISOR_TEST_BINARY="$(CURDIR)/bin/kubelet-supervisor" \
	  KUBELET_SUPERVISOR_CONFORMANCE_TABLE="$(CURDIR)/bin/conformance.txt" \
	  "$(CURDIR)/bin/conformance.test" -test.run '^TestConformance$$/$(CASES)' -test.timeout 60m

.PHONY: test-systemd
test-systemd: root ## the packages on throw-away machines with systemd 252 or 257; SHORT= for every test on both (root)
	@test/parts/debian.sh mmdebstrap iproute2 util-linux
	@test/parts/build.sh kubelet-1.36.3 containerd
	test/systemd/shared.sh bin/systemd "$(PARTS)"
	KUBELET_SUPERVISOR_TEST_SHARED="$(CURDIR)/bin/systemd" KUBELET_SUPERVISOR_TEST_ROOTS="$$(test/parts/root.sh bookworm $(MACHINE_DEBIAN)) $$(test/parts/root.sh trixie $(MACHINE_DEBIAN))" \
	  test/again/again.sh go test -tags systemd -count 1 -v -timeout 30m $(SHORT) $(TEST) ./test/systemd

.PHONY: test-machine
test-machine: root parts-node ## virtual machines: reboots, sleep, clocks, power cuts, kubeadm, SELinux (root; slow); CUTS=200 for many cuts
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
test-kubeadm: root parts-node ## kubeadm init, join, upgrade and reset on throw-away machines (root; 10 min)
	@test/parts/debian.sh mmdebstrap iproute2 util-linux
	@test/parts/kubelets/build.sh 1.35
	@test/parts/more/kubeadm/build.sh
	test/systemd/kubeadm.sh bin/kubeadm "$(PARTS)"
	KUBELET_SUPERVISOR_TEST_SHARED="$(CURDIR)/bin/kubeadm" KUBELET_SUPERVISOR_TEST_ROOTS="$$(test/parts/root.sh bookworm systemd systemd-sysv dbus mount runc containernetworking-plugins iproute2 procps)" \
	  go test -tags systemd,kubeadm -count 1 -v -timeout 2h -run '^TestKubeadm' $(TEST) ./test/systemd 2>&1 | test/report.sh

.PHONY: parts
parts: ##+ the real parts that end-to-end tests need (10 min from nothing on two processors)
	@test/parts/debian.sh $(NODE_DEBIAN)
	@test/parts/build.sh

.PHONY: parts-node
parts-node:
	@test/parts/debian.sh $(NODE_DEBIAN)
	@test/parts/build.sh $(NODE_PARTS)

.PHONY: root
root:
	@[ "$$(id -u)" = 0 ] || { echo "This needs root, for network namespaces, cgroups and mounts: run it as root." >&2; exit 1; }
