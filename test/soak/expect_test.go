//go:build linux

package main

import (
	"slices"
	"testing"
	"time"
)

var (
	local = payload{}
	old   = payload{good, 31}
	fresh = payload{good, 32}
	bad   = payload{refused, 51}
	fatal = payload{deadly, 41}
	few   = payload{harmful, 5}
)

func assigning(configMap string, p payload) step {
	return step{put: configMap, payload: p, assign: pointer(assignmentOf(configMap))}
}

var (
	unassigning   = step{assign: pointer("")}
	missing       = step{assign: pointer(assignmentOf(absent))}
	killing       = step{supervisor: "KILL"}
	striking      = step{kubelet: "KILL"}
	running       = truth{old, old, old} // soak-a, which is assigned
	runningWorld  = world{assignment: assignmentOf("soak-a"), configMaps: map[string]payload{"soak-a": old}, broken: map[string]bool{}}
	assignedA     = assignmentOf("soak-a")
	assignedB     = assignmentOf("soak-b")
	unobtainable  = []string{downloadError}
	unrunnable    = []string{runError}
	unacceptable  = []string{loadError, validateError}
	withoutErrors = []string{""}
)

// What has to come of steps, from a quiescent moment with "old" in soak-a assigned, active and lastKnownGood.
func TestExpect(t *testing.T) {
	for _, test := range []struct {
		name  string
		steps []step
		want  expectation
	}{
		{"nothing", nil, expectation{assignedA, "Active", withoutErrors, []payload{old}, []payload{old}, nil, 0, nil}},
		{"a good one", []step{assigning("soak-b", fresh)}, expectation{assignedB, "Active", withoutErrors, []payload{fresh}, []payload{fresh}, []int{1}, 0, nil}},
		{"an equal one", []step{assigning("soak-b", old)}, expectation{assignedB, "Active", withoutErrors, []payload{old}, []payload{old}, []int{0}, 0, nil}},
		{"one re-created", []step{{remove: "soak-a", put: "soak-a", payload: old}}, expectation{assignedA, "Active", withoutErrors, []payload{old}, []payload{old}, []int{0}, 0, nil}},
		{"one relabelled", []step{{label: "soak-a"}}, expectation{assignedA, "Active", withoutErrors, []payload{old}, []payload{old}, []int{0}, 0, nil}},
		{"a refused one", []step{assigning("soak-b", bad)}, expectation{assignedB, "Refused", unacceptable, []payload{bad}, []payload{old}, []int{0}, 0, nil}},
		{"a deadly one", []step{assigning("soak-b", fatal)}, expectation{assignedB, "Rejected", unrunnable, []payload{fatal}, []payload{old}, []int{0, 4}, 0, nil}},
		{"a deadly edit", []step{{put: "soak-a", payload: fatal}}, expectation{assignedA, "Rejected", unrunnable, []payload{fatal}, []payload{old}, []int{0, 4}, 0, nil}},
		{"none", []step{unassigning}, expectation{"", "Local", withoutErrors, []payload{local}, []payload{local}, []int{1}, 0, nil}},
		{"local", []step{{assign: pointer("local")}}, expectation{"local", "Local", withoutErrors, []payload{local}, []payload{local}, []int{1}, 0, nil}},
		{"an absent one", []step{missing}, expectation{assignmentOf(absent), "SyncFailed", unobtainable, []payload{old}, []payload{old}, []int{0}, 0, nil}},
		{"one deleted", []step{{remove: "soak-a"}}, expectation{assignedA, "SyncFailed", unobtainable, []payload{old}, []payload{old}, []int{0}, 0, nil}},
		{"a malformed one", []step{{assign: pointer(malformed)}}, expectation{malformed, "InvalidAssignment", malformedErrors, []payload{old}, []payload{old}, []int{0}, 0, nil}},
		{"a killed supervisor", []step{killing}, expectation{assignedA, "Active", withoutErrors, []payload{old}, []payload{old}, []int{1}, 0, nil}},
		{"a frozen supervisor", []step{{supervisor: "STOP"}}, expectation{assignedA, "Active", withoutErrors, []payload{old}, []payload{old}, []int{0}, 0, nil}},
		{"a disk that hangs", []step{{part: disk, harm: hung}}, expectation{assignedA, "Active", withoutErrors, []payload{old}, []payload{old}, []int{0}, 0, nil}},
		{"a pod that goes", []step{{pod: podDeleted}}, expectation{assignedA, "Active", withoutErrors, []payload{old}, []payload{old}, []int{0}, 0, nil}},
		{"a killed API server", []step{{part: "kube-apiserver", harm: killed}}, expectation{assignedA, "Active", withoutErrors, []payload{old}, []payload{old}, []int{0}, 0, nil}},
		// What comes in between may have been seen, and run for long enough, or not.
		{"a good one, then a deadly one", []step{assigning("soak-b", fresh), assigning("soak-c", fatal)},
			expectation{assignmentOf("soak-c"), "Rejected", unrunnable, []payload{fatal}, []payload{old, fresh}, nil, 0, nil}},
		{"a good one, then an absent one", []step{assigning("soak-b", fresh), missing},
			expectation{assignmentOf(absent), "SyncFailed", unobtainable, []payload{old, fresh}, []payload{old, fresh}, nil, 0, nil}},
		{"none, then a refused one", []step{unassigning, assigning("soak-b", bad)},
			expectation{assignedB, "Refused", unacceptable, []payload{bad}, []payload{old, local}, nil, 0, nil}},
		// What would cost pods waits, and moves nothing.
		{"a harmful one", []step{assigning("soak-b", few)}, expectation{assignedB, "WouldDisrupt", withoutErrors, []payload{old}, []payload{old}, []int{0}, 7, nil}},
		{"a harmful edit", []step{{put: "soak-a", payload: few}}, expectation{assignedA, "WouldDisrupt", withoutErrors, []payload{old}, []payload{old}, []int{0}, 7, nil}},
		{"a good one, then a harmful one", []step{assigning("soak-b", fresh), assigning("soak-c", few)},
			expectation{assignmentOf("soak-c"), "WouldDisrupt", withoutErrors, []payload{old, fresh}, []payload{old, fresh}, nil, 7, nil}},
		{"a harmful one, then a refused one", []step{assigning("soak-b", few), assigning("soak-c", bad)},
			expectation{assignmentOf("soak-c"), "Refused", unacceptable, []payload{bad}, []payload{old}, nil, 0, nil}},
		{"a deadly one, then none", []step{assigning("soak-b", fatal), unassigning}, expectation{"", "Local", withoutErrors, []payload{local}, []payload{local}, nil, 0, nil}},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := expect(running, runningWorld, test.steps, situation{running: 12})
			if got.observed != test.want.observed || got.reason != test.want.reason || !slices.Equal(got.errors, test.want.errors) || !slices.Equal(got.starts, test.want.starts) {
				t.Errorf("got %+v\nwant %+v", got, test.want)
			}
			if !sameSet(got.assigned, test.want.assigned) || !sameSet(got.lastKnownGood, test.want.lastKnownGood) {
				t.Errorf("got %+v\nwant %+v", got, test.want)
			}
		})
	}
	if !slices.Equal([]payload{runningWorld.configMaps["soak-a"]}, []payload{old}) || runningWorld.assignment != assignedA {
		t.Error("expect has changed the world it was given")
	}
}

