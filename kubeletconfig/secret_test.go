package kubeletconfig

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// What the field table calls secret is masked, wherever it is, and a mask is known as one.
func TestMasked(t *testing.T) {
	for name, row := range map[string]struct {
		document string
		want     string
		fields   []string
	}{
		"headers":             {"staticPodURLHeader: {A: [s3cret, s3cret], B: []}", `{"staticPodURLHeader":{"A":["<masked>","<masked>"],"B":[]}}`, []string{"staticPodURLHeader.A"}},
		"headers of one kind": {"staticPodURLHeader: s3cret", `{"staticPodURLHeader":"<masked>"}`, []string{"staticPodURLHeader"}},
		"a misspelt name":     {"staticPodURLHeaders: {A: [s3cret]}\nmaxPods: 3", `{"maxPods":3,"staticPodURLHeaders":{"A":["<masked>"]}}`, []string{"staticPodURLHeaders.A"}},
		"a number":            {"staticPodURLHeader: {A: [1]}", `{"staticPodURLHeader":{"A":["<masked>"]}}`, []string{"staticPodURLHeader.A"}},
		"a URL":               {"staticPodURL: https://host/?token=s3cret", `{"staticPodURL":"<masked>"}`, []string{"staticPodURL"}},
		"a user in a URL": {"imageServiceEndpoint: tcp://me:s3cret@host/x", `{"imageServiceEndpoint":"tcp://<masked>@host/x"}`,
			[]string{"imageServiceEndpoint"}},
		"a name":                   {`staticPodURLHeader: {"Authorization: Bearer s3cret": [x], t0ken: [], Cookie: []}`, `{"staticPodURLHeader":{"<masked>":[],"Cookie":[]}}`, []string{"staticPodURLHeader.<masked>"}},
		"an unknown name":          {"staticPodURLHeaders: {A: {t0ken: 1}}", `{"staticPodURLHeaders":{"A":{"<masked>":1}}}`, []string{"staticPodURLHeaders.A.<masked>"}},
		"a name below a structure": {`logging: {"Bearer s3cret": 1, verbosity: 2}`, `{"logging":{"<masked>":1,"verbosity":2}}`, []string{"logging.<masked>"}},
		"a password with a slash":  {"imageServiceEndpoint: tcp://me:s3/cr et@host/x", `{"imageServiceEndpoint":"tcp://<masked>@host/x"}`, []string{"imageServiceEndpoint"}},
		"a grace period":           {"evictionSoftGracePeriod: {memory.available: s3cret, nodefs.available: 1m30s}", `{"evictionSoftGracePeriod":{"memory.available":"<masked>","nodefs.available":"1m30s"}}`, []string{"evictionSoftGracePeriod.memory.available"}},
		"an empty name":            {`{"": ["s3cret"]}`, `{"":["<masked>"]}`, []string{""}},
		"a null":                   {"staticPodURL: null", `{"staticPodURL":null}`, nil},
		"nothing secret":           {"maxPods: 60\nclusterDNS: [10.0.0.10]", `{"clusterDNS":["10.0.0.10"],"maxPods":60}`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			tree, err := Decode([]byte(row.document))
			if err != nil {
				t.Fatal(err)
			}
			before, err := json.Marshal(tree)
			if err != nil {
				t.Fatal(err)
			}
			masked := Masked(tree)
			var text strings.Builder
			encoder := json.NewEncoder(&text)
			encoder.SetEscapeHTML(false)
			if err := encoder.Encode(masked); err != nil || strings.TrimSpace(text.String()) != row.want {
				t.Errorf("%v: %s, want %s", err, text.String(), row.want)
			}
			if after, err := json.Marshal(tree); err != nil || string(after) != string(before) {
				t.Errorf("%v: the configuration itself is changed to %s", err, after)
			}
			if fields := MaskedFields(masked); !slices.Equal(fields, row.fields) {
				t.Errorf("the masked fields are %q, want %q", fields, row.fields)
			}
			if fields := MaskedFields(tree); len(fields) > 0 {
				t.Errorf("%q are called masked before", fields)
			}
		})
	}
}

