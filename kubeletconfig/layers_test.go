package kubeletconfig

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
)

const whole = "kind: KubeletConfiguration\napiVersion: kubelet.config.k8s.io/v1beta1\n"

func baseOf(document string) func() (Base, error) {
	return func() (Base, error) {
		return BaseOf([]string{"--config=/etc/kubelet/config.yaml"}, []byte(whole+document)), nil
	}
}

func noBase() (Base, error) { return Base{}, errors.New("nobody may ask for a base") }

func envelope(lines ...string) string {
	return "kind: KubeletConfigurationLayers\napiVersion: kubelet-supervisor.io/v1alpha1\n" + strings.Join(lines, "\n") + "\n"
}

func layersOf(base string, patches ...string) map[string]string {
	lines := []string{"base: " + base, "layers:"}
	for i, patch := range patches {
		lines = append(lines, fmt.Sprintf("- {name: l%d, patch: %s}", i, patch))
	}
	return map[string]string{"kubelet": envelope(lines...)}
}

func TestCompose(t *testing.T) {
	for name, row := range map[string]struct {
		payload map[string]string
		base    string
		want    string // of the whole file
	}{
		"a field over the node's own":       {layersOf("Local", "{maxPods: 250}"), "maxPods: 110\nclusterDomain: a", "maxPods: 250\nclusterDomain: a"},
		"maps merge":                        {layersOf("Local", "{evictionHard: {a: 1%}}"), "evictionHard: {a: 2%, b: 3%}", "evictionHard: {a: 1%, b: 3%}"},
		"lists replace":                     {layersOf("Local", "{clusterDNS: [b]}"), "clusterDNS: [a, c]", "clusterDNS: [b]"},
		"null deletes":                      {layersOf("Local", "{clusterDomain: null}"), "clusterDomain: a", ""},
		"what is not there":                 {layersOf("Local", "{clusterDomain: null}"), "maxPods: 1", "maxPods: 1"},
		"a map over something else":         {layersOf("Local", "{logging: {format: json}}"), "logging: 7", "logging: {format: json}"},
		"the later wins":                    {layersOf("Local", "{maxPods: 1}", "{maxPods: 2}"), "", "maxPods: 2"},
		"a null between two layers":         {layersOf("Local", "{evictionHard: {a: 1%}}", "{evictionHard: null}", "{evictionHard: {b: 2%}}"), "evictionHard: {c: 3%}", "evictionHard: {b: 2%}"},
		"a null in a list stays":            {layersOf("Local", "{clusterDNS: [null, a]}"), "", "clusterDNS: [null, a]"},
		"a null of the node's own stays":    {layersOf("Local", "{maxPods: 2}"), "evictionHard: null", "evictionHard: null\nmaxPods: 2"},
		"paths of the node's own":           {layersOf("Local", "{maxPods: 1}"), "staticPodPath: manifests", "staticPodPath: /etc/kubelet/manifests\nmaxPods: 1"},
		"paths of a layer":                  {layersOf("Local", "{staticPodPath: pods}"), "staticPodPath: manifests", "staticPodPath: pods"},
		"no base":                           {layersOf("None", "{maxPods: 1}"), "maxPods: 9\nclusterDomain: a", "maxPods: 1"},
		"numbers keep their digits":         {layersOf("None", "{maxPods: 12345678901234567890}"), "", "maxPods: 12345678901234567890"},
		"kind and apiVersion in a patch":    {layersOf("None", "{kind: KubeletConfiguration, apiVersion: kubelet.config.k8s.io/v1beta1}"), "", ""},
		"the base is Local where none said": {map[string]string{"kubelet": envelope("layers: [{name: a, from: somewhere, patch: {maxPods: 1}}]")}, "clusterDomain: a", "maxPods: 1\nclusterDomain: a"},
		"JSON": {map[string]string{"kubelet": `{"kind":"KubeletConfigurationLayers","apiVersion":"kubelet-supervisor.io/v1alpha1","layers":[{"name":"a","patch":{"maxPods":1}}]}`},
			"", "maxPods: 1"},
		"a name of 63": {map[string]string{"kubelet": envelope("layers: [{name: " + strings.Repeat("a", 63) + ", patch: {maxPods: 1}}]")}, "", "maxPods: 1"},
		"a whole file": {map[string]string{"kubelet": whole + "maxPods: 1"}, "maxPods: 2", "maxPods: 1"},
	} {
		t.Run(name, func(t *testing.T) {
			composed, err := Compose(row.payload, "kubelet", baseOf(row.base))
			if err != nil {
				t.Fatal(err)
			}
			want := Content(map[string]string{"kubelet": whole + row.want}, "kubelet")
			if composed.Content() != want || Content(composed.Payload, "kubelet") != want {
				t.Errorf("it is laid together to %s", composed.Payload["kubelet"])
			}
		})
	}
}

