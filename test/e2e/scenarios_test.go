//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// What upstream never tested, as far as no other file here has it: docs/evidence/faults.md has the list.

const (
	policies       = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
	policyBindings = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings"
)

// refusesReports has the API server refuse the supervisor's status patches and events, and waits until it does. heal ends that.
func (n *node) refusesReports(t *testing.T) (heal func()) {
	t.Helper()
	name := uniqueName("no-reports")
	same := fmt.Sprintf("object.metadata.?annotations[?%q].orValue('') == oldObject.metadata.?annotations[?%q].orValue('')", statusAnnotation, statusAnnotation)
	rule := func(group, resource, operation string) object {
		return object{"apiGroups": []string{group}, "apiVersions": []string{"*"}, "resources": []string{resource}, "operations": []string{operation}}
	}
	n.must(t, http.MethodPost, policies, object{"metadata": object{"name": name}, "spec": object{
		"failurePolicy":    "Fail",
		"matchConstraints": object{"resourceRules": []object{rule("", "nodes/status", "UPDATE"), rule("", "events", "CREATE")}},
		"validations":      []object{{"expression": "object.kind == 'Event' ? object.?source.component.orValue('') != 'kubelet-supervisor' : " + same, "message": "no reports now"}},
	}}, nil)
	heal = func() { n.remove(t, policyBindings+"/"+name); n.remove(t, policies+"/"+name) }
	t.Cleanup(heal)
	n.must(t, http.MethodPost, policyBindings, object{"metadata": object{"name": name}, "spec": object{"policyName": name, "validationActions": []string{"Deny"}}}, nil)
	n.awaitReports(t, false)
	return heal
}

// awaitReports waits until the API server takes the supervisor's reports, or refuses them; nothing is changed by asking.
func (n *node) awaitReports(t *testing.T, taken bool) {
	t.Helper()
	await(t, fmt.Sprintf("reports are taken: %v", taken), func() error {
		_, err := n.request(http.MethodPatch, nodePath+"/status?dryRun=All", object{"metadata": object{"annotations": object{statusAnnotation: "probe"}}}, nil)
		if refused := err != nil && strings.Contains(err.Error(), "no reports now"); refused == taken {
			return fmt.Errorf("the answer is: %w", err)
		}
		return nil
	})
}

// Upstream lost a status patch that failed, until something else changed. Here the node does what it is told all the while, and says
// so when it can.
func TestReportsRefusedForAWhile(t *testing.T) {
	n := sharedNode(t)
	s := n.startedLocal(t, options{})
	config := n.putConfigMap(t, "unheard", map[string]string{"kubelet": n.kubeletConfig(with("maxPods", 121))})
	bad := n.putConfigMap(t, "unheard-bad", map[string]string{"kubelet": "{0xdeadbeef}"})
	heal := n.refusesReports(t)
	for _, step := range []struct {
		config *configMap
		reason string
	}{{config, "Active"}, {bad, "Refused"}, {config, "Active"}} {
		n.assign(t, step.config.assignment("kubelet"))
		await(t, "state.json says "+step.reason, func() error {
			if r := s.record(t); r.Condition.Reason != step.reason || !step.config.is(r.Config.Assigned) {
				return fmt.Errorf("it says %s, assigned %v", r.Condition.Reason, r.Config.Assigned)
			}
			return nil
		})
	}
	if got := s.configz(t)["maxPods"]; got != 121.0 {
		t.Errorf("the kubelet runs with maxPods %v, want 121", got)
	}
	if v, err := n.view(); err != nil || !v.is("", "Local") {
		t.Errorf("the Node was not to change: %v, %v", v, err)
	}
	kubelet := s.kubelet(t)
	heal()
	v := n.awaitReason(t, config.assignment("kubelet"), "Active")
	wantStatus(t, v, config.source("kubelet"), config.source("kubelet"), config.source("kubelet"), "")
	if now := s.kubelet(t); now.ID != kubelet.ID {
		t.Errorf("the kubelet was restarted: pid %d, then %d", kubelet.ID, now.ID)
	}
	n.unassign(t)
	n.awaitReason(t, "", "Local")
	n.awaitEvents(t, v.UID, "Normal KubeletConfigChanged: Kubelet restarting to use local config")
}