// A name is shown where it is one, and masked where it may be a value.
func TestShowPath(t *testing.T) {
	for path, want := range map[string]string{
		"maxPods": "maxPods", "evictionHard.memory.available": "evictionHard.memory.available", "authentication.x509.clientCAFile": "authentication.x509.clientCAFile",
		"featureGates.A1": "featureGates.A1", "staticPodURLHeader": "staticPodURLHeader", "staticPodURLHeader.X-Auth-Token": "staticPodURLHeader.X-Auth-Token",
		"staticPodURLHeader.a: b": "staticPodURLHeader.<masked>", "staticPodURLHeader.eyJ0.a.b": "staticPodURLHeader.<masked>",
		"staticPodURLHeader." + strings.Repeat("x", 41): "staticPodURLHeader.<masked>", "unknown1": "unknown1", "unknown1.t0ken": "unknown1.<masked>",
		"unknown1.a.b": "unknown1.a.b", "tracing.endpoints.t0ken": "tracing.endpoints.<masked>", "reservedMemory[0].limits.hugepages-2Mi": "reservedMemory[0].limits.hugepages-2Mi", "": "",
		"logging.Bearer s3cret": "logging.<masked>", "logging.unheardOf": "logging.unheardOf", "evictionHard.a1": "evictionHard.a1", "authentication.x509": "authentication.x509",
	} {
		if got := ShowPath(path); got != want {
			t.Errorf("%s is shown as %s, want %s", path, got, want)
		}
	}
}

// Each field that the table calls secret is hidden, with what is in it; and so is text of a field that no kubelet knows.
func TestHides(t *testing.T) {
	secrets := 0
	for _, field := range Fields() {
		if field.Secret {
			secrets++
			if !Hides(field.Path, "x") || !Hides(field.Path+".X", []any{"x"}) || Hides(field.Path, nil) {
				t.Errorf("%s is shown, or its null is not", field.Path)
			}
		}
	}
	if secrets == 0 {
		t.Error("the field table calls nothing secret")
	}
	for path, value := range map[string]any{"imageServiceEndpoint": "tcp://me:s3cret@host", "syncFrequency": "t0ken", "staticPodURLHeaders": "x", "staticPodURlHeader": map[string]any{"A": []any{"x"}},
		"registerWithTaints": []any{map[string]any{"key": "a", "sekret": "x"}}, "evictionSoftGracePeriod.memory.available": "t0ken", "containerRuntimeEndpoint": "tcp://me:s3/cret@host"} {
		if !Hides(path, value) {
			t.Errorf("%s: %v is shown", path, value)
		}
	}
	for path, value := range map[string]any{"maxPods": json.Number("1"), "maxPodz": json.Number("1"), "syncFrequency": "1h30m", "fileCheckFrequency": "1 minute", "clusterDomain": "x", "evictionHard.memory.available": "1Gi", "staticPodPath": "/x"} {
		if Hides(path, value) {
			t.Errorf("%s: %v is hidden", path, value)
		}
	}
}

// A name with very many dots takes no time: whoever may write a ConfigMap chooses it.
func TestAPathOfManyNames(t *testing.T) {
	path := strings.Repeat("a.", 400_000) + "a"
	tree := map[string]any{path: map[string]any{path: "s3cret"}}
	if text := fmt.Sprint(Masked(tree)); strings.Contains(text, "s3cret") {
		t.Error("it shows the value")
	}
	if shown := ShowPath(path); len(shown) > len(path) {
		t.Errorf("it shows %d bytes", len(shown))
	}
	if warnings := Warnings(map[string]string{"kubelet": `{"` + path + `": 1}`}, "kubelet", 36); len(warnings) == 0 {
		t.Error("it is not warned of")
	}
	for _, field := range Fields() {
		if len(field.Path) > longestPath {
			t.Errorf("%s is longer than longestPath", field.Path)
		}
	}
}