// What is laid together is no other configuration for its names, comments or order of keys, nor for a base that changed where layers are.
func TestContentOfLayers(t *testing.T) {
	content := func(payload map[string]string, base string) Composed {
		composed, err := Compose(payload, "kubelet", baseOf(base))
		if err != nil {
			t.Fatal(err)
		}
		return composed
	}
	one := content(layersOf("Local", "{maxPods: 1, podPidsLimit: 5}"), "maxPods: 7")
	other := content(map[string]string{"kubelet": envelope("# a comment", "layers:", "- patch: {podPidsLimit: 5, maxPods: 1}", "  from: there", "  name: x")}, "maxPods: 8 # another")
	if one.Content() != other.Content() || one.Base == other.Base || one.Base == "" {
		t.Errorf("%+v and %+v", one, other)
	}
	beside := layersOf("Local", "{maxPods: 1}")
	beside["ca.pem"] = "x"
	if content(beside, "").Content() == content(layersOf("Local", "{maxPods: 1}"), "").Content() {
		t.Error("the other keys do not count")
	}
	// A whole file gets the gates of the node's own file added that it does not name (Render); of layers that is not so.
	if content(layersOf("Local", "{featureGates: {A: null}}"), "featureGates: {A: true}").Content() == Content(map[string]string{"kubelet": whole + "featureGates: {}"}, "kubelet") {
		t.Error("a gate that was taken away does not count")
	}
	if got := content(layersOf("None", "{maxPods: 1}"), ""); got.Base != "" {
		t.Errorf("without a base: %+v", got)
	}
}

