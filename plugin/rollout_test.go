package plugin

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/rollout"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/cmdutil"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/view"
)

const (
	few, many, deadly = `{"maxPods":110}`, `{"maxPods":250}`, `{"maxPods":-1}`
)

// pin is the revision that the pool is pinned to: 0 is the nodes' own configuration, -1 none.
func pin(p view.Pool) int64 {
	switch pin := p.Spec.Rollout.Pin; {
	case pin == nil:
		return -1
	case pin.Local:
		return 0
	default:
		return pin.Revision
	}
}

func pinnedTo(revision int64) *v1alpha1.Pin { return &v1alpha1.Pin{Revision: revision} }

// What the commands that steer a pool make of it, what they say, and that a dry run does none of it.
func TestSteering(t *testing.T) {
	word := noon.UTC().Format("20060102T150405.000Z")
	for name, row := range map[string]struct {
		command string
		pool    func(*fakePool)
		did     string
		says    []string
		is      func(view.Pool) bool
	}{
		"pause":   {"pause workers", nil, "paused", nil, func(p view.Pool) bool { return p.Spec.Rollout.Paused }},
		"by kind": {"pause kubeletpool.kubelet-supervisor.io/workers", nil, "paused", nil, func(p view.Pool) bool { return p.Spec.Rollout.Paused }},
		"paused already": {"pause workers", func(p *fakePool) { p.Spec.Rollout.Paused = true }, "unchanged", []string{"nothing is changed: pool workers is paused already"},
			func(p view.Pool) bool { return p.Spec.Rollout.Paused }},
		"resume":         {"resume workers", func(p *fakePool) { p.Spec.Rollout.Paused = true }, "resumed", nil, func(p view.Pool) bool { return !p.Spec.Rollout.Paused }},
		"nothing paused": {"resume workers", nil, "unchanged", []string{"pool workers is not paused"}, func(p view.Pool) bool { return !p.Spec.Rollout.Paused }},
		"retry": {"retry workers", func(p *fakePool) { p.stops("n4") }, "retried", []string{"workers: tries revision 3 again, which was stopped: n4 Refused: maxPods"},
			func(p view.Pool) bool { return p.Spec.Rollout.Retry == word }},
		"retry in the same moment": {"retry workers", func(p *fakePool) { p.Spec.Rollout.Retry, p.Status.Retries = word, []string{word + "-2", word} }, "retried",
			[]string{"revision 3 is not stopped; it goes through its waves again"}, func(p view.Pool) bool { return p.Spec.Rollout.Retry == word+"-3" }},
		"retry of what is pinned": {"retry workers", func(p *fakePool) { p.undoes(2) }, "retried",
			[]string{"warning: pool workers is pinned to revision 2, so a stop of another revision stays; kubectl kubelet rollout unpin workers"},
			func(p view.Pool) bool { return p.Spec.Rollout.Retry == word }},
		"undo what is under way": {"undo workers", nil, "undone",
			[]string{"workers: from revision 3 back to revision 2, and pinned there; kubectl kubelet rollout unpin workers lets it follow its layers again"},
			func(p view.Pool) bool { return pin(p) == 2 }},
		"undo what was stopped":   {"undo workers", func(p *fakePool) { p.stops("n4") }, "undone", nil, func(p view.Pool) bool { return pin(p) == 2 }},
		"undo what was completed": {"undo workers", func(p *fakePool) { p.completed() }, "undone", []string{"from revision 3 back to revision 2"}, func(p view.Pool) bool { return pin(p) == 2 }},
		"undo to the nodes' own": {"undo workers --to-local --yes", func(p *fakePool) { p.Status.Nodes.Selected, p.Status.Nodes.Proven, p.Status.Nodes.OnTrial = 4, 1, 1 }, "undone", []string{
			"workers: from revision 3 back to the nodes' own configuration: maxPods 250 → not set in layer fleet", "  2 of 4 nodes have revision 3"},
			func(p view.Pool) bool { return pin(p) == 0 }},
		"undo to the nodes' own, from a pin": {"undo workers --to-local --yes", func(p *fakePool) { p.Spec.Rollout.Pin = pinnedTo(2) }, "undone",
			[]string{"back to the nodes' own configuration"}, func(p view.Pool) bool { return pin(p) == 0 }},
		"undo to what was never completed": {"undo workers --to-revision=3 --yes", func(p *fakePool) { p.Status.Target.RevisionName = *p.Status.Stable }, "undone",
			[]string{"back to revision 3: maxPods 111 → 250 in layer fleet", "revision 3 was never completed, so it goes by waves"}, func(p view.Pool) bool { return pin(p) == 3 }},
		"undo of layers that came back": {"undo workers", func(p *fakePool) { // the first revision was completed after the second
			p.Status.Target.RevisionName, p.Status.Stable = p.Status.Revisions[2].RevisionName, &p.Status.Revisions[2].RevisionName
			p.completes(*p.Status.Stable)
			p.says(v1alpha1.ConditionReady, true, rollout.ReasonCompleted, "")
		}, "undone", []string{"from revision 1 back to revision 2"}, func(p view.Pool) bool { return pin(p) == 2 }},
		"undo of an undo under way": {"undo workers", func(p *fakePool) { p.undoes(2) }, "unchanged",
			[]string{"nothing is changed: pool workers is on its way back to revision 2 already; kubectl kubelet rollout status workers"}, func(p view.Pool) bool { return pin(p) == 2 }},
		"undo of an undo that nobody has seen": {"undo workers", func(p *fakePool) { p.Spec.Rollout.Pin, p.Generation = pinnedTo(2), 9 }, "unchanged",
			[]string{"on its way back to revision 2 already"}, func(p view.Pool) bool { return pin(p) == 2 }},
		"undo of an undo that is through": {"undo workers", func(p *fakePool) {
			p.undoes(2)
			p.says(v1alpha1.ConditionReady, true, rollout.ReasonCompleted, "")
		}, "undone", []string{"from revision 2 back to revision 1"}, func(p view.Pool) bool { return pin(p) == 1 }},
		"undo of a pin to what is not completed": {"undo workers", func(p *fakePool) { p.Spec.Rollout.Pin = pinnedTo(3) }, "undone",
			[]string{"from revision 3 back to revision 2"}, func(p view.Pool) bool { return pin(p) == 2 }},
		"undo further": {"undo workers --to-revision 1", nil, "undone", []string{"back to revision 1"}, func(p view.Pool) bool { return pin(p) == 1 }},
		"undo a paused one": {"undo workers", func(p *fakePool) { p.Spec.Rollout.Paused = true }, "undone",
			[]string{"warning: pool workers is paused, so nothing moves; kubectl kubelet rollout resume workers"}, func(p view.Pool) bool { return pin(p) == 2 }},
		"undo to where it is": {"undo workers --to-revision=3 --yes", nil, "undone", []string{"workers: stays at revision 3, and pinned there"}, func(p view.Pool) bool { return pin(p) == 3 }},
		"undone already": {"undo workers --to-revision=2", func(p *fakePool) { p.Spec.Rollout.Pin = pinnedTo(2) }, "unchanged", []string{"pinned to revision 2 already"},
			func(p view.Pool) bool { return pin(p) == 2 }},
		"unpin":          {"unpin workers", func(p *fakePool) { p.Spec.Rollout.Pin = pinnedTo(2) }, "unpinned", nil, func(p view.Pool) bool { return pin(p) == -1 }},
		"nothing pinned": {"unpin workers", nil, "unchanged", []string{"it follows its layers"}, func(p view.Pool) bool { return pin(p) == -1 }},
	} {
		t.Run(name, func(t *testing.T) {
			p := newFakePool(t, few, `{"maxPods":111}`, many)
			if row.pool != nil {
				row.pool(p)
			}
			b := newPoolBench(t, p)
			arguments := append([]string{"rollout"}, strings.Fields(row.command)...)
			before := b.pool(t)
			stdout, _ := b.do(t, append(slices.Clone(arguments), "--dry-run=client")...)
			if after := b.pool(t); stdout != "kubeletpool.kubelet-supervisor.io/workers "+row.did+" (dry run)\n" || after.Spec.Rollout.Retry != before.Spec.Rollout.Retry ||
				pin(after) != pin(before) || after.Spec.Rollout.Paused != before.Spec.Rollout.Paused {
				t.Errorf("a dry run says %q and leaves %+v", stdout, after.Spec.Rollout)
			}
			stdout, stderr := b.do(t, arguments...)
			if stdout != "kubeletpool.kubelet-supervisor.io/workers "+row.did+"\n" {
				t.Errorf("it prints %q", stdout)
			}
			contains(t, stderr, row.says...)
			if after := b.pool(t); !row.is(after) || after.Spec.Selector.MatchLabels["pool"] != "workers" {
				t.Errorf("the pool is %+v", after.Spec)
			}
		})
	}
}

