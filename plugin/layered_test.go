package plugin

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/cmdutil"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/document"
)

// knowing lets a Node's supervisor know layers.
func knowing(node *corev1.Node) *corev1.Node {
	return resaying(node, func(s *nodev1.Status) { s.Features = []string{nodev1.LayersFeature} })
}

// pushedLayers are those of the only ConfigMap that was pushed.
func (b *bench) pushedLayers(t *testing.T, but ...string) (kubeletconfig.Layers, corev1.ConfigMap) {
	t.Helper()
	made := slices.DeleteFunc(b.pushed(t, cmdutil.ConfigNamespace), func(c corev1.ConfigMap) bool { return slices.Contains(but, c.Name) })
	if len(made) != 1 {
		t.Fatalf("%d ConfigMaps, want 1", len(made))
	}
	key, err := document.KeyOf(&made[0])
	if err != nil {
		t.Fatal(err)
	}
	layers, err := kubeletconfig.ReadLayers([]byte(made[0].Data[key]))
	if err != nil {
		t.Fatalf("%v:\n%s", err, made[0].Data[key])
	}
	return layers, made[0]
}

func layersLine(layers kubeletconfig.Layers) string {
	var words []string
	for _, layer := range layers.Layers {
		text, err := json.Marshal(layer.Patch)
		if err != nil {
			panic(err)
		}
		words = append(words, layer.Name+" ("+layer.From+") "+string(text))
	}
	return strings.Join(words, "\n")
}

func TestPushLayers(t *testing.T) {
	fleet, gpu := inFile(t, "fleet.yaml", document.Header+"maxPods: 250\nclusterDNS: [a]\n"), inFile(t, "gpu.yaml", "maxPods: 60\nregisterWithTaints: null\n")
	for name, test := range map[string]struct {
		arguments []string
		input     string
		want      string
		words     []string // on stderr
	}{
		"--set": {[]string{"--set", "maxPods=250", "--set", `evictionHard.memory\.available=500Mi`, "--set", "registerWithTaints=null"}, "",
			`workers (push --set) {"evictionHard":{"memory.available":"500Mi"},"maxPods":250,"registerWithTaints":null}`,
			[]string{"Laid over each node's own file", "  evictionHard.memory.available: \"500Mi\" (disrupts-pods)\n  maxPods: 250 (disrupts-pods)\n  registerWithTaints: null (inert)\n",
				"warning: layer workers: with evictionHard, thresholds that neither", "Assign it: "}},
		"--set without a backslash": {[]string{"--set", "evictionHard.memory.available=5%"}, "", `workers (push --set) {"evictionHard":{"memory.available":"5%"}}`, nil},
		"a file":                    {[]string{"-f", gpu, "--overlay"}, "", `workers (gpu.yaml) {"maxPods":60,"registerWithTaints":null}`, nil},
		"stdin":                     {[]string{"-f", "-", "--overlay"}, "maxPods: 60\n", `workers () {"maxPods":60}`, nil},
		"layers in order": {[]string{"--layer", "fleet=" + fleet, "--layer", "gpu=" + gpu}, "", "fleet (fleet.yaml) {\"clusterDNS\":[\"a\"],\"maxPods\":250}\ngpu (gpu.yaml) {\"maxPods\":60,\"registerWithTaints\":null}",
			[]string{"  maxPods: 250 (disrupts-pods, layer fleet)\n", "  maxPods: 60 (disrupts-pods, layer gpu)\n", "warning: layer fleet: the list clusterDNS replaces one of the node's own file, it is not added"}},
		"all together": {[]string{"--layer", "fleet=" + fleet, "-f", gpu, "--overlay", "--set", "podsPerCore=3"}, "",
			"fleet (fleet.yaml) {\"clusterDNS\":[\"a\"],\"maxPods\":250}\nworkers (gpu.yaml) {\"maxPods\":60,\"registerWithTaints\":null}\nworkers-2 (push --set) {\"podsPerCore\":3}", nil},
		"what gives the node away": {[]string{"--set", "authorization.mode=AlwaysAllow"}, "", `workers (push --set) {"authorization":{"mode":"AlwaysAllow"}}`,
			[]string{`! authorization.mode: "AlwaysAllow" (may-break-node)`, "check it carefully"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.input.WriteString(test.input)
			_, stderr := b.do(t, append([]string{"push", "workers"}, test.arguments...)...)
			layers, made := b.pushedLayers(t)
			if got := layersLine(layers); got != test.want || layers.Base != kubeletconfig.BaseLocal || made.Immutable == nil || !strings.HasPrefix(made.Name, "workers-") {
				t.Errorf("got\n%s\nwant\n%s", got, test.want)
			}
			contains(t, stderr, test.words...)
		})
	}
}

