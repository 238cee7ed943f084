package history

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/rollout"
)

const controller = "controller"

// story is a history that a test tells.
type story struct {
	now     time.Time
	version uint64
	writes  []Write
	nodes   map[string]rollout.Node
	pool    *v1alpha1.KubeletPool
}

const lag = 5 * time.Second

var (
	target = rollout.Retry{Pool: "workers", Hash: "new", Attempt: 1}
	source = "kubelet-config/pool-workers-0123456789/kubelet"
)

// newStory has ten nodes of a pool that goes to another revision, and nothing was sent yet. All of it is long ago.
func newStory() *story {
	s := &story{now: time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC), nodes: map[string]rollout.Node{}}
	for i := range 10 {
		name := fmt.Sprintf("n%d", i)
		s.write("kubelet", name, func(n *rollout.Node) {
			n.UID, n.Labels, n.Ready, n.Minor, n.Arch = types.UID(name), map[string]string{"pool": "workers"}, true, "v1.36", "amd64"
		})
	}
	s.pool = &v1alpha1.KubeletPool{}
	s.changed(func(p *v1alpha1.KubeletPool) {
		p.Spec.Selector.MatchLabels = map[string]string{"pool": "workers"}
		one := intstr.FromInt32(1)
		p.Spec.Rollout.MaxUnavailable = &one
		p.Status.Target = &v1alpha1.Target{RevisionName: v1alpha1.RevisionName{Hash: target.Hash, Revision: 2}, Attempt: 1}
		p.Status.Stable = &v1alpha1.RevisionName{Hash: "old", Revision: 1}
		p.Status.Wave = &v1alpha1.WaveStatus{Number: 1}
	})
	s.now = s.now.Add(time.Hour)
	return s
}

func (s *story) write(user, name string, change func(*rollout.Node)) *Write {
	s.now, s.version = s.now.Add(time.Millisecond), s.version+1
	n := s.nodes[name]
	since := n.ResourceVersion
	change(&n)
	n.Name, n.ResourceVersion = name, fmt.Sprint(s.version)
	s.nodes[name] = n
	s.writes = append(s.writes, Write{Received: s.now, Answered: s.now.Add(time.Millisecond), User: user, Name: name, Version: s.version, Node: &n, UID: string(n.UID), Since: since})
	return &s.writes[len(s.writes)-1]
}

func (s *story) changed(change func(*v1alpha1.KubeletPool)) {
	s.now, s.version, s.pool = s.now.Add(time.Millisecond), s.version+1, s.pool.DeepCopy()
	change(s.pool)
	s.writes = append(s.writes, Write{Received: s.now, Answered: s.now.Add(time.Millisecond), User: "admin", Name: "workers", Version: s.version, Pool: s.pool})
}

// assign is what the controller does.
func (s *story) assign(name string) *Write {
	return s.write(controller, name, func(n *rollout.Node) {
		n.Source, n.Mark, n.Retry = source, rollout.Mark{Pool: "workers", Assignment: source, Attempt: target.Attempt}, target
	})
}

// says is what the node does.
func (s *story) says(name, reason string) {
	s.write("system:node:"+name, name, func(n *rollout.Node) {
		n.Reason, n.Observed, n.RetryHeard = reason, n.Source, n.Retry
	})
}

func (s *story) later(d time.Duration) { s.now = s.now.Add(d) }

// wide lets all nodes be sent to at once.
func wide(p *v1alpha1.KubeletPool) {
	all := intstr.FromString("100%")
	p.Spec.Rollout.MaxUnavailable, p.Spec.Rollout.Waves = &all, []v1alpha1.Wave{{Nodes: all}}
}

