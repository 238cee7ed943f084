//go:build e2e

package fleet

import (
	"context"
	"fmt"
	"strings"
	"testing"
)

// Who writes a field that no kubelet knows, or a value of another kind, is warned, and nobody else.
func TestLayersThatNoKubeletKnowsAreWarnedOf(t *testing.T) {
	t.Parallel()
	f := shared(t)
	kubectl := f.shell(t)
	for layer, want := range map[string][]string{
		"{maxPods: 9, kubeReserved: {cpu: 1}, featureGates: {A: true}, clusterDNS: [10.0.0.10], memoryThrottlingFactor: 0.9}": nil,
		"{maxPods: null, registerNode: false}":   nil,
		"{maxPods: 9, maxPod: 9, podPerCore: 1}": {"kubelets ignore what they do not know: layer a: ", "maxPod", "podPerCore"},
		`{maxPods: "9", registerNode: 1, clusterDNS: 10.0.0.10, syncFrequency: 60}`: {"nodes refuse a value of another kind: ", "layer a: clusterDNS is a list",
			"layer a: maxPods is a number", "layer a: registerNode is true or false", "layer a: syncFrequency is a string"},
	} {
		said, err := kubectl(fmt.Sprintf(`printf 'apiVersion: kubelet-supervisor.io/v1alpha1\nkind: KubeletPool\nmetadata: {name: layers}\nspec:\n  selector: {matchLabels: {kubelet-supervisor.io/pool-of: layers}}\n  layers: [{name: a, inline: %s}]\n' | kubectl create --dry-run=server -f -`, layer))
		if err != nil {
			t.Fatalf("%s: %v\n%s", layer, err, said)
		}
		if strings.Contains(said, "Warning: ") != (want != nil) {
			t.Errorf("%s\nsays\n%s", layer, said)
		}
		for _, words := range want {
			if !strings.Contains(said, words) {
				t.Errorf("%s\nsays\n%s\nwithout %s", layer, said, words)
			}
		}
	}
}

// Who makes a pool select by labels that others write is warned, and nobody else.
func TestSelectorsByLabelsOfOthersAreWarnedOf(t *testing.T) {
	t.Parallel()
	f := shared(t)
	kubectl := f.shell(t)
	pool := func(selector string) string {
		return fmt.Sprintf(`printf 'apiVersion: kubelet-supervisor.io/v1alpha1\nkind: KubeletPool\nmetadata: {name: selectors}\nspec:\n  selector: %s\n  layers: [{name: a, inline: {maxPods: 9}}]\n  rollout: {paused: true}\n'`, selector)
	}
	const warns = "Warning: Validation failed for ValidatingAdmissionPolicy 'kubelet-supervisor-selectors'"
	t.Cleanup(func() { _, _ = f.Kubectl(context.Background(), "delete", "kpool", "selectors", "--ignore-not-found") })
	for _, row := range []struct {
		line string
		want []string // none: no warning
	}{
		{pool("{matchLabels: {kubelet-supervisor.io/pool-of: selectors}}") + " | kubectl create --dry-run=server -f -", nil},
		{pool("{matchLabels: {node-restriction.kubernetes.io/pool: a}, matchExpressions: [{key: zone, operator: In, values: [b]}, {key: kubelet-supervisor.io/pool-of, operator: Exists}]}") +
			" | kubectl create -f -", []string{"writes the label node-restriction.kubernetes.io/pool, zone, and so chooses what a node runs", "such as kubelet-supervisor.io/pool-of: selectors"}},
		{`kubectl patch kpool selectors --type=merge -p '{"spec":{"priority":7}}'`, nil},
		{`kubectl patch kpool selectors --type=merge -p '{"spec":{"selector":{"matchExpressions":null}}}'`, []string{"writes the label node-restriction.kubernetes.io/pool, and so"}},
		{`kubectl patch kpool selectors --type=json -p '[{"op":"replace","path":"/spec/selector","value":{"matchLabels":{"kubelet-supervisor.io/pool-of":"selectors"}}}]'`, nil},
	} {
		said, err := kubectl(row.line)
		if err != nil {
			t.Fatalf("%s: %v\n%s", row.line, err, said)
		}
		if strings.Contains(said, warns) != (row.want != nil) {
			t.Errorf("%s\n%s", row.line, said)
		}
		for _, words := range row.want {
			if !strings.Contains(said, words) {
				t.Errorf("%s\nsays\n%s\nwithout %s", row.line, said, words)
			}
		}
	}
}
