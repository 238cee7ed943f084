//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"
)

// What any restart would kill is held and named (rule 19), whatever a harmless change asks for. Each row had a pod that ended without a word.
func TestWhatAnyRestartEnds(t *testing.T) {
	denies := func(h *held, reason string) {
		await(t, "the kubelet refuses the static pod", func() error {
			if !strings.Contains(h.s.log(t), `"Pod admission denied"`) || !strings.Contains(h.s.log(t), reason) {
				return errors.New("not yet")
			}
			return nil
		})
	}
	label := func(h *held) {
		h.must(t, http.MethodPatch, nodePath, object{"metadata": object{"labels": object{"disk": "ssd"}}}, nil)
	}
	cpu := resources(object{"cpu": "1500m"}, object{})
	for _, row := range []struct {
		name, reason string
		pod          func(object)
		first        func(h *held) // before the pod
		meanwhile    func(h *held)
	}{
		{name: "a static pod that was refused for its port", reason: "NodePorts", pod: hasPort(18080), meanwhile: func(h *held) {
			h.k.putStatic(t, "other", hasPort(18080))
			denies(h, `reason="NodePorts"`)
		}},
		{name: "a static pod that was refused for its node selector", reason: "OutOfcpu", pod: cpu, meanwhile: func(h *held) {
			h.k.putStatic(t, "other", spec("nodeSelector", object{"disk": "ssd"}), cpu)
			denies(h, `reason="NodeAffinity"`)
			label(h)
		}},
		{name: "a static pod that has ended", reason: "OutOfcpu", pod: cpu, meanwhile: func(*held) {}, first: func(h *held) {
			h.k.putStatic(t, "once", spec("restartPolicy", "Never"), cpu, func(pod object) {
				pod["spec"].(object)["containers"].([]any)[0].(object)["command"] = []string{"/pause", "-v"}
			})
			await(t, "it has ended", func() error {
				if p := h.k.seen(t)["once-n1"].Phase; p != "Succeeded" && p != "Failed" {
					return errors.New(p)
				}
				if _, is := h.sandboxes(t)["default/once-n1"]; is { // its room is not given back
					return errors.New("its sandbox is there")
				}
				return nil
			})
		}},
		{name: "a pod that says it is static", reason: "TaintToleration", pod: with("metadata.annotations", object{"kubernetes.io/config.source": "file"}), meanwhile: func(h *held) {
			h.must(t, http.MethodPatch, nodePath, object{"spec": object{"taints": []object{{"key": "broken", "effect": "NoExecute"}}}}, nil)
		}},
		{name: "a label of another operating system", reason: "PodOSSelectorNodeLabelDoesNotMatch", pod: unchanged, meanwhile: func(h *held) {
			h.must(t, http.MethodPatch, podsFolder+"/web", object{"metadata": object{"labels": object{"kubernetes.io/os": "windows"}}}, nil)
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			n := sharedNode(t)
			k := n.bareKubelet(t)
			if err := os.MkdirAll(k.staticPods(), 0o700); err != nil {
				t.Fatal(err)
			}
			reads := with("staticPodPath", k.staticPods())
			h := n.running(t, options{Local: n.kubeletConfig(reads)}, 0)
			if row.first != nil {
				row.first(h)
			}
			h.k.putYounger(t, "web", row.pod)
			await(t, "the pod runs", func() error {
				if p := h.k.seen(t)["web"]; p.Phase != "Running" {
					return fmt.Errorf("%+v", p)
				}
				return nil
			})
			row.meanwhile(h)
			h.pods = h.k.seen(t)
			h.assigns(t, reads, with("maxPods", 19))
			if v := h.awaitHeld(t); !strings.Contains(v.Condition.Message, "default/web ("+row.reason+")") {
				t.Errorf("the message does not name the pod: %s", v.Condition.Message)
			}
			h.untouched(t, time.Second, "a change is assigned")
		})
	}
}

func hasPort(port int) func(object) {
	return func(pod object) {
		pod["spec"].(object)["containers"].([]any)[0].(object)["ports"] = []object{{"containerPort": port, "hostPort": port}}
	}
}
