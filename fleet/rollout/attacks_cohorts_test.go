package rollout

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
)

func TestLateThatDies(t *testing.T) {
	for name, minor := range map[string]string{"a cohort that has proven it": "v1.36", "a new cohort": "v1.37"} {
		t.Run(name, func(t *testing.T) {
			s := newScript(10, string(good), nil)
			s.until(s.completed, 6*time.Hour)
			s.node(func(m *machine) { m.Minor = minor; m.natureOf = func(string) nature { return unready } })
			s.run(12 * time.Hour)
			if status, _, message := s.progress(); status == "True" || !strings.Contains(message, "n011") {
				t.Errorf("twelve hours later: %s", s.says())
			}
		})
	}
}

func TestBackToWhatFailedIn(t *testing.T) {
	for name, retries := range map[string]bool{"no retry": false, "a retry of another revision": true} {
		t.Run(name, func(t *testing.T) {
			s := newScript(10, string(good), nil)
			s.until(s.completed, 6*time.Hour)
			first, firstHash := s.pool().Spec.Layers, s.pool().Status.Stable.Hash
			for range 10 {
				s.node(func(m *machine) {
					m.Minor = "v1.37"
					m.natureOf = func(source string) nature {
						if strings.Contains(s.api.payloads[source], string(good)) {
							return dying
						}
						return s.api.natureOf(source)
					}
				})
			}
			tried := map[string]bool{}
			s.each = func(s *script) {
				for _, m := range s.api.machines {
					for retry := range m.begun {
						if m.Minor == "v1.37" && retry.Hash == firstHash {
							tried[m.Name] = true
						}
					}
				}
			}
			s.run(2 * time.Hour)
			if len(tried) != 1 {
				t.Fatalf("%d tried it", len(tried))
			}
			for _, uid := range slices.Clone(s.api.names) {
				if m := s.api.machines[uid]; m.Reason == nodev1.ReasonRejected {
					s.api.remove(uid) // remediation
				}
			}
			if retries {
				s.edit(func(spec *v1alpha1.KubeletPoolSpec) {
					spec.Layers = []v1alpha1.Layer{inline("fleet", `{"logging":{"format":"refused"}}`)}
				})
				s.run(time.Hour)
				s.edit(func(spec *v1alpha1.KubeletPoolSpec) { spec.Rollout.Retry = "again" })
				s.run(time.Hour)
				if !s.stopped() {
					t.Fatal("not stopped")
				}
			} else {
				s.inlineLayer(`{"maxPods":7}`)
				if !s.until(s.completed, 6*time.Hour) {
					t.Fatalf("second not completed %s", s.says())
				}
				s.run(time.Hour)
			}
			s.edit(func(spec *v1alpha1.KubeletPoolSpec) { spec.Layers = first })
			s.run(6 * time.Hour)
			if len(tried) != 1 {
				t.Errorf("%d of 10 nodes have tried it: %v %s", len(tried), tried, s.says())
			}
		})
	}
}

func TestUpgradedAndARestart(t *testing.T) {
	for name, ready := range map[string]bool{"NotReady": false, "Ready for now": true} {
		t.Run(name, func(t *testing.T) {
			s := newScript(10, string(good), func(p *v1alpha1.KubeletPool) { p.Spec.Rollout.MaxUnavailable = amountOf("5") })
			s.until(s.completed, 6*time.Hour)
			s.run(time.Minute)
			m := s.api.machines[s.api.names[0]]
			m.Minor, m.Ready, m.dirty = "v1.37", ready, true
			s.run(time.Second)
			s.restartAll()
			s.run(10 * time.Second)
			if ready {
				m.Ready, m.dirty = false, true
			}
			s.newer(dying)
			s.run(time.Hour)
			if tried := s.triedIn("v1.37"); len(tried) > 1 {
				t.Errorf("%d of 10 nodes died of it", len(tried))
			}
		})
	}
}

func TestThirtyThreeFailures(t *testing.T) {
	s := newScript(3, string(good), func(p *v1alpha1.KubeletPool) { p.Spec.Rollout.MaxUnavailable = amountOf("100%") })
	s.until(s.completed, 6*time.Hour)
	for i := range 34 {
		for range 2 {
			s.node(func(m *machine) {
				m.Minor = fmt.Sprintf("v1.%d", 40+i)
				m.natureOf = func(string) nature { return refused }
			})
		}
	}
	s.run(time.Hour)
	before, changes := s.pool().Status, 0
	for range 60 {
		s.run(time.Second)
		if !reflect.DeepEqual(before, s.pool().Status) {
			changes++
		}
		before = s.pool().Status
	}
	if changes > 2 {
		t.Errorf("%d changes of the status in the last minute of an hour", changes)
	}
}

func TestASlashInTheVersion(t *testing.T) {
	for kind, nature := range map[string]nature{"fails": refused, "proves": good} {
		t.Run(kind, func(t *testing.T) {
			s := newScript(5, string(good), nil)
			s.until(s.completed, 6*time.Hour)
			s.node(func(m *machine) { m.Minor = "v1/2.36"; m.natureOf = func(string) nature2 { return nature } })
			s.run(time.Hour)
			before, changes := s.pool().Status, 0
			for range 60 {
				s.run(time.Second)
				if !reflect.DeepEqual(before, s.pool().Status) {
					changes++
				}
				before = s.pool().Status
			}
			r := s.pool().Status.Revisions[0]
			if changes > 2 || len(r.ProvenIn) > 2 || len(r.FailedIn) > 1 {
				t.Errorf("%d changes of the status in a minute; %d proofs, %d failures", changes, len(r.ProvenIn), len(r.FailedIn))
			}
		})
	}
}

