# The tests that need no real parts, and the lists of make test, make test-long and make test-fresh.

FUZZTIME ?= 10s
# how many random lives make test-lives has, and how many random schedules of a fleet
LIVES    ?= 5000
SCHEDULES ?= 20000
# on how many made-up nodes the forecast is held against the kubelet's own admission
DIFFERENTIAL ?= $(if $(LONG),100000,1500)
# flags of test/mutate, such as -files=trial.go, or -share=0.1 -seed=7
MUTATE   ?=
# whose code make mutate changes: names of packages, or all that test/mutate/targets.go knows
PACKAGES ?= supervisor/core

# what make test is, what takes too long for it, and what a machine of make test-fresh cannot do
TESTS      := vet lint parts test-unit test-differential test-packages test-systemd test-e2e
LONG_TESTS := fuzz test-lives test-hostile test-pure test-crash-points test-reproducible test-release bench-check test-demo test-e2e-long test-kubeadm
NOT_FRESH  := test-systemd
TARGETS    ?= $(filter-out $(NOT_FRESH),$(TESTS))

.PHONY: test
test: root vet lint parts build ## vet, lint, unit tests, packages, systemd, end-to-end tests (root; below 20 min; the first time 20 min more)
	@test/side-by-side.sh bin/test unit "$(MAKE) test-unit" packages "$(MAKE) test-differential && $(MAKE) test-packages"
	@test/side-by-side.sh bin/test systemd "$(MAKE) test-systemd" e2e "$(MAKE) test-e2e"

.PHONY: test-long
test-long: root $(LONG_TESTS) ## what make test has no time for: fuzzing, random lives, every crash point, benchmarks, a kubeadm cluster (root)
	$(MAKE) test-systemd SHORT=
	$(MAKE) test-differential LONG=1

.PHONY: test-fresh
test-fresh: root ## make test on a machine that was just installed, with empty caches (root); TARGETS="lint test-unit" for a part
	@test/parts/debian.sh mmdebstrap util-linux
	@echo "NOT RUN ON A FRESH MACHINE: $(or $(strip $(filter-out $(TARGETS),$(TESTS))),nothing). $(NOT_FRESH) needs a systemd of its own."
	@test/fresh/run.sh $(TARGETS)

# A test of each sees to it that its code starts no goroutine and keeps nothing, so the race detector, which takes them five times as long, is
# for make test-long.
PURE := ./supervisor/core ./fleet/rollout

.PHONY: test-unit
test-unit: ## unit tests with the race detector; TEST=-run=TestX narrows them
	@test/parts/debian.sh gcc libc6-dev dbus-daemon
	CGO_ENABLED=1 KUBELET_SUPERVISOR_PARTS="$(PARTS)" KUBELET_SUPERVISOR_TEST_KUBELET="$$(ls "$(PARTS)/kubelet-1.36.3" 2>/dev/null || :)" \
	  test/again/again.sh go test -race -timeout 20m $(TEST) $$(go list ./... | grep -vxF "$$(go list $(PURE))")
	go test -timeout 20m $(TEST) $(PURE) 2>&1 | test/report.sh

.PHONY: test-pure
test-pure: ##+ the pure packages with the race detector
	CGO_ENABLED=1 go test -race -timeout 20m $(PURE) 2>&1 | test/report.sh

.PHONY: test-hostile
test-hostile: ##+ every command of the plugin against all that a hostile node, kubelet or writer may answer
	go test -tags long -timeout 60m -run Hostile ./plugin 2>&1 | test/report.sh

.PHONY: fuzz
fuzz: ## every fuzz target for FUZZTIME (10s), after the corpora in testdata/fuzz
	@git grep -l '^func Fuzz' -- '*_test.go' | while read -r file; do \
	  sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' "$$file" | while read -r target; do \
	    echo "$$target in $$(dirname "$$file")"; \
	    go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 100x "./$$(dirname "$$file")" </dev/null; \
	  done; \
	done

.PHONY: test-lives
test-lives: ##+ LIVES (5000) random lives of the core, and SCHEDULES (20000) of the core of rollouts
	LIVES=$(LIVES) go test -count=1 -run '^(TestRandomLives|TestTheWallClockDecidesNothing)$$' ./supervisor/core
	SCHEDULES=$(SCHEDULES) go test -count=1 -timeout 30m -v -run '^TestRandomSchedules$$' ./fleet/rollout | test/report.sh

.PHONY: test-crash-points
test-crash-points: ##+ kill -9 at every point of every change, instead of make test's every other one
	EVERY_POINT=1 go test -count=1 -run '^TestCrashAtEveryPoint$$' ./supervisor/cli

comma := ,
space := $(subst ,, )

.PHONY: mutate
mutate: ## whether tests notice changed code; PACKAGES="sync store" or all; MUTATE="-share=0.1 -seed=7" for a part
	go build -o bin/mutate ./test/mutate
	bin/mutate -package=$(subst $(space),$(comma),$(strip $(PACKAGES))) $(MUTATE)

AGAINST = DIFFERENTIAL=$(DIFFERENTIAL) SEED=$(SEED) KUBELET_SUPERVISOR_TEST_ADMISSION="$(CURDIR)/bin/differential/admission-$(1)" \
	  go test -count=1 -v -timeout 3h ./test/differential 2>&1 | test/report.sh

.PHONY: test-differential
test-differential: ## the forecast against the kubelet's own admission code; SEED=7 for one node; LONG=1 for 100,000 nodes
	test/differential/build.sh bin/differential
	$(call AGAINST,1.36.3)
ifdef LONG # and two kubelets before the newest (the first time 20 min of building)
	test/differential/build.sh bin/differential 1.35 1.34
	$(call AGAINST,1.35.4)
	$(call AGAINST,1.34.4)
endif

.PHONY: record-forecast
record-forecast: ##+ ask the kubelet's admission code again about the nodes in forecast/testdata; SEEDS=1-100,250 for others
	test/differential/build.sh bin/differential
	RECORD="$(CURDIR)/forecast/testdata/kubelet.jsonl.gz" SEEDS="$(SEEDS)" KUBELET_SUPERVISOR_TEST_ADMISSION="$(CURDIR)/bin/differential/admission-1.36.3" \
	  go test -count=1 -v -run '^TestRecord$$' ./test/differential
