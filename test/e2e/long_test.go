//go:build e2e && long

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/cluster"
)

// These tests wait for minutes, for what a Lease and a trial are about is time: make test-e2e-long. They work little, so each has a
// cluster of its own, and all run side by side.

// longPatience is for what takes a trial, or the limit of a Lease.
const longPatience = 5 * time.Minute

// ownNode is the node of a cluster that ends with the test.
func ownNode(t *testing.T, name string) *node {
	t.Helper()
	n := up(t, "long-"+name, newest)
	t.Cleanup(func() {
		if err := n.Down(); err != nil {
			t.Error(err)
		}
	})
	n.reset(t)
	return n
}

// A supervisor that was frozen has seen nothing meanwhile: it rolls nothing back, and credits the trial with none of that time.
func TestSlowFreeze(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name    string
		kubelet bool
	}{{"frozen", false}, {"both", true}} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			const period, frozen = time.Minute, 90 * time.Second
			n := ownNode(t, test.name)
			s := n.startedLocal(t, options{Flags: []string{"--trial-period=" + period.String()}})
			config := n.putConfigMap(t, "frozen", map[string]string{"kubelet": n.kubeletConfig(with("maxPods", 81))})
			assignment := config.assignment("kubelet")
			begin := time.Now()
			n.assign(t, assignment)
			n.awaitReason(t, assignment, "InTrial")
			s.awaitTrial(t, 20*time.Second)

			running := s.kubelet(t)
			pids := []int{s.pid()}
			if test.kubelet {
				pids = append(pids, running.ID)
			}
			freeze(t, pids, frozen)

			awaitFor(t, longPatience, "the configuration is promoted", func() error {
				r := s.record(t)
				if r.Trial != nil && time.Duration(r.Trial.Healthy) > time.Since(begin)-frozen {
					t.Errorf("%s of health are credited, %s after the assignment, %s of which all was frozen", r.Trial.Healthy, time.Since(begin), frozen)
				}
				return reasonIs(r.Condition.Reason, "Active", "RolledBack", "Rejected")
			})
			if took := time.Since(begin) - frozen; took < period {
				t.Errorf("promoted after %s of which somebody could have seen something; the trial is %s", took, period)
			}
			v := n.awaitReason(t, assignment, "Active")
			wantStatus(t, v, config.source("kubelet"), config.source("kubelet"), config.source("kubelet"), "")
			n.wantNoRollback(t, v.UID)
			if now := s.kubelet(t); now.ID != running.ID {
				t.Errorf("the kubelet was restarted: pid %d, then %d", running.ID, now.ID)
			}
		})
	}
}

// A kubelet that renews its Lease every 75 s has not lost the node in between. Its configuration tells; the Lease itself does not where
// the kubelet is one of those up to 1.33, which leave the duration of a Lease that is there as it was.
func TestSlowLease(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		leave bool
	}{{"told", false}, {"untold", true}} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			n := ownNode(t, test.name)
			s := n.startedLocal(t, options{Flags: []string{"--trial-period=100s"}})
			n.awaitLease(t, time.Now())
			if test.leave {
				n.patchLeases(t, `JSONPatch{op: "replace", path: "/spec/leaseDurationSeconds", value: 40}`)
			}
			config := n.putConfigMap(t, "lease", map[string]string{"kubelet": n.kubeletConfig(with("nodeLeaseDurationSeconds", 300))})
			n.assign(t, config.assignment("kubelet"))
			s.wantUneventfulTrial(t, config)
			if got, want := n.lease(t).LeaseDurationSeconds, map[bool]int{false: 300, true: 40}[test.leave]; got != want {
				t.Errorf("the Lease lasts %d s, want %d", got, want)
			}
		})
	}
}

