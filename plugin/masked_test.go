package plugin

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/cmdutil"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/document"
)

const leaked = "SEKRET-7f3a"

// A mask that somebody has copied from what was printed goes to no node: push names the field.
func TestPushRefusesAMask(t *testing.T) {
	for name, row := range map[string]struct{ arguments, want string }{
		"in a file":      {"-f " + inFile(t, "kubelet.yaml", document.Header+"staticPodURLHeader: {A: [<masked>]}\n"), "is not pushed: staticPodURLHeader.A is masked (<masked>)"},
		"in a layer":     {"--set staticPodURL=<masked>", "is not pushed: layer x: staticPodURL is masked"},
		"in an overlay":  {"--overlay -f " + inFile(t, "overlay.yaml", "imageServiceEndpoint: tcp://<masked>@host\n"), "is not pushed: layer x: imageServiceEndpoint is masked"},
		"another letter": {"-f " + inFile(t, "json.yaml", `{"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration", "staticPodURL": "\u003cmasked>"}`), "staticPodURL is masked"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			code, _, stderr := b.run(t, append([]string{"push", "x"}, strings.Fields(row.arguments)...)...)
			if made := b.pushed(t, cmdutil.ConfigNamespace); code != 1 || len(made) > 0 {
				t.Errorf("exit code %d, and %d ConfigMaps", code, len(made))
			}
			contains(t, stderr, row.want)
		})
	}
}

// A mask in a ConfigMap that somebody has made from what was printed is not assigned.
func TestAssignRefusesAMask(t *testing.T) {
	b := newBench(t, knowing(localNode("n1")), configMapOf("printed", document.Header+"staticPodURL: <masked>\n"))
	code, _, stderr := b.run(t, "assign", "n1", "--config", "kubelet-config/printed", "--yes")
	if code != 1 {
		t.Errorf("exit code %d", code)
	}
	contains(t, stderr, "ConfigMap kubelet-config/printed is not assigned: staticPodURL is masked")
}

// What was printed of a node can be edited and pushed: what is masked in it is as the node has it.
func TestPushAgainstWhatWasPrinted(t *testing.T) {
	b := newBench(t, knowing(localNode("n1")))
	b.configz["maxPods"], b.configz["staticPodURL"] = int64(20), "https://me:"+leaked+"@host/"
	printed, stderr := b.do(t, "config", "n1", "--changed")
	contains(t, stderr, "What may be a secret is masked, so what is printed cannot be pushed as it is: staticPodURL")
	contains(t, printed, "staticPodURL: <masked>")
	b.do(t, "push", "x", "-f", inFile(t, "kubelet.yaml", strings.Replace(printed, "maxPods: 20", "maxPods: 42", 1)), "--against", "n1")
	layers, _ := b.pushedLayers(t)
	if got := layersLine(layers); got != `x (edit of n1) {"maxPods":42}` {
		t.Errorf("it pushed %s", got)
	}
}

// What the field table calls secret is printed by no command that compares.
func TestSecretsInComparisons(t *testing.T) {
	secret := configMapOf("workers", someConfig+"staticPodURL: https://host/?"+leaked+"\nstaticPodURLHeader: {Authorization: [Bearer "+leaked+"]}\nstaticPodUrlHeader: {Authorization: ["+leaked+"]}\n")
	b := newBench(t, localNode("n1"), secret)
	for _, line := range []string{"assign n1 --config workers --dry-run=client", "diff n1 --config workers"} {
		_, stdout, stderr := b.run(t, strings.Fields(line)...)
		if strings.Contains(stdout+stderr, leaked) {
			t.Errorf("%s:\n%s%s", line, stdout, stderr)
		}
		contains(t, stdout+stderr, "staticPodURLHeader.Authorization: <unset> → <masked>")
	}
	b = newBench(t, saying(newNode("n1"), "kubelet-config/workers/kubelet", "Active", corev1.ConditionTrue, "", secret, secret), secret)
	b.configz["staticPodURL"] = "https://host/?" + leaked
	for _, line := range []string{"explain n1", "explain n1 -o json", "doctor n1", "config n1 -o json", "config n1"} {
		if _, stdout, stderr := b.run(t, strings.Fields(line)...); strings.Contains(stdout+stderr, leaked) {
			t.Errorf("%s:\n%s%s", line, stdout, stderr)
		}
	}
}

// What --set is given may be a secret: an error names the field, and not the value.
func TestSetShowsNoValue(t *testing.T) {
	for _, argument := range []string{"staticPodURLHeader.Authorization=Bearer " + leaked, "staticPodURLHeader=" + leaked, "staticPodUrl=" + leaked, "maxPods=[" + leaked,
		"staticPodURLHeader.Authorization:" + leaked, "staticPodURLHeader." + leaked + "=x", "syncFrequency=" + leaked, "syncFrequency=tcp://me:" + leaked + "@host", "evictionHard=" + leaked} {
		code, stdout, stderr := newBench(t).run(t, "push", "x", "--set", argument)
		if code == 0 || strings.Contains(stdout+stderr, leaked) {
			t.Errorf("--set %s: exit code %d, %s", argument, code, stdout+stderr)
		}
	}
}

// Who looks at a pool sees no secret of it, in no format, and the pool itself stays as it is.
func TestRolloutStatusMasksThePool(t *testing.T) {
	const layer = `{"maxPods":250,"staticPodURLHeader":{"Authorization":["` + leaked + `"]}}`
	p := newFakePool(t, layer)
	p.Annotations = map[string]string{corev1.LastAppliedConfigAnnotation: layer, "a": "b"}
	b := newPoolBench(t, p)
	for _, format := range []string{"json", "yaml", "jsonpath={.spec}{.metadata}"} {
		stdout, stderr := b.do(t, "rollout", "status", "workers", "-o", format)
		if strings.Contains(stdout+stderr, leaked) {
			t.Errorf("-o %s prints a secret:\n%s%s", format, stdout, stderr)
		}
		contains(t, strings.ReplaceAll(stdout, `\u003cmasked\u003e`, "<masked>"), "<masked>")
		contains(t, stdout, "250")
	}
	if got, err := b.factory.ListPools(t.Context(), b); err != nil || !strings.Contains(string(got[0].Spec.Layers[0].Inline.Raw), leaked) {
		t.Errorf("%v: the pool itself is changed: %s", err, got[0].Spec.Layers[0].Inline.Raw)
	}
}