// Files lie beside layers, too, and the whole is what kubectl would make of the same text.
func TestPushLayersWithFiles(t *testing.T) {
	b := newBench(t)
	b.do(t, "push", "workers", "-f", "kubelet.yaml="+inFile(t, "p", "authentication: {x509: {clientCAFile: ca.crt}}\n"), "-f", inFile(t, "ca.crt", "CA"), "--overlay")
	made := b.pushed(t, cmdutil.ConfigNamespace)[0]
	if keys := strings.Join(document.SortedKeys(document.Payload(&made)), ","); keys != "ca.crt,kubelet.yaml" {
		t.Errorf("keys %s", keys)
	}
	b = newBench(t)
	b.do(t, "push", "workers", "-f", inFile(t, "layers.yaml", layersText("- {name: a, patch: {maxPods: 1}}")))
	if layers, _ := b.pushedLayers(t); len(layers.Layers) != 1 {
		t.Errorf("an envelope by hand: %+v", layers)
	}
}

func TestPushLayersRefuses(t *testing.T) {
	for _, test := range []struct {
		arguments []string
		input     string
		want      string
	}{
		{[]string{"--set", "maxPodz=3"}, "", `--set maxPodz: there is no field "maxPodz"; do you mean maxPods?`},
		{[]string{"--set", "maxPods"}, "", "write FIELD=VALUE"},
		{[]string{"--set", "maxPods=many"}, "", "its value is a whole number (int32) or null"},
		{[]string{"--set", "maxPods=1,podsPerCore=2"}, "", "every field has a --set of its own"},
		{[]string{"--set", "failSwapOn=yes"}, "", "its value is true, false or null"},
		{[]string{"--set", "memoryThrottlingFactor=x"}, "", "its value is a number or null"},
		{[]string{"--set", "clusterDNS=10.0.0.1"}, "", "its value is a list in YAML, such as [a, b], or null"},
		{[]string{"--set", "clusterDNS=[a]\nx: b"}, "", "its value is a list in YAML"},
		{[]string{"--set", "clusterDNS=["}, "", "its value is YAML"},
		{[]string{"--set", "evictionHard=5%"}, "", "its value is a mapping in YAML"},
		{[]string{"--set", "registerWithTaints.key=a"}, "", "registerWithTaints is a list, which is set as a whole, in YAML: 'registerWithTaints=[{key: …}]'"},
		{[]string{"--set", "maxPods=1", "--set", "maxPods=2"}, "", "maxPods is set twice"},
		{[]string{"--set", "evictionHard=null", "--set", "evictionHard.a=1%"}, "", "evictionHard is set as a whole already"},
		{[]string{"--set", "syncFrequency=often"}, "", "has a fault in layer workers: syncFrequency: "},
		{[]string{"--set", "providerID=aws:///i-1"}, "", `layer workers: providerID: "aws:///i-1" belongs to one node`},
		{[]string{"--layer", "fleet"}, "", "--layer fleet: write NAME=FILE"},
		{[]string{"--layer", "Fleet=-"}, "maxPods: 1", "needs a name of at most 63 lower-case letters"},
		{[]string{"--layer", "a=-"}, "kind: Pod", "- has another kind than KubeletConfiguration"},
		{[]string{"--layer", "a=-"}, document.Header, "- sets nothing"},
		{[]string{"--layer", "a=-"}, "a: [", "- does not decode"},
		{[]string{"--layer", "a=-"}, layersText("- {name: a, patch: {}}"), "- is a configuration of layers already"},
		{[]string{"--overlay"}, "", "--overlay wants a file with -f"},
		{[]string{"--set", "maxPods=1", "-f", "-"}, "", "a file of -f needs --overlay"},
		{[]string{"--edit", "n1", "--set", "maxPods=1"}, "", "or a node with --edit"},
		{[]string{"--against", "n1"}, "", "give fields with --set, a file with -f or --layer, or a node with --edit"},
		{[]string{"-f", "-", "--against", "n1", "--overlay"}, "", "--against wants a file with -f alone"},
		{[]string{"-f", "-"}, layersText("- {name: a, patch: {maxPods: many}}"), "has a fault in layer a: maxPods: "},
		{[]string{"-f", "-"}, layersText("- {name: a, patsch: {}}"), `key "kubelet" has a fault in layer 1: it has the unknown field "patsch"`},
		{[]string{"-f", "-"}, layersText("- {name: a, patch: {podCIDR: 10.0.0.0/24}}", "- {name: b, patch: {podCIDR: null}}"), "layer a: podCIDR: "},
		{[]string{"-f", "-", "--strict"}, layersText("- {name: a, patch: {maxPodz: 1}}"), `field "maxPodz" is unknown to v0.37 (layer a) (--strict)`},
	} {
		t.Run(strings.Join(test.arguments, " ")+" "+test.want, func(t *testing.T) {
			b := newBench(t, knowing(localNode("n1")))
			b.input.WriteString(test.input)
			code, _, stderr := b.run(t, append([]string{"push", "workers"}, test.arguments...)...)
			if code != 1 || len(b.pushed(t, "")) != 0 {
				t.Errorf("exit code %d, %d ConfigMaps; want 1 and none", code, len(b.pushed(t, "")))
			}
			contains(t, stderr, test.want)
		})
	}
}

