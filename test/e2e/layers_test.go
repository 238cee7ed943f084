//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
)

// A layer of a test: its name, and the fields that it sets.
type layer struct {
	name string
	sets []func(object)
}

func layerOf(name string, sets ...func(object)) layer { return layer{name, sets} }

// layered is an envelope over the node's own file.
func layered(layers ...layer) string {
	var list []object
	for _, l := range layers {
		patch := object{}
		for _, set := range l.sets {
			set(patch)
		}
		list = append(list, object{"name": l.name, "patch": patch})
	}
	text, err := yaml.Marshal(object{"apiVersion": "kubelet-supervisor.io/v1alpha1", "kind": "KubeletConfigurationLayers", "base": "Local", "layers": list})
	if err != nil {
		panic(err) // made of what JSON has
	}
	return string(text)
}

func (s *supervised) wantFields(t *testing.T, want object) {
	t.Helper()
	config := s.configz(t)
	for field, value := range want {
		if fmt.Sprint(config[field]) != fmt.Sprint(value) {
			t.Errorf("the kubelet runs with %s %v, want %v", field, config[field], value)
		}
	}
}

func (n *node) awaitPending(t *testing.T, assignment, reason string, pending bool) nodeView {
	t.Helper()
	return n.awaitNode(t, fmt.Sprintf("%s, a change of local files is pending: %v", reason, pending), func(v nodeView) bool {
		return v.is(assignment, reason) && strings.Contains(v.Condition.Message, localPending) == pending
	})
}

// replaced kills the kubelet, and waits for the next one.
func (s *supervised) replaced(t *testing.T) {
	t.Helper()
	before := s.kubelet(t)
	kill(t, before)
	await(t, "the kubelet that was killed is replaced", func() error { return differs(s.node.kubelets(t), before) })
	s.kubelet(t)
}

// A few fields over each node's own file: the later layer wins, what no layer names is the file's, and it is a configuration as any other.
func TestLayers(t *testing.T) {
	n := sharedNode(t)
	local := func(podPidsLimit int) string {
		return n.kubeletConfig(with("maxPods", 90), with("podPidsLimit", podPidsLimit))
	}
	s := n.startedLocal(t, options{Local: local(3000)})
	gpu := layerOf("gpu", with("maxPods", 60), with("eventRecordQPS", 7))
	config := n.putConfigMap(t, "layers", map[string]string{"kubelet": layered(layerOf("fleet", with("maxPods", 120)), gpu)})
	assignment := config.assignment("kubelet")
	n.assign(t, assignment)
	v := n.awaitReason(t, assignment, "Active")
	wantStatus(t, v, config.source("kubelet"), config.source("kubelet"), config.source("kubelet"), "")
	s.wantFields(t, object{"maxPods": 60, "eventRecordQPS": 7, "podPidsLimit": 3000})
	if said := nodev1.Read(v.Node); !said.Knows(nodev1.LayersFeature) {
		t.Errorf("the Node's features are %q", said.Status.Features)
	}

	starts := s.starts(t)
	config.set(t, "kubelet", layered(layerOf("whole", with("maxPods", 80)), gpu)) // of it nothing is left
	v = n.awaitNode(t, "an edit with the same result moves the pointers", func(v nodeView) bool { return v.is(assignment, "Active") && config.is(v.Config.LastKnownGood) })
	wantStatus(t, v, config.source("kubelet"), config.source("kubelet"), config.source("kubelet"), "")
	whole := n.putConfigMap(t, "whole", map[string]string{"kubelet": n.kubeletConfig(with("maxPods", 60), with("eventRecordQPS", 7), with("podPidsLimit", 3000))})
	n.assign(t, whole.assignment("kubelet"))
	n.awaitReason(t, whole.assignment("kubelet"), "Active")
	n.assign(t, assignment)
	n.awaitReason(t, assignment, "Active")
	s.writeLocal(t, n.kubeletConfig(with("maxPods", 91), with("podPidsLimit", 3000))) // which a layer sets
	await(t, "the changed file makes no difference", func() error {
		if record := s.record(t); record.Runs == nil || record.Runs.Base == "" || record.LocalPending {
			return fmt.Errorf("%+v, pending %v", record.Runs, record.LocalPending)
		}
		return nil
	})
	if got := s.starts(t); got != starts {
		t.Errorf("what makes no difference started the kubelet %d times", got-starts)
	}

	s.writeLocal(t, local(3001))
	n.awaitPending(t, assignment, "Active", true)
	s.wantFields(t, object{"podPidsLimit": 3000})
	s.replaced(t)
	v = n.awaitPending(t, assignment, "Active", false)
	wantStatus(t, v, config.source("kubelet"), config.source("kubelet"), config.source("kubelet"), "")
	s.wantFields(t, object{"maxPods": 60, "eventRecordQPS": 7, "podPidsLimit": 3001})
}