// The API server's policy makes of each renewal one of ten minutes ago, as a kubelet writes it whose clock was set back.
func TestSlowClock(t *testing.T) {
	t.Parallel()
	n := ownNode(t, "clock")
	s := n.startedLocal(t, options{Flags: []string{"--trial-period=100s"}})
	n.awaitLease(t, time.Now())
	config := n.putConfigMap(t, "clock", map[string]string{"kubelet": n.kubeletConfig(with("maxPods", 83))})
	n.assign(t, config.assignment("kubelet"))
	n.awaitReason(t, config.assignment("kubelet"), "InTrial")
	n.patchLeases(t, `JSONPatch{op: "replace", path: "/spec/renewTime", value: string(timestamp(object.spec.renewTime) - duration("10m"))}`)
	n.awaitEarlierRenewal(t)
	s.wantUneventfulTrial(t, config)
	n.awaitEarlierRenewal(t)
}

// Nobody's Lease is renewed while etcd is full. What is on trial is rolled back once, and tried again when there is room.
func TestSlowEtcdFull(t *testing.T) {
	t.Parallel()
	n := ownNode(t, "full")
	s, config, _ := n.rolledBackByEtcd(t)
	starts := s.starts(t)
	s.awaitExcuse(t)
	holds(t, time.Minute, "the fallback runs on", func() error { return s.wantNothingNew(t, starts) })
	n.etcdAlarm(t, "DEACTIVATE")
	s.awaitPromotion(t)
	v := n.awaitReason(t, config.assignment("kubelet"), "Active")
	wantStatus(t, v, config.source("kubelet"), config.source("kubelet"), config.source("kubelet"), "")
	if got := s.starts(t) - starts; got != 1 {
		t.Errorf("%d starts after the rollback, want one", got)
	}
}

// While the API server is away nobody knows whether the fallback renews its Lease: its health alone rejects nothing.
func TestSlowControlOffline(t *testing.T) {
	t.Parallel()
	n := ownNode(t, "control")
	s, config, life := n.rolledBackByEtcd(t)
	starts := s.starts(t)
	n.stopAPIServer(t)
	holds(t, 2*life+20*time.Second, // the control takes twice the life of what failed
		"there is no verdict", func() error { return s.wantNothingNew(t, starts) })
	n.startAPIServer(t) // etcd is full still
	s.awaitExcuse(t)
	n.etcdAlarm(t, "DEACTIVATE")
	s.awaitPromotion(t)
	n.awaitReason(t, config.assignment("kubelet"), "Active")
}

// However long there was no kubelet before: what ran then had renewed the Lease, and this does not.
func TestSlowDowntime(t *testing.T) {
	t.Parallel()
	n := ownNode(t, "downtime")
	s := n.startedLocal(t, options{Flags: []string{"--edit-spread=1h"}})
	config := n.putConfigMap(t, "downtime", map[string]string{"kubelet": n.kubeletConfig(with("maxPods", 85))})
	assignment := config.assignment("kubelet")
	n.assign(t, assignment)
	n.awaitReason(t, assignment, "Active")
	good := config.source("kubelet")
	config.set(t, "kubelet", n.kubeletConfig(with("contentType", "application/bogus")))
	n.awaitNode(t, "the edit waits for its turn", func(v nodeView) bool { return v.is(assignment, "Applying") && config.is(v.Config.Assigned) })
	s.stop(t)
	holds(t, 70*time.Second, "there is no kubelet", func() error {
		if found := n.kubelets(t); len(found) > 0 {
			return fmt.Errorf("kubelets %v", found)
		}
		return nil
	})
	s = n.startSupervisor(t, options{Flags: []string{"--trial-period=10m"}, After: s}) // nothing is between the downtime and the edit
	n.awaitReason(t, assignment, "InTrial")
	await(t, "it is rolled back", func() error { return reasonIs(s.record(t).Condition.Reason, "RolledBack") })
	v := n.awaitReason(t, assignment, "RolledBack")
	wantStatus(t, v, config.source("kubelet"), good, good, runError)
	n.awaitLease(t, time.Now())
}

