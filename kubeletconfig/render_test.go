package kubeletconfig

import (
	"encoding/json"
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRender(t *testing.T) {
	const folder = "/var/lib/kubelet-supervisor/checkpoints/u/1"
	for name, test := range map[string]struct {
		document string
		gates    map[string]bool
		want     string // what is rendered besides kind and apiVersion, as JSON
	}{
		"nothing to change":            {"maxPods: 30\n", nil, `{"maxPods":30}`},
		"an unknown field stays":       {"maxPodz: {a: [1, null]}", nil, `{"maxPodz":{"a":[1,null]}}`},
		"no defaults, no zero values":  {"syncFrequency: 0s\nmaxPods: null", nil, `{"syncFrequency":"0s","maxPods":null}`},
		"comments and anchors resolve": {"# c\nevictionHard: &e {memory.available: 5%}\nevictionSoft: *e", nil, `{"evictionHard":{"memory.available":"5%"},"evictionSoft":{"memory.available":"5%"}}`},
		"the last of two equal keys":   {"maxPods: 1\nmaxPods: 2", nil, `{"maxPods":2}`},
		"numbers keep their digits":    {"a: 9223372036854775807\nb: 18446744073709551615\nc: 0.1", nil, `{"a":9223372036854775807,"b":18446744073709551615,"c":0.1}`},
		"characters are not escaped":   {"a: <&>é", nil, `{"a":"<&>é"}`},
		"relative paths": {
			"staticPodPath: manifests\npodLogsDir: ./logs\nauthentication: {x509: {clientCAFile: ca.crt}}\ntlsCertFile: a/../t.crt\ntlsPrivateKeyFile: t.key\nresolvConf: r.conf\nvolumePluginDir: ../p",
			nil,
			`{"staticPodPath":"/var/lib/kubelet-supervisor/checkpoints/u/1/manifests","podLogsDir":"/var/lib/kubelet-supervisor/checkpoints/u/1/logs",
			"authentication":{"x509":{"clientCAFile":"/var/lib/kubelet-supervisor/checkpoints/u/1/ca.crt"}},"tlsCertFile":"/var/lib/kubelet-supervisor/checkpoints/u/1/t.crt",
			"tlsPrivateKeyFile":"/var/lib/kubelet-supervisor/checkpoints/u/1/t.key","resolvConf":"/var/lib/kubelet-supervisor/checkpoints/u/1/r.conf","volumePluginDir":"/var/lib/kubelet-supervisor/checkpoints/u/p"}`,
		},
		"a relative path in JSON":            {`{"kind":"KubeletConfiguration","apiVersion":"kubelet.config.k8s.io/v1beta1","staticPodPath":"manifests"}`, nil, `{"staticPodPath":"/var/lib/kubelet-supervisor/checkpoints/u/1/manifests"}`},
		"absolute, empty and mistyped paths": {"staticPodPath: /m\nresolvConf: \"\"\ntlsCertFile: 7\nauthentication: x509", nil, `{"staticPodPath":"/m","resolvConf":"","tlsCertFile":7,"authentication":"x509"}`},
		"other paths are not the kubelet's":  {"kubeletCgroups: a/b\nserverTLSBootstrap: true", nil, `{"kubeletCgroups":"a/b","serverTLSBootstrap":true}`},
		"local gates are added":              {"maxPods: 1", map[string]bool{"A": true}, `{"maxPods":1,"featureGates":{"A":true}}`},
		"the payload's gates win":            {"featureGates: {A: false, B: true}", map[string]bool{"A": true, "C": false}, `{"featureGates":{"A":false,"B":true,"C":false}}`},
		"a null is no gates":                 {"featureGates: null", map[string]bool{"A": true}, `{"featureGates":{"A":true}}`},
		"mistyped gates are the kubelet's":   {"featureGates: [A]", map[string]bool{"A": true}, `{"featureGates":["A"]}`},
	} {
		t.Run(name, func(t *testing.T) {
			if !isJSON([]byte(test.document)) {
				test.document = header + test.document
			}
			rendered, err := Render(map[string]string{"kubelet": test.document}, "kubelet", folder, test.gates)
			if err != nil {
				t.Fatal(err)
			}
			got, want := tree(t, string(rendered)), tree(t, test.want)
			if got["kind"] != kind || got["apiVersion"] != apiVersion {
				t.Errorf("kind or apiVersion is lost: %v", got)
			}
			delete(got, "kind")
			delete(got, "apiVersion")
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("rendered (-want +got):\n%s", diff)
			}
			if strings.Contains(string(rendered), `\u003c`) {
				t.Errorf("HTML escapes in %s", rendered)
			}
		})
	}
}

