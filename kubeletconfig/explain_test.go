package kubeletconfig

import (
	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig/commandline"
)

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// explained is a node with a file, drop-in files and flags, and a payload over them.
func explained(t *testing.T, file string, dropIns map[string]string, flags []string, payload map[string]string) Sources {
	t.Helper()
	argv := withDropIns(t, dropIns, flags)
	if file != "" {
		argv = append(argv, "--config="+written(t, "kubelet.yaml", header+file))
	}
	return Sources{Arguments: argv, Payload: payload, Key: "kubelet", Folder: "/checkpoint", Base: func() (Base, error) { return ReadBase(argv) }}
}

func layered(layers ...string) map[string]string {
	return map[string]string{"kubelet": envelope("layers:\n" + strings.Join(layers, "\n"))}
}

func explainText(t *testing.T, s Sources) string {
	t.Helper()
	list, err := s.Explain()
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for _, e := range list {
		text.WriteString(e.Text(false))
	}
	return text.String()
}

func TestExplain(t *testing.T) {
	fleet, gpu := "- {name: fleet, from: KubeletPool workers, patch: {maxPods: 250}}", "- {name: gpu, patch: {maxPods: 60}}"
	for name, test := range map[string]struct {
		file    string
		dropIns map[string]string
		flags   []string
		payload map[string]string
		told    string
		want    string
	}{
		"local":   {file: "maxPods: 110\n", want: "maxPods: 110 ← local file; disrupts-pods\n"},
		"a layer": {file: "maxPods: 110\n", payload: layered(fleet), want: "maxPods: 250 ← layer fleet (KubeletPool workers); disrupts-pods\n    over 110 ← local file\n"},
		"two layers": {file: "maxPods: 110\n", payload: layered(fleet, gpu),
			want: "maxPods: 60 ← layer gpu; disrupts-pods\n    over 250 ← layer fleet (KubeletPool workers)\n    over 110 ← local file\n"},
		"a flag shadows": {file: "maxPods: 110\n", flags: []string{"--max-pods=20"}, payload: layered(fleet),
			want: "maxPods: 20 ← flag --max-pods; disrupts-pods\n    shadows 250 ← layer fleet (KubeletPool workers)\n    shadows 110 ← local file\n"},
		"a drop-in and a flag": {file: "maxPods: 110\n", dropIns: map[string]string{"a.conf": "maxPods: 30\n"}, flags: []string{"--max-pods=20"},
			want: "maxPods: 20 ← flag --max-pods; disrupts-pods\n    over 30 ← drop-in a.conf\n    shadows 110 ← local file\n"},
		"the last of two drop-ins": {file: "\n", dropIns: map[string]string{"a.conf": "maxPods: 30\n", "b.conf": "maxPods: 40\n"},
			want: "maxPods: 40 ← drop-in b.conf; disrupts-pods\n    over 30 ← drop-in a.conf\n"},
		"a null": {file: "registerWithTaints: [{key: a}]\n", payload: layered("- {name: gpu, patch: {registerWithTaints: null}}"),
			want: "registerWithTaints: the kubelet's default; inert; since kubelet 1.23\n    null ← layer gpu\n    took away [{\"key\":\"a\"}] ← local file\n"},
		"a null of a map": {file: "evictionHard: {a: 1%, b: 2%}\n", payload: layered("- {name: x, patch: {evictionHard: null}}", "- {name: z, patch: {evictionHard: {b: 3%}}}"),
			want: "evictionHard.a: the kubelet's default; disrupts-pods\n    null ← layer x\n    took away \"1%\" ← local file\n" +
				"evictionHard.b: \"3%\" ← layer z; disrupts-pods\n    null ← layer x\n    took away \"2%\" ← local file\n"},
		"a null of nothing": {file: "maxPods: 1\n", payload: layered("- {name: x, patch: {registerWithTaints: null}}"),
			want: "maxPods: 1 ← local file; disrupts-pods\nregisterWithTaints: the kubelet's default; inert; since kubelet 1.23\n    null ← layer x\n"},
		"a drop-in's null": {file: "maxPods: 1\n", dropIns: map[string]string{"a.conf": "maxPods: null\n"},
			want: "maxPods: the kubelet's default; disrupts-pods\n    null ← drop-in a.conf\n    took away 1 ← local file\n"},
		"an empty map": {file: "evictionHard: {}\n", want: "evictionHard: {} ← local file; disrupts-pods\n"},
		"an empty map that is filled": {file: "evictionHard: {}\n", payload: layered("- {name: x, patch: {evictionHard: {a: 1%}}}"),
			want: "evictionHard.a: \"1%\" ← layer x; disrupts-pods\n"},
		"the last of a map": {file: "evictionHard: {a: 1%}\n", payload: layered("- {name: x, patch: {evictionHard: {a: null}}}"),
			want: "evictionHard: {} ← layer x; disrupts-pods\nevictionHard.a: the kubelet's default; disrupts-pods\n    null ← layer x\n    took away \"1%\" ← local file\n"},
		"lists": {file: "clusterDNS: [a, b]\n", payload: layered("- {name: x, patch: {clusterDNS: [c]}}"),
			want: "clusterDNS: [\"c\"] ← layer x; needs-drain\n    over [\"a\",\"b\"] ← local file\n"},
		"a whole file": {file: "maxPods: 1\nfeatureGates: {A: true, B: true}\n", payload: map[string]string{"kubelet": header + "syncFrequency: 1m\nfeatureGates: {A: false}\n"},
			want: "featureGates.A: false ← assigned file; may-break-node\nfeatureGates.B: true ← local file; may-break-node\nsyncFrequency: \"1m\" ← assigned file; safe\n"},
		"layers without a base": {file: "maxPods: 1\nfeatureGates: {A: true}\n", payload: map[string]string{"kubelet": envelope("base: None", "layers: [{name: x, patch: {syncFrequency: 1m}}]")},
			want: "featureGates.A: true ← local file; may-break-node\nsyncFrequency: \"1m\" ← layer x; safe\n"},
		"gates of a flag": {file: "featureGates: {A: true, B: true}\n", flags: []string{"--feature-gates=B=false"},
			want: "featureGates.A: true ← local file; may-break-node\nfeatureGates.B: false ← flag --feature-gates; may-break-node\n    shadows true ← local file\n"},
		"a flag of a map": {file: "evictionHard: {a: 1%, b: 2%}\n", flags: []string{"--eviction-hard=b<3%"},
			want: "evictionHard.a: <unset> ← flag --eviction-hard; disrupts-pods\n    took away \"1%\" ← local file\nevictionHard.b: \"3%\" ← flag --eviction-hard; disrupts-pods\n    shadows \"2%\" ← local file\n"},
		"a flag that is not read": {file: "registerWithTaints: [{key: a}]\n", flags: []string{"--register-with-taints=b=:NoSchedule"},
			want: "registerWithTaints: (not read here) ← flag --register-with-taints; inert; since kubelet 1.23\n    shadows [{\"key\":\"a\"}] ← local file\n"},
		"a flag with no such value": {file: "maxPods: 1\n", flags: []string{"--max-pods=many", "--v=many"}, want: "maxPods: 1 ← local file; disrupts-pods\n"},
		"relative paths": {file: "staticPodPath: pods\nresolvConf: r\n", payload: layered("- {name: x, patch: {resolvConf: mine}}"),
			want: "resolvConf: \"/checkpoint/mine\" ← layer x; needs-drain\n    over \"FOLDER/r\" ← local file\nstaticPodPath: \"FOLDER/pods\" ← local file; disrupts-pods\n"},
		"local without --config": {flags: []string{"--read-only-port=0"},
			want: "authentication.anonymous.enabled: true ← default of a kubelet without --config; may-break-node\nauthentication.webhook.enabled: false ← default of a kubelet without --config; may-break-node\n" +
				"authorization.mode: \"AlwaysAllow\" ← default of a kubelet without --config; may-break-node\nreadOnlyPort: 0 ← flag --read-only-port; may-break-node\n    shadows 10255 ← default of a kubelet without --config\n"},
		"layers without --config": {payload: layered("- {name: x, patch: {readOnlyPort: 0}}"),
			want: "authentication.anonymous.enabled: true ← default of a kubelet without --config; may-break-node\nauthentication.webhook.enabled: false ← default of a kubelet without --config; may-break-node\n" +
				"authorization.mode: \"AlwaysAllow\" ← default of a kubelet without --config; may-break-node\nreadOnlyPort: 0 ← layer x; may-break-node\n    over 10255 ← default of a kubelet without --config\n"},
		"as the kubelet tells": {file: "maxPods: 1\nsyncFrequency: 60s\ncgroupDriver: cgroupfs\n", payload: layered("- {name: x, patch: {maxPods: null}}"),
			told: `{"maxPods":110,"syncFrequency":"1m0s","cgroupDriver":"systemd","podsPerCore":0}`,
			want: "cgroupDriver: \"cgroupfs\" ← local file; inert\n    the kubelet makes it \"systemd\"\nmaxPods: 110 ← default; disrupts-pods\n    null ← layer x\n    took away 1 ← local file\n" +
				"podsPerCore: 0 ← default; disrupts-pods\nsyncFrequency: \"60s\" ← local file; safe\n"},
		"what no kubelet knows": {file: "maxPodz: 1\n", want: "maxPodz: 1 ← local file; no kubelet knows this field\n"},
		"a key of a map":        {file: "kubeReserved: {cpu: \"1\"}\n", want: "kubeReserved.cpu: \"1\" ← local file; disrupts-pods\n"},
	} {
		t.Run(name, func(t *testing.T) {
			s := explained(t, test.file, test.dropIns, test.flags, test.payload)
			if test.told != "" {
				s.Told = told(t, test.told)
			}
			got := explainText(t, s)
			if folder := filepath.Dir(commandline.Parse(s.Arguments).Config); folder != "." {
				got = strings.ReplaceAll(got, folder, "FOLDER")
			}
			if got != test.want {
				t.Errorf("got\n%s\nwant\n%s", got, test.want)
			}
		})
	}
}