// What comes of an approval, from a quiescent moment at which "few" in soak-a is held and "old" runs.
func TestExpectAfterAnApproval(t *testing.T) {
	w := world{assignment: assignedA, configMaps: map[string]payload{"soak-a": few}, broken: map[string]bool{}}
	approving := step{approve: approvedOnce}
	for _, test := range []struct {
		name      string
		now       situation
		before    truth
		steps     []step
		reason    string
		otherwise string
		starts    []int
		good      []payload
	}{
		{"none", situation{12, false, false}, running, nil, "WouldDisrupt", "", nil, []payload{old}},
		{"one", situation{12, true, false}, running, []step{approving}, "Active", "", []int{1}, []payload{few}},
		{"one, and a pod that the hold had named was made again", situation{12, true, true}, running, []step{approving}, "Active", "WouldDisrupt", nil, []payload{few}},
		{"a stale one", situation{12, false, false}, running, []step{{approve: approvedStale}}, "WouldDisrupt", "", []int{0}, []payload{old}},
		{"one, and the supervisor is killed", situation{12, true, false}, running, []step{approving, killing}, "Active", "WouldDisrupt", nil, []payload{few}},
		{"one, then another configuration", situation{12, true, false}, running, []step{approving, assigning("soak-b", fresh)}, "Active", "", nil, []payload{fresh}},
		{"one, then a refused one", situation{12, true, false}, running, []step{approving, assigning("soak-b", bad)}, "Refused", "", nil, []payload{old, few}},
		{"it runs already", situation{5, false, false}, truth{few, few, few}, []step{killing}, "Active", "", []int{1}, []payload{few}},
		{"as many run as it has room for", situation{5, false, false}, running, []step{assigning("soak-b", few)}, "Active", "", []int{1}, []payload{few}},
	} {
		got := expect(test.before, w, test.steps, test.now)
		otherwise := ""
		if got.otherwise != nil {
			otherwise = got.otherwise.reason
		}
		if got.reason != test.reason || otherwise != test.otherwise || !slices.Equal(got.starts, test.starts) || !sameSet(got.lastKnownGood, test.good) {
			t.Errorf("%s: got %+v, or %q", test.name, got, otherwise)
		}
	}
}