func TestSteeringRefuses(t *testing.T) {
	for name, row := range map[string]struct {
		command string
		pool    func(*fakePool)
		want    string
	}{
		"no such pool":                      {"pause nobody", nil, `there is no pool "nobody"; see kubectl get kpool`},
		"a stopped one":                     {"undo workers --to-revision=2", func(p *fakePool) { p.stops("n4") }, "pool workers does not go to revision 2, because it was stopped: n4 Refused: maxPods"},
		"no such revision":                  {"undo workers --to-revision=9", nil, "pool workers has no revision 9; see kubectl kubelet rollout history workers"},
		"below zero":                        {"undo workers --to-revision=-2", nil, "revisions count from 1"},
		"revision zero":                     {"undo workers --to-revision=0", nil, "revisions count from 1; kubectl kubelet rollout undo workers --to-local goes to the nodes' own configuration"},
		"both":                              {"undo workers --to-revision=1 --to-local", nil, "give one of --to-revision and --to-local"},
		"local, unasked":                    {"undo workers --to-local", nil, "nothing was changed; answer y, or give --yes"},
		"what was never completed, unasked": {"undo workers --to-revision=2", nil, "nothing was changed; answer y, or give --yes"},
		"nothing completed before": {"undo workers", func(p *fakePool) { p.Status.Stable, p.Status.Completions = nil, nil },
			"has completed nothing before revision 2, so there is no revision to go back to; kubectl kubelet rollout undo workers --to-local"},
		"local before": {"undo workers", func(p *fakePool) { p.completes(v1alpha1.RevisionName{Local: true}) },
			"was at the nodes' own configuration before revision 2; kubectl kubelet rollout undo workers --to-local goes back there"},
		"nothing assigned": {"undo workers", func(p *fakePool) { p.Status = v1alpha1.KubeletPoolStatus{} }, "has assigned nothing yet"},
		"at the nodes' own": {"undo workers", func(p *fakePool) {
			p.Status.Target, p.Status.Completions = &v1alpha1.Target{RevisionName: v1alpha1.RevisionName{Local: true}, Attempt: 1}, nil
			p.Status.Stable = &p.Status.Target.RevisionName
		}, "has completed nothing before the nodes' own configuration"},
		"two pools":       {"pause workers others", nil, "accepts 1 arg(s)"},
		"no such command": {"stop workers", nil, `unknown command "stop" for "kubectl kubelet rollout"`},
		"revision 0":      {"history workers --revision=0", nil, "counts from 1"},
		"a format":        {"pause workers -o table", nil, `output format "table"`},
	} {
		t.Run(name, func(t *testing.T) {
			p := newFakePool(t, few, many)
			if row.pool != nil {
				row.pool(p)
			}
			b := newPoolBench(t, p)
			code, _, stderr := b.run(t, append([]string{"rollout"}, strings.Fields(row.command)...)...)
			if code != 1 {
				t.Errorf("exit code %d", code)
			}
			contains(t, stderr, row.want)
			if after := b.pool(t); pin(after) != -1 || after.Spec.Rollout.Paused {
				t.Errorf("the pool is %+v", after.Spec.Rollout)
			}
		})
	}
}

