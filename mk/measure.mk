# Long runs and measurements. Each writes a page, most into bin/evidence.

# how long make soak takes; SEED is the sequence of its steps (0: a random one), CLOCK=1 lets it set this machine's clock, too
SOAK     ?= 5m
# 1: a Prometheus reads all programs of make soak-pools, and the dashboard is drawn of it
WATCH    ?=
# 1: make soak and make soak-pools write their page from all that they have measured of this version, and measure nothing
PAGE     ?=
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

.PHONY: soak
soak: $(if $(PAGE),,root parts-node build) ## kill supervisor, kubelet and cluster at random, and check the rules (root); SOAK=8h; SEED=7; PAGE=1 for the page
	go build -o bin/soak ./test/soak
ifdef PAGE
	@mkdir -p bin/evidence
	bin/soak -page=bin/evidence/soak.md "bin/soak-$(VERSION).json"
else
	@$(REAL) bin/soak -time=$(SOAK) -seed=$(SEED) -clock=$(if $(CLOCK),true,false) -commit="$(VERSION)" -json="bin/soak-$(VERSION).json"
endif

.PHONY: soak-pools
soak-pools: root $(if $(PAGE),,parts-node build $(if $(WATCH),watch-parts)) ##+ a pool of 41 nodes, held against the rules by the API server's audit log (root); SOAK=1h; WATCH=1; PAGE=1
	CGO_ENABLED=0 go build -o bin/ ./test/soakpools ./test/fakekubelet
	@mkdir -p bin/evidence
ifdef PAGE
	@test/parts/debian.sh gnuplot-nox fonts-dejavu-core
	bin/soakpools -page=bin/evidence/soak-pools.md "bin/soak-pools-$(VERSION).json"
else
	@folder="$(if $(WATCH),$$(test/parts/prometheus.sh node-exporter))"; \
	$(REAL) bin/soakpools -time=$(SOAK) -seed=$(SEED) -commit="$(VERSION)" -json="bin/soak-pools-$(VERSION).json" \
	  $(if $(WATCH),-mixin=bin/rendered -prometheus="$$folder" -dashboard=bin/evidence/dashboard-soak.md)
endif

.PHONY: bench-program
bench-program: root parts-node build
	CGO_ENABLED=0 go build -o bin/ ./test/bench ./test/fakekubelet ./test/scale/scalehost
	@mkdir -p bin/evidence

.PHONY: bench
bench: bench-program ## measure everything beside its reference, into bin/evidence/benchmarks.md (root; 7 min on an idle machine)
	@$(REAL) bin/bench run -commit="$(VERSION)" -json=bin/bench.json
	bin/bench page -document=bin/evidence/benchmarks.md bin/bench.json bin/bench-upstream.json

.PHONY: bench-upstream
bench-upstream: bench-program ##+ the removed feature itself, kubelet 1.23, for the page of make bench: run it before (root; 15 min)
	@test/parts/build.sh kube-apiserver-1.24.17
	@test/parts/kubelets/build.sh 1.23
	@$(REAL) bin/bench upstream -commit="$(VERSION)" -json=bin/bench-upstream.json
	[ ! -e bin/bench.json ] || bin/bench page -document=bin/evidence/benchmarks.md bin/bench.json bin/bench-upstream.json

.PHONY: bench-check
bench-check: root parts-node build ##+ whether everything can be measured: one short round, whose figures mean nothing (root; 5 min)
	$(REAL) KUBELET_SUPERVISOR_TEST_BINARY="$(CURDIR)/bin/kubelet-supervisor" KUBELET_SUPERVISOR_TEST_CONTROLLER="$(CURDIR)/bin/kubelet-supervisor-controller" \
	  go test -tags e2e -p 1 -count 1 -v -timeout 10m ./test/bench ./test/scale/...

.PHONY: matrix
matrix: bench-program ##+ which kubelets and API servers work, into docs/evidence/compatibility.md (root; 5 min; the first time 30 more)
	@test/parts/build.sh kube-apiserver-1.24.17
	@test/parts/kubelets/build.sh
	@test/parts/kubelets/build.sh kube-apiserver 1.30 1.33
	@$(REAL) bin/bench matrix -commit="$(VERSION)" -json=bin/matrix.json
	@$(REAL) bin/bench servers -commit="$(VERSION)" -json=bin/servers.json
	bin/bench page -document=docs/evidence/compatibility.md bin/matrix.json bin/servers.json

.PHONY: bench-storm
bench-storm: bench-program ##+ 1,000 nodes, one ConfigMap edited every 2 s, beside commit BEFORE (root; half an hour); STORM=100 for fewer
	test/scale/before.sh $(BEFORE) bin/scalehost-before
	@$(REAL) bin/bench storm -nodes=$(STORM) -commit="$(BEFORE)" -host=bin/scalehost-before -json=bin/storm-before.json
	@$(REAL) bin/bench storm -nodes=$(STORM) -commit="$(VERSION)" -json=bin/storm.json
	bin/bench page -document=bin/evidence/storm.md bin/storm-before.json bin/storm.json

.PHONY: bench-scale
bench-scale: bench-program ##+ one node for longer, and 1 to 1,000 nodes (root; an hour and a half); NODES="1 100" for others
	@$(REAL) bin/bench long -commit="$(VERSION)" -json=bin/bench-long.json
	@for nodes in $(NODES); do $(REAL) bin/bench nodes -commit="$(VERSION)" -nodes="$$nodes" -json="bin/scale-$$nodes.json"; done
	bin/bench page -document=bin/evidence/scale.md bin/bench-long.json $(NODES:%=bin/scale-%.json) bin/rollout.json

.PHONY: bench-pools
bench-pools: bench-program ##+ the controller of pools beside 100 to 5,000 nodes (root; a quarter of an hour); POOLS="100" for others
	@for nodes in $(POOLS); do $(REAL) bin/bench pools -commit="$(VERSION)" -nodes="$$nodes" -json="bin/pools-$$nodes.json"; done
	bin/bench page -document=bin/evidence/pools.md $(POOLS:%=bin/pools-%.json)

.PHONY: bench-fleet
bench-fleet: bench-program ##+ a pool of 1,000 nodes rolled out (root; a quarter of an hour); FLEET=120 MACHINES=20 for fewer
	go test -c -o bin/rollout.test ./fleet/rollout
	@$(REAL) bin/bench rollout -commit="$(VERSION)" -nodes=$(FLEET) -machines=$(MACHINES) -json=bin/rollout.json
	[ ! -e bin/evidence/scale.md ] || bin/bench page -document=bin/evidence/scale.md -section="A pool, rolled out" -note="$(FLEET_NOTE)" bin/rollout.json

.PHONY: watch
watch: root parts-node build watch-parts ##+ alerts and dashboard with a real Prometheus, into bin/evidence/dashboard.md (root; 6 min)
	CGO_ENABLED=0 go build -o bin/ ./test/watch ./test/fakekubelet
	@mkdir -p bin/evidence
	folder="$$(test/parts/prometheus.sh node-exporter)"; $(REAL) bin/watch -commit="$(VERSION)" -mixin=bin/rendered -prometheus="$$folder" -picture=bin/evidence/dashboard.png -page=bin/evidence/dashboard.md

.PHONY: watch-parts
watch-parts:
	@test/parts/debian.sh gnuplot-nox fonts-dejavu-core
	go build -C packaging/mixin -o "$(CURDIR)/bin/mixin" .
	bin/mixin --output bin/rendered