func tree(t *testing.T, document string) map[string]any {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(document))
	decoder.UseNumber()
	var tree map[string]any
	if err := decoder.Decode(&tree); err != nil {
		t.Fatalf("decoding %s: %v", document, err)
	}
	return tree
}

func TestRenderIsDeterministic(t *testing.T) {
	gates := map[string]bool{"A": true, "B": true, "C": false, "D": true}
	yaml := map[string]string{"k": header + "maxPods: 1 # few\nfeatureGates: {Z: true, X: false}"}
	asJSON := map[string]string{"k": `{"featureGates":{"X":false,"Z":true},"maxPods":1,"kind":"KubeletConfiguration","apiVersion":"kubelet.config.k8s.io/v1beta1"}`}
	first, err := Render(yaml, "k", "/f", gates)
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		for _, payload := range []map[string]string{yaml, asJSON} {
			if again, err := Render(payload, "k", "/f", gates); err != nil || string(again) != string(first) {
				t.Fatalf("got %s, %v; before it was %s", again, err, first)
			}
		}
	}
}

func TestRenderRefuses(t *testing.T) {
	long := strings.Repeat("s3cret", 20_000)
	for name, test := range map[string]struct {
		payload map[string]string
		words   string // what the error says
	}{
		"a missing key":         {map[string]string{"other": header}, `key "kubelet" is missing from the ConfigMap; add it, or assign a key that is there`},
		"an empty key":          {map[string]string{"kubelet": ""}, `key "kubelet" is empty; it must hold a KubeletConfiguration`},
		"only comments":         {map[string]string{"kubelet": "# s3cret"}, `it is not a mapping`},
		"a list":                {map[string]string{"kubelet": "- s3cret"}, `it is not a mapping`},
		"a scalar":              {map[string]string{"kubelet": "s3cret"}, `it is not a mapping`},
		"bad YAML":              {map[string]string{"kubelet": header + "s3cret: a: b"}, `line 3: mapping values are not allowed in this context`},
		"bad indentation":       {map[string]string{"kubelet": header + "a:\n\ts3cret: b"}, `line 4: found character that cannot start any token`},
		"an alias of nothing":   {map[string]string{"kubelet": "*"}, `did not find expected alphabetic or numeric character`}, // upstream's bad YAML
		"a brace and an alias":  {map[string]string{"kubelet": "{*"}, `line 1 is not valid JSON`},                             // upstream's bad JSON
		"an unknown anchor":     {map[string]string{"kubelet": header + "a: *s3cret"}, `it is not valid YAML`},
		"an anchor in itself":   {map[string]string{"kubelet": header + "a: &s3cret [*s3cret]"}, `it is not valid YAML`},
		"a mapping as a key":    {map[string]string{"kubelet": header + "? {s3cret: 1}\n: 2"}, `it is not valid YAML`},
		"a null as a key":       {map[string]string{"kubelet": header + "null: s3cret"}, `it is not valid YAML`},
		"a bad tag":             {map[string]string{"kubelet": header + "a: !!int s3cret"}, `it is not valid YAML`},
		"not a JSON number":     {map[string]string{"kubelet": header + "a: .nan"}, `it is not valid YAML`},
		"bad JSON":              {map[string]string{"kubelet": "{\n\"kind\": s3cret}"}, `line 2 is not valid JSON`},
		"unfinished JSON":       {map[string]string{"kubelet": `{"kind": "s3cret`}, `it is not complete JSON`},
		"two JSON documents":    {map[string]string{"kubelet": `{} {"s3cret": 1}`}, `something follows the end of the JSON document`},
		"a YAML flow mapping":   {map[string]string{"kubelet": "{kind: KubeletConfiguration}"}, `line 1 is not valid JSON`}, // as the kubelet sees it
		"no kind":               {map[string]string{"kubelet": "apiVersion: kubelet.config.k8s.io/v1beta1\ns3cret: x"}, `key "kubelet" has no kind; add "kind: KubeletConfiguration"`},
		"another kind":          {map[string]string{"kubelet": "kind: s3cret"}, `is of another kind than KubeletConfiguration`},
		"a kind of kinds":       {map[string]string{"kubelet": "kind: [KubeletConfiguration]"}, `is of another kind`},
		"a kind in other case":  {map[string]string{"kubelet": "Kind: KubeletConfiguration"}, `has no kind`},
		"no apiVersion":         {map[string]string{"kubelet": "kind: KubeletConfiguration"}, `has no apiVersion; add "apiVersion: kubelet.config.k8s.io/v1beta1"`},
		"another apiVersion":    {map[string]string{"kubelet": "kind: KubeletConfiguration\napiVersion: kubelet.config.k8s.io/v1alpha1"}, `has another apiVersion than kubelet.config.k8s.io/v1beta1`},
		"many aliases":          {map[string]string{"kubelet": header + laughs()}, `document contains excessive aliasing`},
		"aliases to a long one": {map[string]string{"kubelet": header + "a: &a " + long + "\nb: [" + strings.Repeat("*a,", 1_000) + "*a]"}, `it is larger than 8 MiB when it is written out`},
		"aliases to deep ones":  {map[string]string{"kubelet": header + "a: &a " + brackets(60, "") + "\nb: " + brackets(60, "*a")}, `it is nested deeper than 100 levels`},
		"too deep for us":       {map[string]string{"kubelet": header + "a: " + brackets(9_000, "")}, `it is nested deeper than 100 levels`},
		"too deep, as JSON":     {map[string]string{"kubelet": `{"a":` + brackets(9_000, "") + "}"}, `it is nested deeper than 100 levels`},
		"much in the depth":     {map[string]string{"kubelet": header + "a: " + brackets(90, strings.Repeat("[],", 60_000))}, `it is larger than 8 MiB when it is written out`},
		"a flood of values":     {map[string]string{"kubelet": header + "a: [" + strings.Repeat("1,", 100_000) + "1]"}, `it has more than 100000 values`},
		"aliases to many":       {map[string]string{"kubelet": header + "a: &a [" + strings.Repeat("1,", 10_000) + "1]\nb: [" + strings.Repeat("*a,", 12) + "*a]"}, `it has more than 100000 values`},
		"deep nesting":          {map[string]string{"kubelet": strings.Repeat("[", 100_000)}, `exceeded max depth`},
		"deep JSON":             {map[string]string{"kubelet": strings.Repeat(`{"a":`, 100_000)}, `is not valid JSON`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Render(test.payload, "kubelet", "/f", nil)
			var refused *LoadError
			if !errors.As(err, &refused) {
				t.Fatalf("got error %v, want a LoadError", err)
			}
			if !strings.Contains(refused.Words, test.words) {
				t.Errorf("got %q, want %q in it", refused.Words, test.words)
			}
			if !strings.HasPrefix(refused.Words, `key "kubelet" `) || strings.Contains(refused.Words, "s3cret") {
				t.Errorf("%q does not name the key, or quotes the payload", refused.Words)
			}
		})
	}
}