// A container runtime that is restarted in the middle of a change is no fault of the configuration.
func TestRuntimeRestartedDuringAChange(t *testing.T) {
	n := sharedNode(t)
	s := n.startedLocal(t, options{})
	t.Cleanup(func() { n.startContainerd(t) }) // the next test needs it
	for i, moment := range []struct {
		name    string
		reached func(config *configMap) bool
	}{
		{"when the assignment is made", func(*configMap) bool { return true }},
		{"when its kubelet is started", func(c *configMap) bool {
			return strings.Contains(s.log(t), "starting the kubelet with "+c.Namespace+"/"+c.Name)
		}},
		{"during its trial", func(c *configMap) bool {
			return s.record(t).Condition.Reason == "InTrial" && c.is(s.record(t).Config.Active)
		}},
	} {
		t.Run(moment.name, func(t *testing.T) {
			config := n.putConfigMap(t, "restarted", map[string]string{"kubelet": n.kubeletConfig(with("maxPods", 131+i))})
			n.assign(t, config.assignment("kubelet"))
			await(t, moment.name, func() error {
				if !moment.reached(config) {
					return fmt.Errorf("not yet")
				}
				return nil
			})
			n.StopContainerd()
			n.startContainerd(t)
			v := n.awaitReason(t, config.assignment("kubelet"), "Active")
			wantStatus(t, v, config.source("kubelet"), config.source("kubelet"), config.source("kubelet"), "")
			if got := s.configz(t)["maxPods"]; got != float64(131+i) {
				t.Errorf("the kubelet runs with maxPods %v, want %d", got, 131+i)
			}
			if r := s.record(t); len(r.Rejected) > 0 {
				t.Errorf("rejected: %+v", r.Rejected)
			}
		})
	}
}