// What is edited becomes a layer with just what was changed, whatever the node runs with besides.
func TestPushEditMakesALayer(t *testing.T) {
	whole, old := configMapOf("whole", document.Header+"maxPods: 20\nsyncFrequency: 2m\n"), configMapOf("old", layersText("- {name: fleet, patch: {syncFrequency: 2m}}", "- {name: workers, patch: {podsPerCore: 7, oomScoreAdj: null}}"))
	whole.Data["ca.crt"] = "CA"
	runs := func(active *corev1.ConfigMap) *corev1.Node {
		return knowing(saying(newNode("n1"), "", "Active", corev1.ConditionTrue, "", active, active))
	}
	for name, test := range map[string]struct {
		node  *corev1.Node
		edit  func(string) string
		want  string // of layers
		whole string // or of a whole file
		words string
	}{
		"a value": {knowing(localNode("n1")), func(s string) string { return strings.Replace(s, "maxPods: 20", "maxPods: 42", 1) }, `workers (edit of n1) {"maxPods":42}`, "", "maxPods: 42 (disrupts-pods)"},
		"a line that is deleted": {knowing(localNode("n1")), func(s string) string { return strings.Replace(s, "maxPods: 20\n", "", 1) },
			`workers (edit of n1) {"maxPods":null}`, "", "maxPods: null (disrupts-pods)"},
		"a line that is new": {knowing(localNode("n1")), func(s string) string { return s + "podsPerCore: 3\nevictionHard: {memory.available: 1Gi}\n" },
			`workers (edit of n1) {"evictionHard":{"memory.available":"1Gi"},"podsPerCore":3}`, "", "with evictionHard, thresholds that neither"},
		"a default written out": {knowing(localNode("n1")), func(s string) string { return s + "kubeAPIBurst: 100\n" }, "", "", "Nothing is changed of what n1 runs with"},
		"over layers": {runs(configMapOf("other", layersText("- {name: fleet, patch: {syncFrequency: 2m}}"))), func(s string) string { return strings.Replace(s, "maxPods: 20", "maxPods: 42", 1) },
			"fleet () {\"syncFrequency\":\"2m\"}\nworkers (edit of n1) {\"maxPods\":42}", "", "Node n1 runs layers; they stay"},
		"over its own layer": {runs(old), func(s string) string { return strings.Replace(s, "maxPods: 20", "maxPods: 42", 1) },
			"fleet () {\"syncFrequency\":\"2m\"}\nworkers () {\"maxPods\":42,\"oomScoreAdj\":null,\"podsPerCore\":7}", "", "Node n1 runs layers; they stay"},
		"of a whole file": {runs(whole), func(s string) string { return strings.Replace(s, "maxPods: 20", "maxPods: 42", 1) },
			"", "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nmaxPods: 42\nsyncFrequency: 2m\n", "Node n1 runs a whole file, kubelet-config/whole/kubelet; what was changed is changed in it"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, test.node, whole.DeepCopy(), old.DeepCopy(), configMapOf("other", layersText("- {name: fleet, patch: {syncFrequency: 2m}}")))
			b.configz["maxPods"], b.configz["oomScoreAdj"], b.configz["resolvConf"] = int64(20), int64(-500), "/run/resolv.conf"
			b.input.WriteString("y\n")
			b.factory.Edit = func(file string) error { return rewrite(file, test.edit) }
			_, stderr := b.do(t, "push", "workers", "--edit", "n1")
			contains(t, stderr, test.words)
			if test.want != "" {
				if layers, _ := b.pushedLayers(t, "whole", "old", "other"); layersLine(layers) != test.want {
					t.Errorf("got\n%s\nwant\n%s", layersLine(layers), test.want)
				}
				return
			}
			made := slices.DeleteFunc(b.pushed(t, cmdutil.ConfigNamespace), func(c corev1.ConfigMap) bool { return !strings.HasPrefix(c.Name, "workers-") })
			if test.whole == "" && len(made) != 0 || test.whole != "" && (len(made) != 1 || made[0].Data["kubelet"] != test.whole || made[0].Data["ca.crt"] != "CA") {
				t.Errorf("made %+v", made)
			}
		})
	}
}