// What was good is what ran: the fallback lies over the node's own file as it was then.
func TestLayersFallBackToWhatRan(t *testing.T) {
	n := sharedNode(t)
	s := n.startedLocal(t, options{Local: n.kubeletConfig(with("podPidsLimit", 3000))})
	config := n.putConfigMap(t, "layers", map[string]string{"kubelet": layered(layerOf("fleet", with("maxPods", 61)))})
	assignment := config.assignment("kubelet")
	n.assign(t, assignment)
	n.awaitReason(t, assignment, "Active")

	s.writeLocal(t, n.kubeletConfig(with("podPidsLimit", 3001), deadly[0].change))
	n.awaitPending(t, assignment, "Active", true)
	kill(t, s.kubelet(t))
	v := n.awaitReason(t, assignment, "RolledBack")
	wantStatus(t, v, config.source("kubelet"), config.source("kubelet"), config.source("kubelet"), runError)
	s.kubelet(t)
	s.wantFields(t, object{"maxPods": 61, "podPidsLimit": 3000})

	s.stop(t) // and the next supervisor knows it too, though the file is not there at all
	if err := os.Remove(s.LocalFile); err != nil {
		t.Fatal(err)
	}
	s = n.startSupervisor(t, options{After: s})
	n.awaitReason(t, assignment, "FallbackBroken")
	s.kubelet(t)
	s.wantFields(t, object{"maxPods": 61, "podPidsLimit": 3000})

	s.writeLocal(t, n.kubeletConfig(with("podPidsLimit", 3002)))
	n.awaitReason(t, assignment, "Active")
	s.wantFields(t, object{"maxPods": 61, "podPidsLimit": 3002})
}

// A node's own file that cannot be used is the node's fault: what runs goes on, whatever happens to the file, and it heals by itself.
func TestLongLayersOverABadFile(t *testing.T) { layersOverABadFile(t, "Active") }
func TestLongLayersOverABadFileInTrial(t *testing.T) {
	layersOverABadFile(t, "InTrial", "--trial-period=1h", "--trial-failures=9")
}

func layersOverABadFile(t *testing.T, ran string, flags ...string) {
	n := sharedNode(t)
	p := n.makeLocalParts(t)
	good := n.kubeletConfig(with("podPidsLimit", 3000))
	writeFile(t, p.target, good)
	s := n.startedLocal(t, p.options(flags...))
	config := n.putConfigMap(t, "layers", map[string]string{"kubelet": layered(layerOf("fleet", with("maxPods", 62)))})
	assignment := config.assignment("kubelet")

	if err := os.Remove(p.target); err != nil {
		t.Fatal(err)
	}
	starts := s.starts(t)
	n.assign(t, assignment)
	v := n.awaitReason(t, assignment, "FallbackBroken")
	wantStatus(t, v, nil, nil, nil, "failed to sync: internal failure, see Kubelet log for details")
	if got := s.starts(t); got != starts {
		t.Errorf("%d starts over a file that is not there", got-starts)
	}
	writeFile(t, p.target, good)
	n.awaitReason(t, assignment, ran)

	for name, spoil := range map[string]func(){
		"vanishes":        func() { _ = os.Remove(p.target) },
		"does not decode": func() { writeFile(t, p.target, "{") },
		"is refused":      func() { writeFile(t, p.target, n.kubeletConfig(with("eventRecordQPS", -5))) },
		"cannot be read":  func() { _ = errors.Join(os.Remove(p.target), os.Mkdir(p.target, 0o755)) }, // whatever root may read
	} {
		t.Run(name, func(t *testing.T) {
			reason := "FallbackBroken"
			if ran == "InTrial" && name == "is refused" {
				reason = "EnvironmentFailing" // for what it would go back to is that very file
			}
			spoil()
			n.awaitReason(t, assignment, reason)
			s.replaced(t)
			s.wantFields(t, object{"maxPods": 62, "podPidsLimit": 3000})
			_ = os.Remove(p.target)
			writeFile(t, p.target, good)
			n.awaitReason(t, assignment, ran)
		})
	}
	t.Run("is a link that moves", func(t *testing.T) {
		other := filepath.Join(filepath.Dir(p.target), "other.yaml")
		writeFile(t, other, n.kubeletConfig(with("podPidsLimit", 3003)))
		if err := os.Symlink(other, p.link+".new"); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(p.link+".new", p.link); err != nil {
			t.Fatal(err)
		}
		n.awaitPending(t, assignment, ran, true)
		s.replaced(t)
		n.awaitPending(t, assignment, ran, false)
		s.wantFields(t, object{"maxPods": 62, "podPidsLimit": 3003})
	})
}