type nature2 = nature

func TestProofsOverTheLimit(t *testing.T) {
	tab := newTable(t)
	tab.pool.Spec.Layers = []v1alpha1.Layer{inline("fleet", `{"maxPods":110}`)} // S
	var old []v1alpha1.RevisionStatus
	for i := range 9 {
		r := v1alpha1.RevisionStatus{RevisionName: v1alpha1.RevisionName{Revision: int64(10 + i), Hash: fmt.Sprintf("%010d", i)}, Result: v1alpha1.ResultCompleted}
		for k := range 32 {
			r.ProvenIn = append(r.ProvenIn, provenIn(fmt.Sprintf("v1.%d", k), tab.s)...)
		}
		old = append(old, r)
	}
	s := tab.pool.Status.Revisions[slices.IndexFunc(tab.pool.Status.Revisions, func(r v1alpha1.RevisionStatus) bool { return r.Hash == tab.oldRetry.Hash })]
	tab.pool.Status.Revisions = append(old, s)
	var nodes []Node
	for i := range 10 {
		nodes = append(nodes, tab.node(fmt.Sprintf("n%d", i), func(n *Node) { n.Minor = fmt.Sprintf("v1.%d", 36+i%3) }))
	}
	changes := 0
	for i := range 20 {
		plan, status := tab.decide(nodes...)
		if _, is := plan.Status["workers"]; is && i > 2 {
			changes++
		}
		status = *status.DeepCopy()
		for j := range status.Revisions { // as the API server gives it back
			if len(status.Revisions[j].ProvenIn) == 0 {
				status.Revisions[j].ProvenIn = nil
			}
		}
		tab.pool.Status = status
		tab.world.Now = tab.world.Now.Add(time.Second)
		tab.world.Seen = plan.Seen
	}
	if changes > 0 {
		t.Errorf("%d of 17 decisions change the status", changes)
	}
}

func TestWaitingWhereItFailed(t *testing.T) {
	s := newScript(20, string(good), func(p *v1alpha1.KubeletPool) { p.Spec.Rollout.MaxUnavailable = amountOf("8") })
	s.until(s.completed, 6*time.Hour)
	waits := map[types.UID]bool{}
	var late []*machine
	for range 8 {
		m := s.node(nil)
		late, waits[m.UID] = append(late, m), true
	}
	hold := func(s *script) {
		for _, m := range s.api.machines {
			if waits[m.UID] && m.Source != "" && m.heardSource == m.Source && m.Reason == nodev1.ReasonApplying && !m.consented() {
				m.says(nodev1.ReasonWouldDisrupt)
				source := m.Source
				m.then(s.now+1000*time.Hour, func(m *machine) { m.onTrial(m.at, source) })
				m.Holds, m.dirty = "default/web", true
			}
		}
	}
	s.each = hold
	s.run(5 * time.Minute)
	if n := s.pool().Status.Nodes.Waiting; n < 5 {
		t.Fatalf("%+v", s.pool().Status.Nodes)
	}
	died := map[string]bool{}
	for _, m := range late {
		m.Minor, m.dirty = "v1.37", true
		m.natureOf = func(string) nature { return dying }
	}
	s.each = func(s *script) {
		hold(s)
		for _, m := range late {
			if len(m.begun) > 0 {
				died[m.Name] = true
			}
			if m.Reason == nodev1.ReasonRejected && s.api.machines[m.UID] != nil {
				s.api.remove(m.UID)
			}
		}
	}
	s.run(time.Minute)
	late[0].at = s.now // its pods end
	s.run(5 * time.Minute)
	if len(died) != 1 {
		t.Fatalf("%d died", len(died))
	}
	t.Logf("%+v", s.pool().Status.Revisions[0].FailedIn)
	s.edit(func(spec *v1alpha1.KubeletPoolSpec) { spec.Rollout.Disruption = v1alpha1.DisruptionAllow })
	s.run(time.Hour)
	if len(died) > 1 {
		t.Errorf("%d of 8 died of what has failed there: %s", len(died), s.says())
	}
}

func TestStandsStill(t *testing.T) {
	for name, row := range map[string]struct{ restarts, tolerates bool }{"a restart": {true, false}, "one is tolerated": {false, true}} {
		t.Run(name, func(t *testing.T) {
			s := newScript(10, string(good), func(p *v1alpha1.KubeletPool) {
				if row.tolerates {
					p.Spec.Rollout.Unready.Tolerate = amountOf("1")
				}
			})
			s.until(s.completed, 6*time.Hour)
			s.newer(unready)
			s.run(2 * time.Minute)
			if row.restarts {
				s.restartAll()
			}
			s.run(6 * time.Hour)
			if status, _, message := s.progress(); status == "True" || !strings.Contains(message, "n0") {
				t.Errorf("six hours later: %s %+v", s.says(), s.pool().Status.Nodes)
			}
		})
	}
}
