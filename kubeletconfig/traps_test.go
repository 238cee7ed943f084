package kubeletconfig

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTraps(t *testing.T) {
	const off = ", thresholds that neither the layers nor the node's own file name are off, the kubelet's defaults among them; mergeDefaultEvictionSettings: true keeps those (since kubelet 1.33)"
	unknown := "?"
	for name, test := range map[string]struct {
		payload map[string]string
		base    string
		want    []string
	}{
		"none":                            {layersOf("Local", "{maxPods: 1}"), unknown, nil},
		"a list over what is not known":   {layersOf("Local", "{clusterDNS: [a]}"), unknown, []string{"layer l0: the list clusterDNS replaces one of the node's own file, it is not added"}},
		"a list over a list":              {layersOf("Local", "{clusterDNS: [a]}"), "clusterDNS: [b]", []string{"layer l0: the list clusterDNS replaces that of the node's own file, it is not added"}},
		"a list over none":                {layersOf("Local", "{clusterDNS: [a]}"), "maxPods: 1", nil},
		"a list of another layer":         {layersOf("Local", "{clusterDNS: [a]}", "{clusterDNS: [b]}"), "maxPods: 1", []string{"layer l1: the list clusterDNS replaces that of layer l0, it is not added"}},
		"a list without a base":           {layersOf("None", "{clusterDNS: [a]}"), unknown, nil},
		"evictionHard":                    {layersOf("Local", "{evictionHard: {a: 1%}}"), unknown, []string{"layer l0: with evictionHard" + off}},
		"evictionHard over some":          {layersOf("Local", "{evictionHard: {a: 1%}}"), "evictionHard: {b: 1%}", nil},
		"evictionHard with the defaults":  {layersOf("Local", "{evictionHard: {a: 1%}, mergeDefaultEvictionSettings: true}"), unknown, nil},
		"so says the node's own":          {layersOf("Local", "{evictionHard: {a: 1%}}"), "mergeDefaultEvictionSettings: true", nil},
		"evictionSoft, by the last layer": {layersOf("Local", "{evictionSoft: {a: 1%}}", "{evictionSoft: {b: 1%}}"), unknown, []string{"layer l1: with evictionSoft" + off}},
		"a null":                          {layersOf("Local", "{evictionHard: null, clusterDNS: null}"), unknown, nil},
	} {
		t.Run(name, func(t *testing.T) {
			layers, err := ReadLayers([]byte(test.payload["kubelet"]))
			if err != nil {
				t.Fatal(err)
			}
			var base map[string]any
			if test.base != unknown {
				if base, err = Decode([]byte(test.base)); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(test.want, layers.Traps(base)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTrapsOf(t *testing.T) {
	lists := layersOf("Local", "{clusterDNS: [a]}")
	for name, row := range map[string]struct {
		payload map[string]string
		base    func() (Base, error)
		want    int
	}{
		"over a list":  {lists, baseOf("clusterDNS: [b]"), 1},
		"over none":    {lists, baseOf(""), 0},
		"no base":      {lists, noBase, 0},
		"no such base": {layersOf("None", "{evictionHard: {a: 1%}}"), noBase, 1},
		"a whole file": {map[string]string{"kubelet": whole + "clusterDNS: [a]"}, noBase, 0},
	} {
		if got := TrapsOf(row.payload, "kubelet", row.base); len(got) != row.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}