func (n *node) startContainerd(t *testing.T) {
	t.Helper()
	if err := n.StartContainerd(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
}

// Upstream's kubelet exited over each of these, for ever. Here it runs with the best that is left, without an API server too, says
// what happened, and comes back by itself once the API server is heard.
func TestLongSpoiltStateFolder(t *testing.T) {
	quick := []string{"--trial-period=1s"}
	// The node has a last known good configuration, maxPods 141, and an assigned one that it refused.
	for _, test := range []struct {
		name    string
		spoil   func(t *testing.T, stateDir string, good *configMap)
		maxPods float64 // offline
		reason  string  // offline
	}{
		{"the assignment is full of zeros", spoilFiles("meta/assigned"), 141, "Active"},
		{"both pointers are", spoilFiles("meta/assigned", "meta/last-known-good"), 20, "Local"},
		{"the verdicts and the trial's account are", spoilFiles("meta/trial", "meta/rejected", "meta/preflight"), 141, "Refused"},
		{"the checkpoint of last known good has another content", func(t *testing.T, stateDir string, good *configMap) {
			writeFile(t, filepath.Join(stateDir, "checkpoints", string(good.UID), good.ResourceVersion, "kubelet"), "maxPods: 1")
		}, 20, "LastKnownGoodFailed"},
		{"the checkpoints are gone", func(t *testing.T, stateDir string, _ *configMap) {
			if err := os.RemoveAll(filepath.Join(stateDir, "checkpoints")); err != nil {
				t.Fatal(err)
			}
		}, 20, "LastKnownGoodFailed"},
	} {
		t.Run(test.name, func(t *testing.T) {
			n, s, good := assigned(t, options{Flags: quick}, "Active")
			good.set(t, "kubelet", n.kubeletConfig(with("maxPods", 141)))
			n.awaitNode(t, "the edit is last known good", func(v nodeView) bool { return good.is(v.Config.LastKnownGood) })
			bad := n.putConfigMap(t, "bad", map[string]string{"kubelet": "{0xdeadbeef}"})
			n.assign(t, bad.assignment("kubelet"))
			n.awaitReason(t, bad.assignment("kubelet"), "Refused")
			s.stop(t)
			n.stopAPIServer(t)
			test.spoil(t, s.StateDir, good)

			s = n.startSupervisor(t, options{After: s, Flags: quick})
			s.kubelet(t)
			if got := s.configz(t)["maxPods"]; got != test.maxPods {
				t.Errorf("offline the kubelet runs with maxPods %v, want %v", got, test.maxPods)
			}
			await(t, "state.json says "+test.reason, func() error {
				if r := s.record(t); r.Condition.Reason != test.reason {
					return fmt.Errorf("it says %s: %s", r.Condition.Reason, r.Condition.Message)
				}
				return nil
			})
			n.startAPIServer(t)
			v := n.awaitNode(t, "the Node speaks of the bad one again", func(v nodeView) bool {
				return bad.is(v.Config.Assigned) && v.Config.Error == loadError
			})
			wantCondition(t, v, corev1.ConditionFalse, "using last-known-good")
			n.assign(t, good.assignment("kubelet"))
			v = n.awaitReason(t, good.assignment("kubelet"), "Active")
			wantStatus(t, v, good.source("kubelet"), good.source("kubelet"), good.source("kubelet"), "")
			if strings.Contains(v.Condition.Message, ".corrupt-") {
				t.Errorf("an old trouble stays: %s", v.Condition.Message)
			}
		})
	}
}

// spoilFiles fills files with zeros, as a power cut without fsync does.
func spoilFiles(files ...string) func(*testing.T, string, *configMap) {
	return func(t *testing.T, stateDir string, _ *configMap) {
		for _, file := range files {
			writeFile(t, filepath.Join(stateDir, file), strings.Repeat("\x00", 300))
		}
	}
}

// Upstream kept every checkpoint there ever was.
func TestCheckpointsAreCollected(t *testing.T) {
	n, s, config := assigned(t, options{}, "Active")
	good := config.ResourceVersion
	for i := range 10 {
		config.set(t, "kubelet", n.kubeletConfig(with("maxPods", 151+i), with("topologyManagerPolicy", "bogus")))
		n.awaitNode(t, "the edit is refused", func(v nodeView) bool { return config.is(v.Config.Assigned) && v.Condition.Reason == "Refused" })
	}
	want := []string{good, good + ".sha256", config.ResourceVersion, config.ResourceVersion + ".sha256"}
	slices.Sort(want)
	await(t, "only what is assigned and last known good is kept", func() error {
		entries, err := os.ReadDir(filepath.Join(s.StateDir, "checkpoints", string(config.UID)))
		var got []string
		for _, entry := range entries {
			got = append(got, entry.Name())
		}
		if err == nil && !slices.Equal(got, want) {
			err = fmt.Errorf("%q, want %q", got, want)
		}
		return err
	})
}

// Upstream showed one error at a time and forgot which: a download that fails for a while hides a refusal, which is there again after.
func TestErrorBehindAnError(t *testing.T) {
	n := sharedNode(t)
	s := n.startedLocal(t, options{})
	bad := n.putConfigMap(t, "behind", map[string]string{"kubelet": n.kubeletConfig(with("kubeAPIQPS", -1))})
	n.assign(t, bad.assignment("kubelet"))
	v := n.awaitReason(t, bad.assignment("kubelet"), "Refused")
	wantStatus(t, v, bad.source("kubelet"), nil, nil, validateError)
	kubelet := s.kubelet(t)
	n.deny(t, bad.Namespace, bad.Name)
	if _, _, code := s.run(t, "reload"); code != 0 { // a watch that stands goes on
		t.Fatalf("reload: exit code %d", code)
	}
	v = n.awaitReason(t, bad.assignment("kubelet"), "SyncFailed")
	wantStatus(t, v, bad.source("kubelet"), nil, nil, downloadError)
	n.allow(t, bad.Namespace, bad.Name)
	v = n.awaitReason(t, bad.assignment("kubelet"), "Refused")
	wantStatus(t, v, bad.source("kubelet"), nil, nil, validateError)
	if now := s.kubelet(t); now.ID != kubelet.ID {
		t.Errorf("the kubelet was restarted: pid %d, then %d", kubelet.ID, now.ID)
	}
}
