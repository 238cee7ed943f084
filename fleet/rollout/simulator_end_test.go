package rollout

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
)

// comesToAnEnd lets everybody leave the cluster alone, and time go by. Then each pool is Ready, or says what it waits for: whatever happened before,
// nothing stands still without a word.
func (s *sim) comesToAnEnd() {
	s.refuses, s.quota, s.muted, s.turned = map[string]bool{}, 0, 0, nil
	clear(s.api.budgets)
	for i := range s.controllers {
		s.controllers[i] = s.newController()
	}
	for _, uid := range s.api.names {
		m := s.api.machines[uid]
		m.Cordoned, m.Leaving, m.Updating, m.Pressure = false, false, false, 0
		s.api.stamp(m)
	}
	for _, p := range s.api.pools {
		p.Generation++
		p.Spec.Rollout.Paused, p.Spec.Rollout.Windows = false, nil
		p.Spec.Rollout.MaxUnavailable = amountOf("3")
	}
	s.setLayer(`{"maxPods":101,"logging":{"format":"good"}}`)
	for began := s.now; s.now < began+4*time.Hour || s.now < began+24*time.Hour && s.anyGoesOn(); {
		s.pass(20 * time.Second)
		c := s.controllers[s.leader()]
		c.lead()
		c.hear(true)
		c.reconcile(0, 0)
	}
	for name, p := range s.api.pools {
		s.checkEnd(name, &p.Status)
	}
}

// anyGoesOn: a pool says that it does. Each node that says nothing, or lies, takes an hour of a slot.
func (s *sim) anyGoesOn() bool {
	for _, p := range s.api.pools {
		if meta.IsStatusConditionTrue(p.Status.Conditions, v1alpha1.ConditionProgressing) {
			return true
		}
	}
	return false
}

// checkEnd: True stands for what is done, or goes on; and a day is longer than anything here goes on.
func (s *sim) checkEnd(name string, status *v1alpha1.KubeletPoolStatus) {
	ready, progressing := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReady), meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionProgressing)
	switch {
	case ready == nil || progressing == nil:
		s.breaks(24, "pool %s says nothing", name)
	case ready.Status == metav1.ConditionTrue:
	case progressing.Status == metav1.ConditionTrue:
		s.breaks(24, "pool %s stands still: %s, %s: %s, %+v", name, ready.Reason, progressing.Reason, progressing.Message, status.Nodes)
	case ready.Reason != ReasonRolling && ready.Message != "": // it says what is wrong, beside how far it is
	case progressing.Message == "" || progressing.Reason == ReasonCompleted:
		s.breaks(24, "pool %s does not say why it stands still: %s, %s: %s", name, ready.Reason, progressing.Reason, progressing.Message)
	case progressing.Reason == ReasonBudgetExhausted && !s.anybodyAway():
		s.breaks(24, "pool %s waits for nobody: %s", name, progressing.Message)
	}
}

// anybodyAway: there is a node that is not Ready, or does not run what it should.
func (s *sim) anybodyAway() bool {
	for _, m := range s.api.machines {
		if !m.Ready || m.Cordoned || m.Draining || m.Source != "" && m.running != m.Source || m.Reason != nodev1.ReasonActive && m.Reason != nodev1.ReasonLocal {
			return true
		}
	}
	return false
}