// What a GitOps tool has set it may set again.
func TestPauseWarnsOfOtherManagers(t *testing.T) {
	p := newFakePool(t, few, many)
	owns := func(manager, fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Operation: metav1.ManagedFieldsOperationApply, FieldsV1: metav1.NewFieldsV1(fields)}
	}
	p.ManagedFields = []metav1.ManagedFieldsEntry{
		owns("argocd-controller", `{"f:spec":{"f:rollout":{"f:paused":{}}}}`), owns("kustomize-controller", `{"f:spec":{"f:rollout":{"f:waves":{}}}}`),
		owns("kubectl-edit", `{"f:spec":{"f:rollout":{"f:paused":{}}}}`), owns(cmdutil.FieldManager, `{"f:spec":{"f:rollout":{"f:paused":{}}}}`),
	}
	_, stderr := newPoolBench(t, p).do(t, "rollout", "pause", "workers")
	contains(t, stderr, "warning: argocd-controller has set spec.rollout.paused, too, and may set it back; leave paused, pin and retry out of what it applies")
	if strings.Contains(stderr, "kustomize") || strings.Contains(stderr, "kubectl-edit") {
		t.Errorf("it warns of others: %s", stderr)
	}
}

func TestSteeringPrints(t *testing.T) {
	b := newPoolBench(t, newFakePool(t, few, many))
	stdout, _ := b.do(t, "rollout", "pause", "workers", "-o", "jsonpath={.kind} {.spec.rollout.paused}")
	if stdout != "KubeletPool true" {
		t.Errorf("jsonpath gives %q", stdout)
	}
	stdout, _ = b.do(t, "rollout", "resume", "workers", "-o", "yaml", "--dry-run=client")
	contains(t, stdout, "kind: KubeletPool", "paused: false")
	stdout, _ = b.do(t, "rollout", "status", "workers", "-o", "name")
	if strings.TrimSpace(stdout) != "kubeletpool.kubelet-supervisor.io/workers" {
		t.Errorf("status -o name prints %q", stdout)
	}
}