// rolledBackByEtcd has a good configuration rolled back, because nobody can renew a Lease. It gives the configuration's life, too.
func (n *node) rolledBackByEtcd(t *testing.T) (s *supervised, config *configMap, life time.Duration) {
	t.Helper()
	s = n.startedLocal(t, options{Flags: []string{"--trial-period=100s"}})
	config = n.putConfigMap(t, "innocent", map[string]string{"kubelet": n.kubeletConfig(with("maxPods", 84))})
	begin := time.Now()
	n.assign(t, config.assignment("kubelet"))
	n.awaitReason(t, config.assignment("kubelet"), "InTrial")
	candidate := s.kubelet(t)
	s.awaitTrial(t, 5*time.Second)
	n.etcdAlarm(t, "ACTIVATE")
	awaitFor(t, longPatience, "the fallback runs", func() error { return differs(n.kubelets(t), candidate) })
	s.kubelet(t)
	if reason := s.record(t).Condition.Reason; reason != "RolledBack" {
		t.Errorf("it is %s, not rolled back", reason)
	}
	return s, config, time.Since(begin)
}

// awaitTrial waits until so much health is credited and the kubelet has renewed its Lease since.
func (s *supervised) awaitTrial(t *testing.T, health time.Duration) {
	t.Helper()
	await(t, fmt.Sprintf("%s of health are credited", health), func() error {
		if trial := s.record(t).Trial; trial == nil || time.Duration(trial.Healthy) < health {
			return fmt.Errorf("trial %+v", trial)
		}
		return nil
	})
	s.node.awaitLease(t, time.Now())
}

func (s *supervised) awaitPromotion(t *testing.T) {
	t.Helper()
	awaitFor(t, longPatience, "the configuration is promoted", func() error { return reasonIs(s.record(t).Condition.Reason, "Active", "RolledBack", "Rejected") })
}

func (s *supervised) awaitExcuse(t *testing.T) {
	t.Helper()
	awaitFor(t, longPatience, "the environment is to blame", func() error {
		return reasonIs(s.record(t).Condition.Reason, "EnvironmentFailing", "Rejected")
	})
}

// wantNothingNew is nil as long as nothing was rejected and no kubelet started.
func (s *supervised) wantNothingNew(t *testing.T, starts int) error {
	t.Helper()
	if got := s.starts(t); got != starts {
		return fmt.Errorf("%d starts, after %d", got, starts)
	}
	if rejected := s.record(t).Rejected; len(rejected) > 0 {
		return fmt.Errorf("rejected: %v", rejected)
	}
	return nil
}

// reasonIs is nil for the reason that is wanted. One of the others is not waited out: see fatal.
func reasonIs(is, want string, never ...string) error {
	switch {
	case is == want:
		return nil
	case slices.Contains(never, is):
		return fatal{fmt.Errorf("it is %s, which it must never be", is)}
	}
	return fmt.Errorf("reason %s", is)
}

func (n *node) wantNoRollback(t *testing.T, uid string) {
	t.Helper()
	for _, event := range n.events(t, uid) {
		if strings.Contains(event, "KubeletConfigRolledBack") {
			t.Error(event)
		}
	}
}

// freeze stops processes for a while.
func freeze(t *testing.T, pids []int, during time.Duration) {
	t.Helper()
	thaw := func() {
		for _, pid := range pids {
			_ = syscall.Kill(pid, syscall.SIGCONT)
		}
	}
	t.Cleanup(thaw)
	for _, pid := range pids {
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
	}
	frozen := func() error {
		for _, pid := range pids {
			stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
			if err != nil {
				return err
			}
			if _, state, _ := strings.Cut(string(stat), ") "); !strings.HasPrefix(state, "T") {
				return fmt.Errorf("pid %d: %s", pid, stat)
			}
		}
		return nil
	}
	await(t, "they are frozen", frozen)
	holds(t, during, "they are frozen", frozen)
	thaw()
}

// lease is the node's own.
func (n *node) lease(t *testing.T) (spec struct {
	RenewTime            time.Time
	LeaseDurationSeconds int
}) {
	t.Helper()
	n.must(t, http.MethodGet, "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/"+cluster.NodeName, nil, &struct{ Spec any }{&spec})
	return spec
}