// Each rule is broken by what it forbids, and by nothing beside it.
func TestRules(t *testing.T) {
	for name, row := range map[string]struct {
		tell func(*story)
		want string
	}{
		"a canary": {func(s *story) { s.assign("n1"); s.says("n1", "Applying"); s.says("n1", "Active") }, ""},
		"a second one while the first is under way": {func(s *story) {
			s.changed(wide)
			s.changed(func(p *v1alpha1.KubeletPool) { one := intstr.FromInt32(1); p.Spec.Rollout.MaxUnavailable = &one })
			s.later(time.Minute)
			s.assign("n1")
			s.assign("n2")
		}, "maxUnavailable"},
		"a second one, and it was allowed until just now": {func(s *story) {
			s.changed(wide)
			s.later(time.Minute)
			s.changed(func(p *v1alpha1.KubeletPool) { one := intstr.FromInt32(1); p.Spec.Rollout.MaxUnavailable = &one })
			s.assign("n1")
			s.assign("n2")
		}, ""},
		"a second one after the first runs it, in the first wave":  {func(s *story) { s.assign("n1"); s.says("n1", "Active"); s.assign("n2") }, "waves"},
		"a second one after the first runs it, in the second wave": {func(s *story) { s.assign("n1"); s.says("n1", "Active"); s.wave(3); s.assign("n2") }, ""},
		"a second one of another kind": {func(s *story) {
			s.changed(func(p *v1alpha1.KubeletPool) { two := intstr.FromInt32(2); p.Spec.Rollout.MaxUnavailable = &two })
			s.write("kubelet", "n2", func(n *rollout.Node) { n.Minor = "v1.35" })
			s.later(time.Minute)
			s.assign("n1")
			s.assign("n2")
		}, ""},
		"while another one is rolled back": {func(s *story) {
			s.wave(4)
			s.assign("n1")
			s.says("n1", "InTrial")
			s.says("n1", "RolledBack")
			s.later(time.Minute)
			s.assign("n2")
		}, "maxUnavailable"},
		"while another one was rolled back just now": {func(s *story) {
			s.wave(4)
			s.assign("n1")
			s.says("n1", "InTrial")
			s.says("n1", "RolledBack")
			s.assign("n2")
		}, ""},
		"one that is not Ready takes nothing": {func(s *story) {
			s.wave(4)
			s.write("kubelet", "n2", func(n *rollout.Node) { n.Ready = false })
			s.assign("n1")
			s.assign("n2")
		}, ""},
		"paused": {func(s *story) { s.paused(true); s.later(time.Minute); s.assign("n1") }, "paused"},
		"paused just now, and what is sent was under way": {func(s *story) { s.paused(true); s.assign("n1") }, ""},
		"paused, and it is taken back": {func(s *story) {
			s.assign("n1")
			s.paused(true)
			s.later(time.Minute)
			s.write(controller, "n1", func(n *rollout.Node) {
				n.Source, n.Mark.Assignment, n.Retry.Hash = "kubelet-config/old/kubelet", "kubelet-config/old/kubelet", "old"
			})
		}, ""},
		"stopped":                    {func(s *story) { s.stop(1); s.later(time.Minute); s.assign("n1") }, "stopped"},
		"stopped at another attempt": {func(s *story) { s.stop(0); s.later(time.Minute); s.assign("n1") }, ""},
		"refused elsewhere, and not yet written down": {func(s *story) {
			s.wave(4)
			s.assign("n1")
			s.says("n1", "Refused")
			s.later(time.Minute)
			s.assign("n2")
		}, "a verdict"},
		"refused elsewhere just now": {func(s *story) { s.wave(4); s.assign("n1"); s.says("n1", "Refused"); s.assign("n2") }, ""},
		"a person's node": {func(s *story) {
			s.write("admin", "n1", func(n *rollout.Node) { n.Source = "kube-system/own/kubelet" })
			s.assign("n1")
		}, "a person's hands"},
		"one that a person has reset": {func(s *story) {
			s.assign("n1")
			s.write("admin", "n1", func(n *rollout.Node) { n.Source = "" })
			s.assign("n1")
		}, "a person's hands"},
		"one that is held":     {func(s *story) { s.labels("n1", rollout.RolloutLabel, "hold"); s.assign("n1") }, "hold"},
		"one in no pool":       {func(s *story) { s.labels("n1", rollout.PoolLabel, "none"); s.assign("n1") }, "no pool"},
		"one in another":       {func(s *story) { s.labels("n1", "pool", "others"); s.assign("n1") }, "no pool"},
		"with no precondition": {func(s *story) { s.assign("n1").Since = "" }, "precondition"},
		"of another uid":       {func(s *story) { s.assign("n1").UID = "other" }, "precondition"},
		"twice the same":       {func(s *story) { s.assign("n1"); s.assign("n1") }, "nothing twice"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory()
			row.tell(s)
			got := ""
			for _, b := range Check(s.writes, Options{Controller: controller, Lag: lag}).Breaches {
				got += "," + b.Rule
			}
			if strings.TrimPrefix(got, ",") != row.want {
				t.Errorf("it breaks %q, not %q", got, row.want)
			}
		})
	}
}