func sameSet(a, b []payload) bool {
	in := func(list []payload) func(payload) bool {
		return func(p payload) bool { return !slices.Contains(list, p) }
	}
	return !slices.ContainsFunc(a, in(b)) && !slices.ContainsFunc(b, in(a))
}

func TestUnmet(t *testing.T) {
	rejected := expect(running, runningWorld, []step{assigning("soak-b", fatal)}, situation{})
	for _, test := range []struct {
		name             string
		v                truth
		observed, reason string
		err              string
		met              bool
	}{
		{"the fallback runs", truth{fatal, old, old}, assignedB, "Rejected", runError, true},
		{"the old assignment", truth{old, old, old}, assignedA, "Active", "", false},
		{"no verdict yet", truth{fatal, old, old}, assignedB, "RolledBack", runError, false},
		{"another error", truth{fatal, old, old}, assignedB, "Rejected", loadError, false},
		{"the deadly one active", truth{fatal, fatal, old}, assignedB, "Rejected", runError, false},
		{"a fallback that was never assigned", truth{fatal, fresh, fresh}, assignedB, "Rejected", runError, false},
		{"local, with a fallback there", truth{fatal, local, old}, assignedB, "Rejected", runError, false},
	} {
		if unmet := rejected.unmet(test.v, test.observed, test.reason, test.err); (unmet == "") != test.met {
			t.Errorf("%s: %q", test.name, unmet)
		}
	}
	active := expect(running, runningWorld, []step{assigning("soak-b", fresh)}, situation{})
	if active.unmet(truth{fresh, fresh, old}, assignedB, "Active", "") == "" {
		t.Error("what is on trial was taken for lastKnownGood")
	}
	held := expect(running, runningWorld, []step{assigning("soak-b", fresh), assigning("soak-c", few)}, situation{running: 12})
	for v, met := range map[truth]bool{{old, old, old}: true, {fresh, old, old}: true, {fresh, fresh, fresh}: true, {old, fresh, fresh}: true, {fresh, local, old}: false} {
		if unmet := held.unmet(v, assignmentOf("soak-c"), "WouldDisrupt", ""); (unmet == "") != met {
			t.Errorf("held with %+v: %q", v, unmet)
		}
	}
}

func TestFits(t *testing.T) {
	for _, test := range []struct {
		said string
		want []string
		fits bool
	}{
		{"", withoutErrors, true},
		{runError, withoutErrors, false},
		{runError, unrunnable, true},
		{runError + " and more", unrunnable, false},
		{malformedErrors[0] + "name: Required value", malformedErrors, true},
		{malformedErrors[1] + "name: Required value, and more]", malformedErrors, true},
		{"failed to sync: [name", malformedErrors, false},
		{downloadError, []string{"failed to sync: "}, true},
		{"failed", []string{"failed to sync: "}, false},
		{loadError, unacceptable, true},
	} {
		if got := fits(test.said, test.want); got != test.fits {
			t.Errorf("%q among %q: %v", test.said, test.want, got)
		}
	}
}

var seenToRun = []step{{}} // no round, but a quiescent moment with the old one active

// A good configuration may be rejected only when its kubelets were killed, and until it was seen to run again.
func TestLedger(t *testing.T) {
	begin := time.Unix(0, 0)
	for _, test := range []struct {
		name    string
		rounds  [][]step
		apart   time.Duration
		excused bool // the last
	}{
		{"nothing was done to it", [][]step{{assigning("soak-b", fresh)}}, 0, false},
		{"fewer kills than a trial allows", [][]step{{striking, killing}}, 0, false},
		{"as many", [][]step{{striking, killing, striking}}, 0, true},
		{"asked stops do not count", [][]step{{{supervisor: "TERM"}, {supervisor: "TERM"}, {supervisor: "TERM"}}}, 0, false},
		{"five exits in ten minutes", [][]step{{striking, striking}, {striking, striking}, {striking}}, time.Minute, true},
		{"five exits in an hour", [][]step{{striking, striking}, {striking, striking}, {striking}}, 20 * time.Minute, false},
		{"five exits, and it was seen to run since", [][]step{{striking, striking}, {striking, striking}, {striking}, seenToRun, {assigning("soak-b", fresh)}}, time.Minute, false},
		{"struck before", [][]step{{striking, killing, striking}, nil}, time.Hour, true},
	} {
		l := ledger{struck: map[payload]bool{}}
		excused := false
		for i, steps := range test.rounds {
			if len(steps) > 0 && &steps[0] == &seenToRun[0] {
				l.acquit(old)
				continue
			}
			excused = l.round(running, runningWorld, steps, begin.Add(time.Duration(i)*test.apart))
		}
		if excused != test.excused {
			t.Errorf("%s: excused is %v", test.name, excused)
		}
		l.acquit(old)
		if l.round(running, runningWorld, nil, begin.Add(100*time.Hour)) {
			t.Errorf("%s: still excused after it was seen to run", test.name)
		}
	}
}