func brackets(depth int, within string) string {
	return strings.Repeat("[", depth) + within + strings.Repeat("]", depth)
}

// laughs is a billion of them.
func laughs() string {
	var document strings.Builder
	document.WriteString("a0: &a0 [s3cret]\n")
	for level := range 12 {
		anchor, below := string(rune('b'+level)), string(rune('a'+level))
		if level == 0 {
			below = "a0"
		}
		document.WriteString(anchor + ": &" + anchor + " [" + strings.Repeat("*"+below+",", 9) + "*" + below + "]\n")
	}
	return document.String()
}

func FuzzRender(f *testing.F) {
	f.Add(header+"staticPodPath: a\nfeatureGates: {A: true}", "A")
	f.Add(`{"kind":"KubeletConfiguration","apiVersion":"kubelet.config.k8s.io/v1beta1","a":1e400}`, "B")
	f.Add("a: &a [*a]", "")
	f.Add("? [1]\n: 2", "")
	f.Add("!!binary \"\xff\"", "")
	f.Fuzz(func(t *testing.T, document, gate string) {
		gate = strings.ToValidUTF8(gate, "") // as all that comes from a decoded file
		payload := map[string]string{"kubelet": document}
		Content(payload, "kubelet")
		Warnings(payload, "kubelet", 0)
		rendered, err := Render(payload, "kubelet", "/f", map[string]bool{gate: true})
		if err != nil {
			if refused := (&LoadError{}); !errors.As(err, &refused) || Quote(refused.Words) != refused.Words {
				t.Fatalf("the error is not fit for people: %#v", err)
			}
			return
		}
		again, err := Render(map[string]string{"kubelet": string(rendered)}, "kubelet", "/other", nil)
		if err != nil || string(again) != string(rendered) {
			t.Fatalf("rendering what was rendered gives %s, %v instead of %s", again, err, rendered)
		}
	})
}

// What a few bytes with aliases come to is measured before it is written out: it would take more memory than the node may have.
func TestABombIsMeasuredBeforeItIsWrittenOut(t *testing.T) {
	bomb := header + "a: &a " + strings.Repeat("x", 50_000) + "\nb: [" + strings.Repeat("*a,", 2_000) + "*a]"
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := Decode([]byte(bomb))
	runtime.ReadMemStats(&after)
	if err == nil || !strings.Contains(err.Error(), "larger than 8 MiB when it is written out") {
		t.Errorf("got %v", err)
	}
	if used := (after.TotalAlloc - before.TotalAlloc) >> 20; used > 32 {
		t.Errorf("%d KiB that come to 100 MiB took %d MiB", len(bomb)>>10, used)
	}
}
