package plugin

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/view"
)

func TestRolloutHistory(t *testing.T) {
	p := newFakePool(t, few, `{"maxPods":111,"evictionHard":{"memory.available":"500Mi"}}`, deadly).stops("n4")
	p.Spec.Rollout.Pin = pinnedTo(2)
	b := newPoolBench(t, p)
	stdout, _ := b.do(t, "rollout", "history", "workers")
	golden(t, "rollout-history.txt", stdout)
	stdout, _ = b.do(t, "rollout", "history", "workers", "--revision=2")
	golden(t, "rollout-revision.txt", stdout)
	stdout, _ = b.do(t, "rollout", "history", "workers", "-o", "jsonpath={.revisions[2].result} {.revisions[0].layers[0].patch}")
	if stdout != `Stopped {"maxPods":110}` {
		t.Errorf("jsonpath gives %q", stdout)
	}
	code, _, stderr := b.run(t, "rollout", "history", "workers", "--revision=4")
	if code != 1 || !strings.Contains(stderr, "pool workers has no revision 4") {
		t.Errorf("exit code %d, %s", code, stderr)
	}
	// Somebody who has changed what is kept is found out.
	changed := p.objects[0].(*appsv1.ControllerRevision)
	changed.Data.Raw = []byte(strings.Replace(string(changed.Data.Raw), "110", "999", 1))
	b = newPoolBench(t, p)
	stdout, _ = b.do(t, "rollout", "history", "workers")
	contains(t, stdout, "1 ", "not what it was")
	code, _, stderr = b.run(t, "rollout", "undo", "workers", "--to-revision=1")
	if code != 1 || !strings.Contains(stderr, "what is kept of revision 1 is not what it was") {
		t.Errorf("exit code %d, %s", code, stderr)
	}
}

// What two revisions have otherwise, by their layers.
func TestChangeText(t *testing.T) {
	p := newFakePool(t, `{"maxPods":110,"syncFrequency":"60s"}`, `{"maxPods":250,"syncFrequency":"1m"}`, `{"evictionHard":{"memory.available":"1Gi"},"registerWithTaints":null}`)
	for _, row := range []struct {
		from, to int
		want     string
	}{
		{0, 1, "maxPods 110 → 250 in layer fleet"},
		{1, 2, `evictionHard.memory.available "1Gi", maxPods 250 → not set, registerWithTaints null in layer fleet, 1 more`},
	} {
		if got := view.ChangeText(&p.kept[row.from], &p.kept[row.to], 3); got != row.want {
			t.Errorf("it says %q, want %q", got, row.want)
		}
	}
	if got := view.ChangeText(nil, &p.kept[0], 1); got != "maxPods 110 in layer fleet, 1 more" {
		t.Errorf("against the nodes' own it says %q", got)
	}
	other := p.kept[0]
	other.Base = "None"
	if got := view.ChangeText(&p.kept[0], &other, 3); got != "base Local → None" {
		t.Errorf("of another base it says %q", got)
	}
}