// A file that somebody made of what a node runs with carries nothing of it but what he changed.
func TestPushAgainst(t *testing.T) {
	b := newBench(t, knowing(localNode("n1")))
	b.configz["maxPods"], b.configz["providerID"], b.configz["resolvConf"] = int64(20), "aws:///i-1", "/run/resolv.conf"
	all, _ := b.do(t, "config", "n1")
	contains(t, all, "maxPods: 20", "providerID", "syncFrequency: 1m0s")
	file := inFile(t, "kubelet.yaml", strings.Replace(strings.Replace(all, "maxPods: 20", "maxPods: 42", 1), "resolvConf: /run/resolv.conf\n", "", 1))
	b.do(t, "push", "workers", "-f", file, "--against", "n1")
	if layers, _ := b.pushedLayers(t); layersLine(layers) != `workers (edit of n1) {"maxPods":42,"resolvConf":null}` {
		t.Errorf("got %s", layersLine(layers))
	}
}

// A supervisor that is too old for layers gets none.
func TestLayersNeedTheirFeature(t *testing.T) {
	b := newBench(t, localNode("n1"), knowing(localNode("n2")), newNode("n3"), configMapOf("workers", layersText("- {name: a, patch: {maxPods: 42}}")))
	b.answers(t, nil)
	b.factory.Edit = func(string) error { t.Error("something is edited"); return nil }
	code, _, stderr := b.run(t, "push", "new", "--edit", "n1")
	if code != 1 {
		t.Errorf("push: exit code %d", code)
	}
	contains(t, stderr, "the supervisor of node n1 is too old for layers (annotation kubelet-supervisor.io/status of the node does not name them): upgrade", "kubectl kubelet config n1 --changed")
	code, _, stderr = b.run(t, "assign", "n1", "n2", "n3", "--config=workers", "--yes", "--wait=false")
	if code != 1 || b.assigned(t, "n2") != "" {
		t.Errorf("assign: exit code %d", code)
	}
	contains(t, stderr, "the supervisor of node n1 is too old for layers")
	b.do(t, "assign", "n2", "n3", "--config=workers", "--yes", "--wait=false")
	if b.assigned(t, "n2") == "" || b.assigned(t, "n3") == "" {
		t.Error("it is not assigned where it may be")
	}
}