// Secrets are shown by nobody, and no value fills a screen.
func TestExplainShowsNoSecrets(t *testing.T) {
	const secret = "s3cret"
	s := explained(t, "staticPodURL: https://me:s3cret@host/\nstaticPodURLHeader: {Authorization: [s3cret]}\nimageServiceEndpoint: tcp://me:s3cret@host\nstaticPodURLHeaders: s3cret\nregisterWithTaints: [{key: a, sekret: s3cret}]\nclusterDomain: "+strings.Repeat("x", 500)+"\n",
		map[string]string{"a.conf": "staticPodURL: s3cret\n"}, []string{"--manifest-url-header=a:s3cret"}, layered("- {name: x, patch: {staticPodURL: s3cret, clusterDomain: \"a\\nb\\e[2J\"}}"))
	s.Told = told(t, `{"staticPodURL":"s3cret2"}`)
	list, err := s.Explain()
	if err != nil {
		t.Fatal(err)
	}
	forMachines, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	text := explainText(t, s)
	if strings.Contains(text, secret) || strings.Contains(string(forMachines), secret) || strings.Contains(text, strings.Repeat("x", 200)) || strings.Contains(text, "\x1b") {
		t.Errorf("%s\n%s", text, forMachines)
	}
	if !strings.Contains(text, "over \"xxx") || !strings.Contains(text, "…") {
		t.Errorf("a long value is not cut:\n%s", text)
	}
}