// patchLeases has the API server change what kubelets write into their Leases, by an expression in CEL for a JSON patch.
func (n *node) patchLeases(t *testing.T, expression string) {
	t.Helper()
	const folder = "/apis/admissionregistration.k8s.io/v1/"
	n.must(t, http.MethodPost, folder+"mutatingadmissionpolicies", object{"metadata": object{"name": "leases"}, "spec": object{
		"reinvocationPolicy": "Never", "failurePolicy": "Fail",
		"matchConstraints": object{"resourceRules": []object{{
			"apiGroups": []string{"coordination.k8s.io"}, "apiVersions": []string{"v1"}, "resources": []string{"leases"}, "operations": []string{"CREATE", "UPDATE"},
		}}},
		"matchConditions": []object{{"name": "node", "expression": "request.namespace == 'kube-node-lease'"}},
		"mutations":       []object{{"patchType": "JSONPatch", "jsonPatch": object{"expression": "[" + expression + "]"}}},
	}}, nil)
	n.must(t, http.MethodPost, folder+"mutatingadmissionpolicybindings", object{"metadata": object{"name": "leases"}, "spec": object{"policyName": "leases"}}, nil)
}

// awaitEarlierRenewal waits for a renewal that says it was made long ago.
func (n *node) awaitEarlierRenewal(t *testing.T) {
	t.Helper()
	await(t, "a renewal goes back", func() error {
		if renewed := n.lease(t).RenewTime; time.Since(renewed) < 9*time.Minute {
			return fmt.Errorf("renewed at %s", renewed)
		}
		return nil
	})
}

// wantUneventfulTrial waits until what is assigned is promoted, and checks that its kubelet was not restarted and nothing rolled back.
func (s *supervised) wantUneventfulTrial(t *testing.T, config *configMap) {
	t.Helper()
	s.node.awaitReason(t, config.assignment("kubelet"), "InTrial")
	running := s.kubelet(t)
	s.awaitPromotion(t)
	v := s.node.awaitReason(t, config.assignment("kubelet"), "Active")
	s.node.wantNoRollback(t, v.UID)
	if now := s.kubelet(t); now.ID != running.ID {
		t.Errorf("the kubelet was restarted: pid %d, then %d", running.ID, now.ID)
	}
}

// etcdAlarm raises or ends the alarm that etcd raises by itself when its disk space is used up: reads are answered, writes refused.
func (n *node) etcdAlarm(t *testing.T, action string) {
	t.Helper()
	var status struct {
		Header struct {
			MemberID string `json:"member_id"`
		}
	}
	n.askEtcd(t, "status", object{}, &status)
	n.askEtcd(t, "alarm", object{"action": action, "memberID": status.Header.MemberID, "alarm": "NOSPACE"}, nil)
	refused := func() error {
		_, err := n.request(http.MethodPost, "/api/v1/namespaces/default/events", object{"metadata": object{"generateName": "probe-"}, "involvedObject": object{"namespace": "default"}}, nil)
		return err
	}
	await(t, "etcd hears of "+action, func() error {
		if err := refused(); (err != nil) != (action == "ACTIVATE") {
			return fmt.Errorf("a write: %w", err)
		}
		return nil
	})
}

func (n *node) askEtcd(t *testing.T, what string, question, answer any) {
	t.Helper()
	client := &http.Client{Timeout: requestTimeout, Transport: &http.Transport{DialContext: n.Dial, DisableKeepAlives: true}}
	body, err := json.Marshal(question)
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(context.WithoutCancel(t.Context()), http.MethodPost, "http://127.0.0.1:2379/v3/maintenance/"+what, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("etcd's answer to %s: %s: %s (%v)", what, response.Status, text, err)
	}
	if answer == nil {
		return
	}
	if err := json.Unmarshal(text, answer); err != nil {
		t.Fatalf("etcd's answer to %s: %v: %s", what, err, text)
	}
}
