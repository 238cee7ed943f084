# make            lists the everyday targets, make help-all all of them
# Real parts (etcd, kube-apiserver, kubelet, containerd) are built once into a cache outside the tree: see test/parts/build.sh,
# also for KUBELET_SUPERVISOR_PARTS=/FOLDER with prebuilt ones.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.NOTPARALLEL:
# Each module is built with exactly its own go.mod; go.work is for editors.
export GOWORK := off

VERSION  ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
VERSION  := $(VERSION)# asked once: somebody may commit meanwhile
# go test flags for one run, such as -run=TestX
TEST     ?=
SEED     ?= 0

PARTS        = $(shell test/parts/build.sh --folder)
LINTER       = golangci-lint-2.15.0
LINTER_PATH  = $(shell KUBELET_SUPERVISOR_PARTS= test/parts/build.sh --folder)/$(LINTER)
REAL         = KUBELET_SUPERVISOR_PARTS="$(PARTS)" KUBELET_SUPERVISOR_TEST_KUBELET="$(PARTS)/kubelet-1.36.3"

.PHONY: help
help: ## list the everyday targets
	@echo "Everyday targets; make help-all lists all, and CONTRIBUTING.md explains them:"
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: help-all
help-all: ## list all targets: also longer measurements, and the parts of make test-long
	@awk -F ':.*##[+]? ' '/^[a-z0-9-]+:.*##[+]? / {printf "  make %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## static binaries into bin/
	packaging/compile.sh "$(VERSION)" "$(CURDIR)/bin" kubelet-supervisor kubectl-kubelet kubelet-supervisor-controller

.PHONY: clean
clean: ## remove bin/ and dist/; the real parts stay in the cache (test/parts/build.sh --folder)
	rm -rf bin dist

.PHONY: manifests
manifests: ## deep copies and deploy/manifests/controller/crd.yaml from the types in api/pool
	UPDATE=1 go test -count=1 -run '^TestGeneratedFilesAreUpToDate$$' ./api/pool/v1alpha1

.PHONY: lint
lint: ## golangci-lint and shellcheck
	@test/parts/debian.sh shellcheck
	@KUBELET_SUPERVISOR_PARTS= test/parts/build.sh $(LINTER)
	$(LINTER_PATH) run --build-tags e2e,long,conformance,systemd,machine,release,kubeadm
	git ls-files -z '*.sh' ':!*/testdata/*' .ci/run | xargs -0 shellcheck

# The other processors of Kubernetes' nodes, and one of 32 bits more. Packages are made for amd64 and arm64 alone; for these the node's program is to build.
PROCESSORS := ppc64le s390x arm 386

.PHONY: vet
vet: ## go vet, with all build tags, for all operating systems and processors
	go vet ./...
	go vet -tags e2e,long,conformance,systemd,machine,release,kubeadm ./...
	go vet -C packaging/image ./...
	go vet -C packaging/mixin ./...
	cd test/differential/kubelet && go vet -modfile=../../parts/kubernetes/go.mod .
	for system in darwin windows; do GOOS=$$system go vet ./... || exit; done
	ours="$$(go list -deps ./cmd/kubelet-supervisor | grep "^$$(go list -m)/")"; \
	for processor in $(PROCESSORS); do GOARCH=$$processor go vet $$ours || exit; done

include mk/test.mk mk/real.mk mk/packaging.mk mk/measure.mk