func TestBadLayers(t *testing.T) {
	many := "layers: ["
	for i := range MaxLayers + 1 {
		many += fmt.Sprintf("{name: a%d, patch: {}},", i)
	}
	layer := func(fields string) []string { return []string{"layers: [{" + fields + "}]"} }
	for name, row := range map[string]struct {
		lines []string
		words string
	}{
		"no layers":             {nil, "needs a list of 1 to 16 layers"},
		"an empty list":         {[]string{"layers: []"}, "needs a list of 1 to 16 layers"},
		"too many":              {[]string{many + "]"}, "needs a list of 1 to 16 layers"},
		"another base":          {[]string{"base: Remote", "layers: [{name: a, patch: {}}]"}, "has another base than Local or None"},
		"a base that is a list": {[]string{"base: [Local]", "layers: [{name: a, patch: {}}]"}, "has another base"},
		"an unknown field":      {[]string{"bases: Local", "layers: [{name: a, patch: {}}]"}, `has the unknown field "bases"`},
		"a doubled field":       {[]string{"base: Local", "base: None", "layers: [{name: a, patch: {}}]"}, `has "base" twice`},
		"a doubled patch":       {[]string{"layers:", "- name: a", "  patch: {a: 1}", "  patch: {b: 1}"}, `has "patch" twice`},
		"another apiVersion":    {[]string{"apiVersion: v2"}, ""},
		"no name":               {layer("patch: {}"), "in layer 1: it needs a name"},
		"a name y":              {layer("name: y, patch: {}"), "in layer 1: it has the name true, which is a boolean, as y, n, yes, no, on and off are in YAML; put the name in quotes"},
		"a name off":            {layer("name: off, patch: {}"), "it has the name false, which is a boolean"},
		"a name 12":             {layer("name: 12, patch: {}"), "it has a number as its name; put the name in quotes"},
		"a name ~":              {layer("name: ~, patch: {}"), "it has null as its name"},
		"a name that is a list": {layer("name: [a], patch: {}"), "it has a name that is no text"},
		"a name of 64":          {layer("name: " + strings.Repeat("a", 64) + ", patch: {}"), "needs a name of at most 63"},
		"a name that ends in -": {layer("name: a-, patch: {}"), "needs a name of at most 63"},
		"a name with a dot":     {layer("name: a.b, patch: {}"), "needs a name of at most 63"},
		"two of a name":         {[]string{"layers: [{name: a, patch: {}}, {name: a, patch: {}}]"}, `in layer 2: it has the name of another one, "a"`},
		"no patch":              {layer("name: a"), "needs a patch"},
		"a patch of a list":     {layer("name: a, patch: [1]"), "needs a patch"},
		"an unknown field of a layer": {layer("name: a, patch: {}, when: now"),
			`in layer 1: it has the unknown field "when"`},
		"a from that is a number": {layer("name: a, patch: {}, from: 1"), "has a from that is no text"},
		"another kind":            {layer("name: a, patch: {kind: Pod}"), "patches kind, which may only be KubeletConfiguration"},
		"no kind":                 {layer("name: a, patch: {kind: null}"), "patches kind"},
		"another version":         {layer("name: a, patch: {apiVersion: v1}"), "patches apiVersion"},
		"a layer of text":         {[]string{"layers: [a]"}, "is no mapping with name and patch"},
	} {
		t.Run(name, func(t *testing.T) {
			payload := map[string]string{"kubelet": envelope(row.lines...)}
			composed, err := Compose(payload, "kubelet", noBase)
			if err != nil || composed.Content() != Content(payload, "kubelet") || composed.Base != "" {
				t.Errorf("%+v, %v", composed, err)
			}
			_, err = Render(composed.Payload, "kubelet", "/folder", nil)
			var load *LoadError
			if !errors.As(err, &load) || !strings.HasPrefix(load.Words, `key "kubelet" `) || !strings.Contains(load.Words, row.words) {
				t.Errorf("%v", err)
			}
		})
	}
}

// In quotes each of them is a name.
func TestNamesThatYAMLReadsOtherwise(t *testing.T) {
	names := []string{"y", "n", "yes", "no", "on", "off", "true", "null", "12", "1e3"}
	lines := []string{"layers:"}
	for _, name := range names {
		lines = append(lines, fmt.Sprintf("- {name: %q, patch: {}}", name))
	}
	read, err := ReadLayers([]byte(envelope(lines...)))
	if err != nil || len(read.Layers) != len(names) {
		t.Fatalf("%+v, %v", read, err)
	}
	for i, name := range names {
		if read.Layers[i].Name != name {
			t.Errorf("%q became %q", name, read.Layers[i].Name)
		}
	}
}

// In a patch a doubled field is a warning, as it is in a whole file.
func TestDoubledInPatch(t *testing.T) {
	for _, document := range []string{
		envelope("layers:", "- name: a", "  patch:", "    maxPods: 1", "    maxPods: 2"),
		`{"kind":"KubeletConfigurationLayers","apiVersion":"kubelet-supervisor.io/v1alpha1","layers":[{"name":"a","patch":{"maxPods":1,"maxPods":2}}]}`,
	} {
		if _, err := ReadLayers([]byte(document)); err != nil {
			t.Errorf("%s: %v", document, err)
		}
	}
	twice := `{"kind":"KubeletConfigurationLayers","apiVersion":"kubelet-supervisor.io/v1alpha1","layers":[{"name":"a","name":"b","patch":{}}]}`
	if _, err := ReadLayers([]byte(twice)); err == nil || !strings.Contains(err.Error(), "layers[0].name") {
		t.Errorf("doubled in a layer: %v", err)
	}
}