// diff, check, doctor, config and status take layers for what they are.
func TestLayersEverywhere(t *testing.T) {
	active := configMapOf("active", layersText("- {name: fleet, patch: {maxPods: 110}}"))
	next := configMapOf("next", layersText("- {name: fleet, patch: {maxPods: 3}}"))
	b := newBench(t, knowing(roomy(saying(assignedNode("n1", active), "kubelet-config/active/kubelet", "Active", corev1.ConditionTrue, "", active, active))), active, next,
		configMapOf("whole", document.Header+"syncFrequency: 2m\n"), knowing(roomy(saying(newNode("n2"), "", "Active", corev1.ConditionTrue, "", configMapOf("whole", ""), nil))))
	b.pods = runningPods(7)
	stdout, _ := b.do(t, "diff", "n1")
	contains(t, stdout, "n1 runs kubelet-config/active/kubelet; with kubelet-config/active/kubelet", "Nothing changes")
	code, stdout, _ := b.run(t, "diff", "n1", "--config=next")
	if code != 1 {
		t.Errorf("diff: exit code %d", code)
	}
	contains(t, stdout, "maxPods: 110 → 3", "Which fields those are is known of those alone that the layers set which the node runs", "4 of 7 running pods would be killed")
	if code, stdout, _ = b.run(t, "check", "n1", "--config=next"); code != 4 {
		t.Errorf("check: exit code %d, %s", code, stdout)
	}
	contains(t, stdout, "4 of 7 running pods would be killed")
	code, stdout, _ = b.run(t, "diff", "n2", "--config=next")
	if code != 1 {
		t.Errorf("diff from a whole file: exit code %d", code)
	}
	contains(t, stdout, "maxPods: 110 → 3", "The node runs a whole file. What the layers do not set becomes as the node's own file has it", "not counted, for the node alone knows its own file")
	stdout, _ = b.do(t, "config", "n1", "--changed")
	contains(t, stdout, "kind: KubeletConfiguration")
	stdout, _ = b.do(t, "status", "n1")
	contains(t, stdout, "kubelet-config/active/kubelet")
	b.answersReview(func(string, string) bool { return true })
	_, stdout, stderr := b.run(t, "doctor", "n1")
	contains(t, stdout+stderr, "ConfigMap kubelet-config/active is there, and key kubelet decodes")
}

func TestExplainFromOutside(t *testing.T) {
	active := configMapOf("active", layersText("- {name: fleet, from: KubeletPool workers, patch: {maxPods: 250, syncFrequency: 60s, resolvConf: r}}", "- {name: gpu, patch: {maxPods: 60, podsPerCore: 3, registerWithTaints: null}}"))
	other := active.DeepCopy()
	other.Name, other.ResourceVersion = "other", "8"
	n2 := saying(newNode("n2"), "", "Active", corev1.ConditionTrue, "", other, nil)
	other.ResourceVersion = "9"
	b := newBench(t, saying(newNode("n1"), "", "Active", corev1.ConditionTrue, "", active, active), localNode("n3"), n2, active, other)
	b.configz["maxPods"], b.configz["podsPerCore"], b.configz["resolvConf"] = int64(60), int64(9), "/s/checkpoints/uid-of-active/7/r"
	stdout, _ := b.do(t, "explain", "n1")
	if want := `n1 runs kubelet-config/active/kubelet:
maxPods: 60 ← layer gpu; disrupts-pods
    over 250 ← layer fleet (KubeletPool workers)
podsPerCore: 9 ← a flag or a drop-in file of the node, or the kubelet itself; disrupts-pods
    shadows 3 ← layer gpu
registerWithTaints: the kubelet's default; inert; since kubelet 1.23
    null ← layer gpu
resolvConf: "/s/checkpoints/uid-of-active/7/r" ← layer fleet (KubeletPool workers); needs-drain
syncFrequency: "60s" ← layer fleet (KubeletPool workers); safe
`; stdout != want {
		t.Errorf("got\n%s\nwant\n%s", stdout, want)
	}
	stdout, _ = b.do(t, "explain", "n3", "maxPods", `evictionHard.memory\.available`)
	contains(t, stdout, "n3 runs its own configuration:", `evictionHard.memory.available: "100Mi" ← the node's own file, a drop-in file, a flag or a default`, "maxPods: 60 ← the node's own file", "a change: ")
	_, stderr := b.do(t, "explain", "n3")
	contains(t, stderr, "Nothing is assigned. What its kubelet runs with is by")
	stdout, _ = b.do(t, "explain", "n3", "--all", "-o", "json")
	contains(t, stdout, `"field": "maxPods"`, `"value": 60`)
	for _, test := range []struct{ arguments, want string }{
		{"n3 maxPodz", `there is no field "maxPodz"; do you mean maxPods?`},
		{"n2", "ConfigMap kubelet-config/other was changed since the node took it"},
		{"n3 -o yaml", "-o yaml is not known"},
		{"n4", "n4"},
	} {
		code, _, stderr := b.run(t, append([]string{"explain"}, strings.Fields(test.arguments)...)...)
		if code != 1 {
			t.Errorf("%s: exit code %d", test.arguments, code)
		}
		contains(t, stderr, test.want)
	}
	b.configz = nil
	if code, _, _ := b.run(t, "explain", "n1"); code != 1 {
		t.Errorf("a kubelet that is silent: exit code %d", code)
	}
}