func TestRolloutCompletion(t *testing.T) {
	p := newFakePool(t, few, many)
	b := newPoolBench(t, p, p.member("n1", 1, "Active"), p.member("n2", 1, "Active"))
	for _, test := range []struct {
		words []string
		want  []string
	}{
		{[]string{"rollout", "status", ""}, []string{"workers"}},
		{[]string{"rollout", "undo", "w"}, []string{"workers"}},
		{[]string{"rollout", "undo", "x"}, nil},
		{[]string{"rollout", "pause", "workers", ""}, nil},
		{[]string{"rollout", "adopt", "n1", ""}, []string{"n2"}},
		{[]string{"rollout", "pause", "workers", "--dry-run", ""}, []string{"none", "client", "server"}},
	} {
		stdout, _ := b.do(t, append([]string{"__complete"}, test.words...)...)
		got := strings.Fields(stdout)
		if got = got[:len(got)-1]; !slices.Equal(got, test.want) { // without the directive
			t.Errorf("%v: %v, want %v", test.words, got, test.want)
		}
	}
}

// What is shown is what is asked for; a dry run asks nothing.
func TestUndoAsks(t *testing.T) {
	for answer, want := range map[string]int64{"y\n": 0, "n\n": -1, "": -1} {
		b := newPoolBench(t, newFakePool(t, few, many))
		b.do(t, "rollout", "undo", "workers", "--to-local", "--dry-run=client")
		b.input.WriteString(answer)
		_, _, stderr := b.run(t, "rollout", "undo", "workers", "--to-local")
		contains(t, stderr, "workers: from revision 2 back to the nodes' own configuration", "Go to the nodes' own configuration? [y/N]")
		if got := pin(b.pool(t)); got != want {
			t.Errorf("%q: pinned to %d", answer, got)
		}
	}
}