// The last fallback is local alone, and a way back to local is as ever.
func TestLayersAndLocal(t *testing.T) {
	n := sharedNode(t)
	s := n.startedLocal(t, options{})
	bad := n.putConfigMap(t, "deadly", map[string]string{"kubelet": layered(layerOf("fleet", with("maxPods", 63)), layerOf("worse", deadly[0].change))})
	n.assign(t, bad.assignment("kubelet"))
	v := n.awaitReason(t, bad.assignment("kubelet"), "Rejected")
	wantStatus(t, v, bad.source("kubelet"), nil, nil, runError)
	bad.set(t, "kubelet", layered(layerOf("fleet", with("maxPods", 63))))
	n.awaitReason(t, bad.assignment("kubelet"), "Active")
	n.unassign(t)
	v = n.awaitReason(t, "", "Local")
	wantStatus(t, v, nil, nil, nil, "")
	s.kubelet(t)
}

// Layers that the kubelet refuses cost no restart, and the message names whose fault it is: of one alone, or of two together.
func TestLayersThatAreRefused(t *testing.T) {
	n := sharedNode(t)
	s := n.startedLocal(t, options{})
	first := layerOf("first", with("maxPods", 64))
	for name, row := range map[string]struct {
		layers []layer
		words  string
	}{
		"the middle one alone": {[]layer{first, layerOf("middle", with("eventRecordQPS", -5)), layerOf("last", with("podPidsLimit", 3000))},
			"without layer middle, it would be accepted"},
		"together with the last": {[]layer{first, layerOf("middle", with("imageGCLowThresholdPercent", 84)), layerOf("last", with("imageGCHighThresholdPercent", 83))},
			"without layer middle, or without layer last, it would be accepted"},
	} {
		t.Run(name, func(t *testing.T) {
			starts := s.starts(t)
			config := n.putConfigMap(t, "refused", map[string]string{"kubelet": layered(row.layers...)})
			n.assign(t, config.assignment("kubelet"))
			v := n.awaitNode(t, "the message says which", func(v nodeView) bool {
				return v.is(config.assignment("kubelet"), "Refused") && strings.Contains(v.Condition.Message, row.words)
			})
			wantStatus(t, v, config.source("kubelet"), nil, nil, validateError)
			wantCondition(t, v, corev1.ConditionFalse, "using last-known-good (default)")
			if got := s.starts(t); got != starts {
				t.Errorf("the kubelet was started %d times", got-starts)
			}
		})
	}
	config := n.putConfigMap(t, "envelope", map[string]string{"kubelet": strings.Replace(layered(first), "base: Local", "base: Remote", 1)})
	n.assign(t, config.assignment("kubelet"))
	v := n.awaitReason(t, config.assignment("kubelet"), "Refused")
	wantStatus(t, v, config.source("kubelet"), nil, nil, loadError)
	if want := `key "kubelet" has another base than Local or None`; !strings.Contains(v.Condition.Message, want) {
		t.Errorf("the message is %s", v.Condition.Message)
	}
}

