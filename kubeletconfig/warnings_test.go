package kubeletconfig

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/kubelet/config/v1beta1"
	sigsjson "sigs.k8s.io/json"
)

func TestWarnings(t *testing.T) {
	for name, test := range map[string]struct {
		document string
		kubelet  int // its minor version
		want     []string
	}{
		"fine":                   {header + "maxPods: 1\nfeatureGates: {Whatever: true}\nstaticPodURLHeader: {a: [b]}\nlogging: {vmodule: [{filePattern: a, verbosity: 1}]}", 0, nil},
		"an unknown field":       {header + "maxPodz: 1", 0, []string{`field "maxPodz" is unknown to v0.37`}},
		"an unknown field below": {header + "authentication: {x509: {clientCaFile: a}}", 0, []string{`field "authentication.x509.clientCaFile" is unknown to v0.37`}},
		"twice in YAML":          {header + "maxPods: 1\nmaxPods: 2", 0, []string{`field "maxPods" appears twice (line 4)`}},
		"twice in JSON":          {`{"kind":"KubeletConfiguration","maxPods":1,"maxPods":2}`, 0, []string{`field "maxPods" appears twice`}},
		"a long name is cut":     {header + strings.Repeat("x", 100) + ": 1", 0, []string{`field "` + strings.Repeat("x", 61) + `…" is unknown to v0.37`}},
		"does not decode":        {"[", 0, nil},
		"a second document":      {header + "maxPods: 35\n---\n" + header + "maxPods: 36", 0, []string{"the kubelet reads only the first YAML document and ignores the one from line 4 on"}},
		"and a third":            {"---\n" + header + "--- # kubeadm's\n\nkind: x\n---\nkind: y", 0, []string{"the kubelet reads only the first YAML document and ignores the one from line 4 on"}},
		"on the marker's line":   {header + "--- {a: b}", 0, []string{"the kubelet reads only the first YAML document and ignores the one from line 3 on"}},
		"after an end":           {header + "...\n%YAML 1.1\n---\na: b", 0, []string{"the kubelet reads only the first YAML document and ignores the one from line 3 on"}},
		"Windows' line ends":     {"---\r\n" + header + "---\r\na: b", 0, []string{"the kubelet reads only the first YAML document and ignores the one from line 4 on"}},
		"nothing follows":        {"# c\n--- \n" + header + "---\n\n  # nothing\n...\n", 0, nil},
		"a scalar with dashes":   {header + "staticPodURLHeader:\n  a:\n  - |\n    ---\n    b\nclusterDomain: ---\n", 0, nil},
		"dashes in JSON":         {`{"kind":"KubeletConfiguration","clusterDomain":"` + "a\n---\nb" + `"}`, 0, nil},
		"a wrong type":           {header + "maxPods: many\nauthentication: 7\nmaxPodz: 1", 0, []string{`field "maxPodz" is unknown to v0.37`}},
		"in an item of a list":   {header + "registerWithTaints: [{key: a}, {kee: a, effect: b}, c]", 0, []string{`field "registerWithTaints[1].kee" is unknown to v0.37`}},
		"in a value of a map":    {header + "evictionHard: {memory.availabel: 1}", 0, nil},
		"a path for a name":      {header + "authentication.anonymous: {}\nlogging: {options.json: 1}", 0, []string{`field "authentication.anonymous" is unknown to v0.37`, `field "logging.options.json" is unknown to v0.37`}},
		"another case":           {header + "MaxPods: 1\nauthentication: {Anonymous: {}}", 0, []string{`field "MaxPods" is unknown to v0.37`, `field "authentication.Anonymous" is unknown to v0.37`}},
		"newer than the kubelet": {header + "podLogsDir: /l\nuserNamespaces: {idsPerPod: 65536}\nmaxPodz: 1", 29, []string{`field "maxPodz" is unknown to v0.37`, `field "podLogsDir" is newer than kubelet 1.29: it came with 1.30`, `field "userNamespaces" is newer than kubelet 1.29: it came with 1.33`}},
		"not newer":              {header + "podLogsDir: /l", 30, nil},
		"older than the kubelet": {header + "logging: {sanitization: true}", 36, []string{`field "logging.sanitization" is gone since kubelet 1.24`}},
		"gone, kubelet unknown":  {header + "logging: {sanitization: true}", 0, []string{`field "logging.sanitization" is gone since kubelet 1.24`}},
		"not gone yet":           {header + "logging: {sanitization: true}", 23, nil},
		"twice below, in JSON":   {`{"kind":"KubeletConfiguration","evictionHard":{"a":"1","a":"2"},"registerWithTaints":[{"key":"a","key":"b"}]}`, 0, []string{`field "evictionHard.a" appears twice`, `field "registerWithTaints[0].key" appears twice`}},
		"a list":                 {"[a]", 0, nil},
		"a field of many ages":   {header + "dynamicConfigDir: /d", 0, []string{`field "dynamicConfigDir" is unknown to v0.37`}},
		"a value for a name":     {header + "logging: {\"Bearer s3cret\": 1}", 0, []string{`field "logging.<masked>" is unknown to v0.37`}},
		"a header twice in YAML": {header + "staticPodURLHeader:\n  \"Authorization: Bearer s3cret\": [a]\n  \"Authorization: Bearer s3cret\": [b]", 0, []string{`field "<masked>" appears twice (line 5)`}},
		"x509 twice in YAML":     {header + "authentication:\n  x509: {}\n  x509: {}", 0, []string{`field "x509" appears twice (line 5)`}},
		"a header twice in JSON": {`{"kind":"KubeletConfiguration","staticPodURLHeader":{"Bearer s3cret":["1"],"Bearer s3cret":["2"]}}`, 0, []string{`field "staticPodURLHeader.<masked>" appears twice`}},
		"twice in a layer in JSON": {`{"apiVersion":"kubelet-supervisor.io/v1alpha1","kind":"KubeletConfigurationLayers","layers":[{"name":"a","patch":{"authentication":{"x509":{},"x509":{}},"staticPodURLHeader":{"t0ken":[],"t0ken":[]}}}]}`, 0,
			[]string{`field "layers[0].patch.authentication.x509" appears twice`, `field "layers[0].patch.staticPodURLHeader.<masked>" appears twice`}},
		"twelve are told as nine": {header + unknownFields(12), 0, append(unknownWarnings(9), "and 3 more")},
		"ten are told as ten":     {header + unknownFields(10), 0, unknownWarnings(10)},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, Warnings(map[string]string{"k": test.document}, "k", test.kubelet)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Programs have the names alone.
func TestUnknownFields(t *testing.T) {
	for name, test := range map[string]struct {
		document string
		kubelet  int
		want     []string
	}{
		"none":                   {header + "maxPods: 1\nmaxPods: 2", 0, nil},
		"unknown, and newer":     {header + "maxPodz: 1\nuserNamespaces: {idsPerPod: 65536}\nauthentication: {x509: {clientCaFile: a}}", 29, []string{"authentication.x509.clientCaFile", "maxPodz", "userNamespaces"}},
		"as long as it is shown": {header + "? \"a\\nb\"\n: 1", 0, []string{"a b"}},
		"a value for a name":     {header + "logging: {\"Bearer s3cret\": 1}", 0, []string{"logging.<masked>"}},
		"twelve are ten":         {header + unknownFields(12), 0, []string{"unknown00", "unknown01", "unknown02", "unknown03", "unknown04", "unknown05", "unknown06", "unknown07", "unknown08", "unknown09"}},
		"of two layers": {"apiVersion: kubelet-supervisor.io/v1alpha1\nkind: KubeletConfigurationLayers\nlayers:\n- {name: a, patch: {maxPodz: 1}}\n- {name: b, patch: {maxPodz: 2, maxPodx: 1}}", 0,
			[]string{"maxPodz", "maxPodx"}},
	} {
		if diff := cmp.Diff(test.want, UnknownFields(map[string]string{"k": test.document}, "k", test.kubelet)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// What the table says of a document is what decoding into the types said, wherever an unknown field stands.
func TestWarningsAreThoseOfTheTypes(t *testing.T) {
	for _, field := range append(Fields(), Field{Type: "object"}) {
		if field.Until != 0 {
			continue
		}
		var value any = map[string]any{"unheardOf": 1}
		for _, name := range slices.Backward(strings.Split(field.Path, ".")) {
			if outer, _ := FieldAt(field.Path); strings.HasPrefix(outer.Type, "[]object") && name == field.Path[strings.LastIndexByte(field.Path, '.')+1:] {
				value = []any{map[string]any{}, value}
			}
			if name != "" {
				value = map[string]any{name: value}
			}
		}
		document, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		var want []string
		strict, err := sigsjson.UnmarshalStrict(document, &v1beta1.KubeletConfiguration{})
		if err != nil && !strings.HasPrefix(field.Type, "map[") { // a value of another type: the field has no fields in it
			continue
		}
		for _, unknown := range strict {
			want = append(want, strings.TrimPrefix(unknown.Error(), "unknown ")+" is unknown to v0.37")
		}
		if diff := cmp.Diff(want, strictWarnings(document, 0)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", document, diff)
		}
	}
}

func unknownFields(count int) string {
	var fields strings.Builder
	for i := range count {
		fmt.Fprintf(&fields, "unknown%02d: 1\n", i)
	}
	return fields.String()
}

func unknownWarnings(count int) (warnings []string) {
	for i := range count {
		warnings = append(warnings, fmt.Sprintf(`field "unknown%02d" is unknown to v0.37`, i))
	}
	return warnings
}
