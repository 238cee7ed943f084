package controller

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
)

// A patch of a status takes the old one to the new one, is refused where somebody was faster, and has none of the long lists that do not change.
func TestStatusPatch(t *testing.T) {
	full := func() v1alpha1.KubeletPoolStatus {
		return v1alpha1.KubeletPoolStatus{
			Nodes: v1alpha1.NodeCounts{Selected: 7}, Wave: &v1alpha1.WaveStatus{Number: 2},
			Stops: []v1alpha1.Stop{{Hash: "a"}, {Hash: "b"}}, Failures: []v1alpha1.Failure{{Node: "n1"}},
			Revisions: []v1alpha1.RevisionStatus{{Proven: 3}}, Cohorts: []v1alpha1.CohortStatus{{Name: "v1.36/amd64"}},
			Conditions: []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: "Rolling"}},
		}
	}
	lists := []string{"stops", "failures", "revisions", "cohorts"}
	for name, row := range map[string]struct {
		change func(*v1alpha1.KubeletPoolStatus)
		has    []string // of lists
	}{
		"a number":                {func(s *v1alpha1.KubeletPoolStatus) { s.Nodes.Selected = 8 }, nil},
		"the wave is over":        {func(s *v1alpha1.KubeletPoolStatus) { s.Wave = nil }, nil},
		"one stop more":           {func(s *v1alpha1.KubeletPoolStatus) { s.Stops = append(s.Stops, v1alpha1.Stop{Hash: "c"}) }, lists[:1]},
		"no stop any more":        {func(s *v1alpha1.KubeletPoolStatus) { s.Stops = nil }, lists[:1]},
		"another failure":         {func(s *v1alpha1.KubeletPoolStatus) { s.Failures[0].Node = "n2" }, lists[1:2]},
		"one more has proven it":  {func(s *v1alpha1.KubeletPoolStatus) { s.Revisions[0].Proven = 4 }, lists[2:3]},
		"a cohort has proven it":  {func(s *v1alpha1.KubeletPoolStatus) { s.Cohorts[0].Proven = 1 }, lists[3:]},
		"everything is forgotten": {func(s *v1alpha1.KubeletPoolStatus) { *s = v1alpha1.KubeletPoolStatus{} }, lists},
	} {
		t.Run(name, func(t *testing.T) {
			object := &v1alpha1.KubeletPool{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "u", ResourceVersion: "12"}, Status: full()}
			want := full()
			row.change(&want)
			changed, patch := statusPatch(object, *want.DeepCopy())
			data, err := patch.Data(changed)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(data), `"resourceVersion":"12"`) {
				t.Errorf("%s is for any version", data)
			}
			for _, list := range lists {
				if has := strings.Contains(string(data), `"`+list+`":`); has != strings.Contains(strings.Join(row.has, " "), list) {
					t.Errorf("%s has %s: %t", data, list, has)
				}
			}
			before, _ := json.Marshal(object)
			after, err := jsonpatch.MergePatch(before, data)
			if err != nil {
				t.Fatal(err)
			}
			var got v1alpha1.KubeletPool
			if err := json.Unmarshal(after, &got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got.Status); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(full(), object.Status); diff != "" {
				t.Errorf("what was known has changed: %s", diff)
			}
		})
	}
}

// A status that is stored as another one is a refusal: what a decision rests on would be lost. Nothing is done for that pool, the others go on, and
// it is written again seldom.
func TestAnAlteredStatusIsARefusal(t *testing.T) {
	play(t, func(s *stage) {
		s.nodes(9)
		s.pool(nil)
		s.secondPool()
		s.api.admit = func(object client.Object) {
			if p, is := object.(*v1alpha1.KubeletPool); is && p.Name == "a" {
				p.Status.Wave = nil
			}
		}
		s.turns(240)
		if got := len(s.api.asked("patch status of KubeletPool/a")); got > 10 {
			t.Errorf("in four minutes it was written %d times", got)
		}
		if message := s.pools.refused.messages()["a"]; !strings.Contains(message, "another status.wave:") {
			t.Errorf("it says %q", message)
		}
		if says := s.says("b"); !strings.HasPrefix(says, "Completed") {
			t.Errorf("the other pool says %q", says)
		}
		for _, name := range s.assigned() {
			if strings.HasPrefix(name, "n") {
				t.Errorf("%s was assigned something", name)
			}
		}
		s.api.admit = nil
		s.turns(300)
		if says := s.says("a"); !strings.HasPrefix(says, "Completed") {
			t.Errorf("when it is stored it says %q", says)
		}
	})
}