// A trial of layers goes on while the file under them changes; with --follow-local the change is then taken.
func TestLongLayersInTrial(t *testing.T) {
	n := sharedNode(t)
	s := n.startedLocal(t, options{Local: n.kubeletConfig(with("podPidsLimit", 3000)), Flags: []string{"--trial-period=12s"}})
	config := n.putConfigMap(t, "layers", map[string]string{"kubelet": layered(layerOf("fleet", with("maxPods", 65)))})
	assignment := config.assignment("kubelet")
	n.assign(t, assignment)
	n.awaitReason(t, assignment, "InTrial")
	kubelet := s.kubelet(t)
	s.writeLocal(t, n.kubeletConfig(with("podPidsLimit", 3001)))
	n.awaitPending(t, assignment, "Active", true)
	if now := s.kubelet(t); now.ID != kubelet.ID {
		t.Errorf("the change restarted the kubelet: pid %d, then %d", kubelet.ID, now.ID)
	}
	s.wantFields(t, object{"podPidsLimit": 3000})

	s.stop(t)
	s = n.startSupervisor(t, options{After: s, Flags: []string{"--follow-local"}})
	n.awaitReason(t, assignment, "Active")
	s.wantFields(t, object{"maxPods": 65, "podPidsLimit": 3001})
	s.writeLocal(t, n.kubeletConfig(with("podPidsLimit", 3002)))
	await(t, "the kubelet runs with the changed file", func() error {
		config, err := n.Configz(t.Context())
		if err == nil && fmt.Sprint(config["podPidsLimit"]) != "3002" {
			err = fmt.Errorf("podPidsLimit %v", config["podPidsLimit"])
		}
		return err
	})
	n.awaitPending(t, assignment, "Active", false)
}

// The same few fields, as a drop-in file of --config-dir and as a layer, make two kubelets: this is the table of docs/howto/layers.md.
func TestLayersAreNoDropIns(t *testing.T) {
	n := sharedNode(t)
	fields := []func(object){with("evictionHard", object{"memory.available": "123Mi"}), with("staticPodPath", "relative")}
	local := n.kubeletConfig(with("evictionHard", nil), with("staticPodPath", nil))

	dropIns := filepath.Join(n.Folder, uniqueName("drop-ins"))
	dropIn := object{"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration"}
	changes(fields...)(dropIn)
	text, err := yaml.Marshal(dropIn)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(dropIns, "50-few.conf"), string(text))
	s := n.startedLocal(t, options{Local: local, KubeletFlags: []string{"--config-dir=" + dropIns}})
	byDropIn := s.configz(t)
	s.stop(t)

	s = n.startedLocal(t, options{Local: local})
	defaults := s.configz(t)
	config := n.putConfigMap(t, "few", map[string]string{"kubelet": layered(layerOf("few", fields...))})
	n.assign(t, config.assignment("kubelet"))
	n.awaitReason(t, config.assignment("kubelet"), "InTrial")
	byLayer := s.configz(t)

	if got := byLayer["evictionHard"]; !reflect.DeepEqual(got, object{"memory.available": "123Mi"}) {
		t.Errorf("by a layer evictionHard is %v, want its one threshold: the defaults are filled in afterwards", got)
	}
	added := maps.Clone(defaults["evictionHard"].(object))
	added["memory.available"] = "123Mi"
	if got := byDropIn["evictionHard"]; len(added) < 2 || !reflect.DeepEqual(got, added) {
		t.Errorf("by a drop-in file evictionHard is %v, want it over the defaults, %v", got, added)
	}
	if got := byDropIn["staticPodPath"]; got != "relative" {
		t.Errorf("by a drop-in file staticPodPath is %v, want it as it is written", got)
	}
	checkpoint := filepath.Join(s.StateDir, "checkpoints", string(config.UID), config.ResourceVersion)
	if got, want := byLayer["staticPodPath"], filepath.Join(checkpoint, "relative"); got != want {
		t.Errorf("by a layer staticPodPath is %v, want %v", got, want)
	}
}