func TestBadBase(t *testing.T) {
	folder := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for name, path := range map[string]string{
		"missing":         filepath.Join(folder, "none"),
		"a folder":        folder,
		"no YAML":         file("broken", "{"),
		"of another kind": file("pod", "kind: Pod\napiVersion: v1\n"),
	} {
		_, err := Compose(layersOf("Local", "{maxPods: 1}"), "kubelet", func() (Base, error) { return ReadBase([]string{"--config", path}) })
		var fault *BaseError
		if !errors.As(err, &fault) || !strings.Contains(fault.Words, "the node's own configuration file") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A kubelet without --config keeps its authentication when a layer sets a field.
func TestBaseOfNoFile(t *testing.T) {
	composed, err := Compose(layersOf("Local", "{maxPods: 1}"), "kubelet", func() (Base, error) { return ReadBase(nil) })
	if err != nil {
		t.Fatal(err)
	}
	for _, words := range []string{`"anonymous":{"enabled":true}`, `"webhook":{"enabled":false}`, `"mode":"AlwaysAllow"`, `"readOnlyPort":10255`, `"maxPods":1`} {
		if !strings.Contains(composed.Payload["kubelet"], words) {
			t.Errorf("%s is not in %s", words, composed.Payload["kubelet"])
		}
	}
	if composed.Base != LocalContent(nil) {
		t.Errorf("base %s", composed.Base)
	}
}

// The digest of a base is what the core knows the local file by.
func TestDigestOfBase(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(path, []byte(whole), 0o600); err != nil {
		t.Fatal(err)
	}
	argv := []string{"--config=" + path}
	base, err := ReadBase(argv)
	if err != nil || base.Digest != LocalContent(argv) || base.Folder != filepath.Dir(path) {
		t.Errorf("%+v, %v; the local file is %s", base, err, LocalContent(argv))
	}
}

// Whatever the layers are, the result is that of another implementation, one layer after the other.
func FuzzCompose(f *testing.F) {
	f.Add(`{"a":1,"b":{"c":null}}`, `{"b":{"c":2}}`, `{"b":null,"d":[null]}`)
	f.Add(`{"evictionHard":{"x":"1%"}}`, `{"evictionHard":null}`, `{"evictionHard":{"y":"2%"}}`)
	f.Fuzz(func(t *testing.T, base, first, second string) {
		var trees [3]map[string]any
		for i, text := range []string{base, first, second} {
			tree, err := Decode([]byte(text))
			if err != nil || !isJSON([]byte(text)) {
				t.Skip()
			}
			delete(tree, "kind")
			delete(tree, "apiVersion")
			trees[i] = tree
		}
		own := map[string]any{"kind": kind, "apiVersion": apiVersion}
		for name, value := range trees[0] {
			own[name] = value
		}
		document := func(v any) []byte {
			text, err := json.Marshal(v)
			if err != nil {
				t.Skip()
			}
			return text
		}
		payload := map[string]string{"k": string(document(map[string]any{"kind": LayersKind, "apiVersion": LayersAPIVersion, "layers": []any{
			map[string]any{"name": "a", "patch": trees[1]}, map[string]any{"name": "b", "patch": trees[2]}}}))}
		composed, err := Compose(payload, "k", func() (Base, error) { return BaseOf(nil, document(own)), nil })
		if err != nil {
			t.Fatal(err)
		}
		want := document(own)
		for _, patch := range trees[1:] {
			if want, err = jsonpatch.MergePatch(want, document(patch)); err != nil {
				t.Skip()
			}
		}
		expected, err := Decode(want)
		if err != nil {
			t.Skip()
		}
		got, err := Decode([]byte(composed.Payload["k"]))
		if err != nil || !reflect.DeepEqual(got, expected) {
			t.Errorf("%s, want %s (%v)", composed.Payload["k"], want, err)
		}
	})
}
