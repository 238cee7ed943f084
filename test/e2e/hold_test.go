//go:build e2e

package e2e

import (
	"errors"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// Rule 19: a change that would kill running pods waits and says which; it goes through when they are gone, or when a person says so, and
// then the pods that it cost are named.
func TestHold(t *testing.T) {
	n := sharedNode(t)
	flag, metrics := metricsFlag(t)
	sysctls := with("allowedUnsafeSysctls", []string{"kernel.msg*"})
	s := n.startedLocal(t, options{Flags: []string{flag}, Local: n.kubeletConfig(sysctls)})
	running := s.kubelet(t)
	k := n.bareKubelet(t) // for its pods alone
	k.putYounger(t, "be1")
	k.putYounger(t, "be2", withMsgmax)
	k.putYounger(t, "be3")
	k.putYounger(t, "be4")
	t.Cleanup(func() { k.removePods(t) })
	pods := k.allRun(t, 4)

	two := n.putConfigMap(t, "two-pods", map[string]string{"kubelet": n.kubeletConfig(sysctls, with("maxPods", 2))})
	n.assign(t, two.assignment("kubelet"))
	v := n.awaitReason(t, two.assignment("kubelet"), "WouldDisrupt")
	wantStatus(t, v, nil, nil, nil, "")
	wantCondition(t, v, corev1.ConditionFalse, "using current (default)")
	for _, part := range []string{"2 of 4 running pods would be killed at the restart: default/be3 (OutOfpods), default/be4 (OutOfpods)", "; drain the node, or set annotation " + consentAnnotation + "="} {
		if !strings.Contains(v.Condition.Message, part) {
			t.Errorf("the message lacks %q: %s", part, v.Condition.Message)
		}
	}
	if now := s.kubelet(t); now.ID != running.ID {
		t.Errorf("the kubelet was restarted: pid %d, then %d", running.ID, now.ID)
	}
	wantMetrics(t, metrics, "kubelet_supervisor_held 1\n", `kubelet_supervisor_pods_lost_total{reason="SysctlForbidden"} 0`)
	await(t, "an event says that it waits", func() error {
		events := n.events(t, v.UID)
		if !slices.ContainsFunc(events, func(e string) bool {
			return strings.HasPrefix(e, "Normal KubeletConfigHeld: ") && strings.Contains(e, "two-pods")
		}) {
			return errors.New(strings.Join(events, " | "))
		}
		return nil
	})

	// The pods leave; a retry looks at once.
	for _, name := range []string{"be3", "be4"} {
		k.remove(t, podsFolder+"/"+name)
		await(t, name+" is gone", func() error {
			if code, _ := n.request(http.MethodGet, podsFolder+"/"+name, nil, &corev1.Pod{}); code != http.StatusNotFound {
				return errors.New("it is there")
			}
			return nil
		})
	}
	n.annotate(t, "kubelet-supervisor.io/retry", uniqueName("drained"))
	v = n.awaitReason(t, two.assignment("kubelet"), "Active")
	wantStatus(t, v, two.source("kubelet"), two.source("kubelet"), two.source("kubelet"), "")
	for name, now := range k.allRun(t, 2) {
		if now != pods[name] {
			t.Errorf("%s was touched: %+v, then %+v", name, pods[name], now)
		}
	}

	// Not by maxPods: a kubelet admits pods by its Node as the API server has it, and where it has not said its new maxPods yet, all may stay.
	strict := n.putConfigMap(t, "no-sysctls", map[string]string{"kubelet": n.kubeletConfig(with("maxPods", 2))})
	n.assign(t, strict.assignment("kubelet"))
	v = n.awaitReason(t, strict.assignment("kubelet"), "WouldDisrupt")
	wantStatus(t, v, two.source("kubelet"), two.source("kubelet"), two.source("kubelet"), "")
	approval := approvalOf(t, v)
	const parks = "starting the next kubelet, which waits for the end of the one that runs"
	if strings.Contains(s.log(t), parks) {
		t.Error("a kubelet was started that is held")
	}
	n.annotate(t, consentAnnotation, approval)
	v = n.awaitReason(t, strict.assignment("kubelet"), "Active")
	if !strings.Contains(s.log(t), parks) {
		t.Error("the next kubelet did not wait for the end of the one that ran")
	}
	wantStatus(t, v, strict.source("kubelet"), strict.source("kubelet"), strict.source("kubelet"), "")
	const lost = "Warning KubeletConfigPodsLost: running pods lost at the restart: 1: default/be2"
	await(t, "it is said which pod that has cost", func() error {
		if events := n.events(t, v.UID); !slices.Contains(events, lost) {
			return errors.New(strings.Join(events, " | "))
		}
		return nil
	})
	wantMetrics(t, metrics, "kubelet_supervisor_held 0\n")
	text, err := os.ReadFile(metrics)
	if err != nil {
		t.Fatal(err)
	}
	// Where the pod's containers end with 0 before the kubelet has written its reason, that is lost.
	if total := "kubelet_supervisor_pods_lost_total{reason="; !strings.Contains(string(text), total+`"SysctlForbidden"} 1`) && !strings.Contains(string(text), total+`"Other"} 1`) {
		t.Errorf("no pod is counted:\n%s", text)
	}

	// One approval is one act: the same change with another pod asks again, and what was written before is of no use.
	n.assign(t, two.assignment("kubelet"))
	n.awaitReason(t, two.assignment("kubelet"), "Active")
	k.remove(t, podsFolder+"/be2")
	k.putYounger(t, "be5", withMsgmax)
	k.allRun(t, 2)
	running = s.kubelet(t)
	n.assign(t, strict.assignment("kubelet"))
	v = n.awaitReason(t, strict.assignment("kubelet"), "WouldDisrupt")
	if again := approvalOf(t, v); again == approval || !strings.Contains(v.Condition.Message, "allow-disruption="+approval+" was spent; drain the node") {
		t.Errorf("it does not ask for another approval than %s: %s", approval, v.Condition.Message)
	}
	if now := s.kubelet(t); now.ID != running.ID {
		t.Error("it was made by the approval of before")
	}
	n.annotate(t, consentAnnotation, nil)
	n.unassign(t)
	n.awaitReason(t, "", "Local")
}
