package plugin

import (
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
)

// An immutable ConfigMap is pinned, so that one made anew under its name is not what nodes were assigned. A mutable one is followed
// by its name, as ever, and the field takes no uid.
func TestAssignPinsWhatIsImmutable(t *testing.T) {
	yes := true
	for _, test := range []struct {
		name      string
		immutable *bool
		field     bool // the Node has spec.configSource
		arguments []string
		want      string
	}{
		{"immutable", &yes, false, nil, workersText + "@uid-of-workers"},
		{"mutable", nil, false, nil, workersText},
		{"mutable, and --pin", nil, false, []string{"--pin"}, workersText + "@uid-of-workers"},
		{"immutable, by the field", &yes, true, nil, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				config := configMapOf("workers", someConfig)
				config.Immutable = test.immutable
				node := localNode("n1")
				if test.field {
					node.Spec.ConfigSource = &corev1.NodeConfigSource{ConfigMap: &corev1.ConfigMapNodeConfigSource{Namespace: "kubelet-config", Name: "old", KubeletConfigKey: "kubelet"}}
				}
				b := newBench(t, node, config)
				if !test.field {
					b.answers(t, runsIt(config))
				}
				_, stderr := b.do(t, append([]string{"assign", "n1", "--config=workers", "--yes", "--wait=false"}, test.arguments...)...)
				contains(t, stderr, "n1, with "+workersText+":") // without a uid, for people
				if got := b.assigned(t, "n1"); got != test.want {
					t.Errorf("assigned %q, want %q", got, test.want)
				}
				if source := b.node(t, "n1").Spec.ConfigSource; test.field && (source == nil || source.ConfigMap.Name != "workers" || source.ConfigMap.UID != "") {
					t.Errorf("the field is %+v", source)
				}
			})
		})
	}
}
