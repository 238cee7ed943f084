package kubeletconfig

import "testing"

func TestContent(t *testing.T) {
	base := map[string]string{"kubelet": header + "maxPods: 1\nstaticPodPath: m", "ca.crt": "x"}
	for name, test := range map[string]struct {
		payload map[string]string
		equal   bool
	}{
		"the same":                      {map[string]string{"kubelet": header + "maxPods: 1\nstaticPodPath: m", "ca.crt": "x"}, true},
		"comments and key order":        {map[string]string{"kubelet": "# a comment\nstaticPodPath: \"m\"\nmaxPods: 1\n" + header, "ca.crt": "x"}, true},
		"JSON for YAML":                 {map[string]string{"kubelet": `{"kind":"KubeletConfiguration","apiVersion":"kubelet.config.k8s.io/v1beta1","maxPods":1,"staticPodPath":"m"}`, "ca.crt": "x"}, true},
		"another value":                 {map[string]string{"kubelet": header + "maxPods: 2\nstaticPodPath: m", "ca.crt": "x"}, false},
		"a string for a number":         {map[string]string{"kubelet": header + "maxPods: \"1\"\nstaticPodPath: m", "ca.crt": "x"}, false},
		"an unknown field":              {map[string]string{"kubelet": header + "maxPods: 1\nstaticPodPath: m\nx: 1", "ca.crt": "x"}, false},
		"another file's bytes":          {map[string]string{"kubelet": header + "maxPods: 1\nstaticPodPath: m", "ca.crt": "x "}, false},
		"another file's name":           {map[string]string{"kubelet": header + "maxPods: 1\nstaticPodPath: m", "ca": "x"}, false},
		"one file less":                 {map[string]string{"kubelet": header + "maxPods: 1\nstaticPodPath: m"}, false},
		"an empty file more":            {map[string]string{"kubelet": header + "maxPods: 1\nstaticPodPath: m", "ca.crt": "x", "empty": ""}, false},
		"name and bytes run together":   {map[string]string{"kubelet": header + "maxPods: 1\nstaticPodPath: m", "ca.crtx": ""}, false},
		"does not decode":               {map[string]string{"kubelet": "[", "ca.crt": "x"}, false},
		"the key is missing":            {map[string]string{"ca.crt": "x"}, false},
		"the files have changed places": {map[string]string{"kubelet": "x", "ca.crt": header + "maxPods: 1\nstaticPodPath: m"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if equal := Content(test.payload, "kubelet") == Content(base, "kubelet"); equal != test.equal {
				t.Errorf("equal is %v, want %v", equal, test.equal)
			}
		})
	}
}

func TestContentOfWhatDoesNotDecode(t *testing.T) {
	seen := map[string]string{}
	for name, payload := range map[string]map[string]string{
		"missing":         {},
		"empty":           {"kubelet": ""},
		"broken":          {"kubelet": "["},
		"otherwise":       {"kubelet": "[ "},
		"only a comment":  {"kubelet": "#"},
		"an empty object": {"kubelet": "{}"},
		"another key":     {"kubelet2": "["},
	} {
		content := Content(payload, "kubelet")
		if other, taken := seen[content]; taken {
			t.Errorf("%q and %q have the same content", name, other)
		}
		seen[content] = name
	}
	// The digest is on disk: it must stay what it is from version to version.
	if got, want := Content(map[string]string{"k": "kind: KubeletConfiguration # c\n", "f": "x"}, "k"),
		"sha256:852d69d31e6fc53f1c53b9af1aa2f662ca448dda864de27f597cb273ab411891"; got != want {
		t.Errorf("got %s, want %s as ever", got, want)
	}
}