func TestExplainForMachines(t *testing.T) {
	s := explained(t, "maxPods: 110\n", nil, []string{"--max-pods=20"}, layered("- {name: x, from: there, patch: {maxPods: 250}}"))
	list, err := s.Explain()
	if err != nil || len(list) != 1 {
		t.Fatalf("%v, %v", list, err)
	}
	text, err := json.Marshal(list[0])
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"field":"maxPods","value":20,"setBy":{"kind":"flag","name":"--max-pods"},"over":[{"value":250,"setBy":{"kind":"layer","name":"x","from":"there"},"shadowed":true},` +
		`{"value":110,"setBy":{"kind":"local"},"shadowed":true}],"class":"disrupts-pods","effect":`
	if !strings.HasPrefix(string(text), want) {
		t.Errorf("%s", text)
	}
}

func TestExplainErrors(t *testing.T) {
	for want, s := range map[string]Sources{
		`key "kubelet" needs a list of 1 to 16 layers`:         explained(t, "maxPods: 1\n", nil, nil, map[string]string{"kubelet": envelope()}),
		`key "kubelet" is of another kind`:                     explained(t, "", nil, nil, map[string]string{"kubelet": "kind: Pod"}),
		`key "kubelet" is missing from the ConfigMap`:          explained(t, "", nil, nil, map[string]string{}),
		"the node's own configuration file does not decode as": explained(t, "{", nil, nil, layered("- {name: x, patch: {}}")),
	} {
		if _, err := s.Explain(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func TestSimilarField(t *testing.T) {
	for path, want := range map[string]string{
		"maxPodz": "maxPods", "MaxPods": "maxPods", "--max-pods": "maxPods", "max_pods": "maxPods", "anonymous.enabled": "authentication.anonymous.enabled", "evictionhard": "evictionHard",
		"somethingElseAltogether": "", "": "", strings.Repeat("x", 1000): "", "webhook.cacheTTL": "authentication.webhook.cacheTTL",
	} {
		if got := similarField(path); got != want {
			t.Errorf("%.20q: %q, want %q", path, got, want)
		}
	}
	for path, want := range map[string]bool{"maxPods": true, "evictionHard": true, "evictionHard.memory.available": true, "maxPods.x": false, "authentication": true, "authentication.x": false, "featureGates.A": true, "": false} {
		if IsField(path) != want {
			t.Errorf("%q is a field: %v", path, !want)
		}
	}
}

// What explain says of the fields of a file is what is in the file that the kubelet is started with: neither more nor less.
func FuzzExplain(f *testing.F) {
	f.Add(`{"a":1,"b":{"c":null},"featureGates":{"A":true}}`, `{"b":{"c":2},"staticPodPath":"x"}`, `{"b":null,"d":[null],"b2":{}}`, true)
	f.Add(`{"evictionHard":{}}`, `{"evictionHard":{"a":"1"}}`, `{"evictionHard":{"a":null}}`, true)
	f.Add(`{"evictionHard":{"x":"1%"},"resolvConf":"y"}`, `{"evictionHard":null}`, `{"evictionHard":{"y":"2%","z":null}}`, false)
	f.Fuzz(func(t *testing.T, base, first, second string, over bool) {
		var trees [3]map[string]any
		for i, text := range []string{base, first, second} {
			tree, err := Decode([]byte(text))
			if err != nil || !isJSON([]byte(text)) || strings.Contains(text, `\u0000`) {
				t.Skip()
			}
			tree["kind"], tree["apiVersion"] = kind, apiVersion
			trees[i] = tree
		}
		document := func(v any) string {
			text, err := json.Marshal(v)
			if err != nil {
				t.Skip()
			}
			return string(text)
		}
		file := filepath.Join(t.TempDir(), "own.yaml")
		if err := os.WriteFile(file, []byte(document(trees[0])), 0o600); err != nil {
			t.Fatal(err)
		}
		argv := []string{"--config=" + file}
		envelope := map[string]any{"kind": LayersKind, "apiVersion": LayersAPIVersion, "base": map[bool]string{true: BaseLocal, false: BaseNone}[over], "layers": []any{
			map[string]any{"name": "a", "patch": trees[1]}, map[string]any{"name": "b", "patch": trees[2]}}}
		s := Sources{Arguments: argv, Payload: map[string]string{"k": document(envelope)}, Key: "k", Folder: "/checkpoint", Base: func() (Base, error) { return ReadBase(argv) }}
		composed, err := Compose(s.Payload, s.Key, s.Base)
		if err != nil {
			t.Fatal(err)
		}
		rendered, err := composed.Render(s.Folder, argv)
		if err != nil {
			t.Skip()
		}
		tree, err := Decode(rendered)
		if err != nil {
			t.Fatal(err)
		}
		list, err := s.Explain()
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]any{}
		for _, e := range list {
			if e.By.Kind != ByDefault {
				got[strings.Join(e.Path, betweenSteps)] = e.Value
			}
			_ = e.Text(true)
		}
		if want := flat(tree, false); !reflect.DeepEqual(got, want) {
			t.Errorf("explain says\n%v\nand the file has\n%v", got, want)
		}
	})
}