func (s *story) wave(n int32) {
	s.changed(func(p *v1alpha1.KubeletPool) { p.Status.Wave = &v1alpha1.WaveStatus{Number: n} })
	s.later(time.Minute)
}

func (s *story) paused(is bool) {
	s.changed(func(p *v1alpha1.KubeletPool) { p.Spec.Rollout.Paused = is })
}

func (s *story) stop(attempt int64) {
	s.changed(func(p *v1alpha1.KubeletPool) { p.Status.Stops = []v1alpha1.Stop{{Hash: target.Hash, Attempt: attempt}} })
}

func (s *story) labels(name, key, value string) {
	s.write("admin", name, func(n *rollout.Node) { n.Labels = map[string]string{"pool": "workers", key: value} })
}

// What is counted: assignments, verdicts, the longest time from one to the last assignment, and what is not known.
func TestFindings(t *testing.T) {
	s := newStory()
	s.wave(4)
	s.assign("n1")
	s.says("n1", "Refused")
	told := s.writes[len(s.writes)-1].Answered
	s.later(time.Second)
	s.assign("n2")
	f := Check(s.writes, Options{Controller: controller, Lag: lag})
	if want := s.writes[len(s.writes)-1].Received.Sub(told); f.Assignments != 2 || f.Verdicts != 1 || f.Words != 1 || f.Last != want || f.Reasons["Refused"] != 1 {
		t.Errorf("%+v, and the last one is %v after the verdict", f, want)
	}
	lost := s.writes[len(s.writes)-2:]
	if f := Check(lost, Options{Controller: controller, Lag: lag}); f.Unnoted != 1 {
		t.Errorf("of a Node that was not noted before: %+v", f)
	}
}

// An audit log has much else in it, and ends in the middle of a line.
func TestRead(t *testing.T) {
	event := func(change func(map[string]any)) string {
		e := map[string]any{"stage": "ResponseComplete", "verb": "patch", "requestURI": "/api/v1/nodes/n1", "requestReceivedTimestamp": "2026-11-23T12:00:00.000001Z",
			"stageTimestamp": "2026-11-23T12:00:00.100000Z", "user": map[string]any{"username": controller},
			"objectRef": map[string]any{"resource": "nodes", "name": "n1"}, "responseStatus": map[string]any{"code": 200},
			"requestObject":  map[string]any{"metadata": map[string]any{"uid": "u1", "resourceVersion": "6"}},
			"responseObject": map[string]any{"metadata": map[string]any{"name": "n1", "uid": "u1", "resourceVersion": "7", "creationTimestamp": metav1.Now()}}}
		change(e)
		text, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		return string(text) + "\n"
	}
	nothing := func(map[string]any) {}
	log := event(nothing) +
		event(func(e map[string]any) { e["responseStatus"] = map[string]any{"code": 409} }) +
		event(func(e map[string]any) { e["requestURI"] = "/api/v1/nodes/n1?dryRun=All" }) +
		event(func(e map[string]any) { e["verb"] = "get" }) +
		event(func(e map[string]any) { e["objectRef"] = map[string]any{"resource": "pods", "name": "nodes"} }) +
		event(func(e map[string]any) { e["verb"] = "delete" }) +
		"no JSON\n" + strings.TrimSuffix(event(nothing), "}\n")
	writes, err := Read(strings.NewReader(log))
	if err != nil {
		t.Fatal(err)
	}
	if len(writes) != 2 {
		t.Fatalf("%d writes: %+v", len(writes), writes)
	}
	if w := writes[0]; w.Version != 7 || w.Since != "6" || w.UID != "u1" || w.User != controller || w.Node.Name != "n1" || w.Answered.Sub(w.Received) != 99999*time.Microsecond {
		t.Errorf("the PATCH is read as %+v", w)
	}
	if w := writes[1]; w.Version != 0 || w.Name != "n1" {
		t.Errorf("the deletion is read as %+v", w)
	}
}
