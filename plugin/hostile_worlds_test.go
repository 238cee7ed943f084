package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	clienttesting "k8s.io/client-go/testing"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/document"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/view"
)

// hostileText moves the cursor, sets the title, clears the screen, reverses and hides text, and begins lines of its own in each way there is.
const hostileText = "x\nINJECTED\r\nINJECTED \x1b]0;owned\a\x1b[2J\x1b[31m\u202egpj\u2066x\u200b\u2060\ufeff\u2028INJECTED\u0085INJECTED\x7f\tINJECTED\U000e0041"

var longText = hostileText + strings.Repeat("w", 240<<10)

// hostileWorlds are clusters in which one of those who write is hostile.
func hostileWorlds() map[string]func(*testing.T) *bench {
	worlds := map[string]func(*testing.T) *bench{}
	for length, text := range map[string]string{"short": hostileText, "long": longText} {
		worlds["a node's status, "+length] = func(t *testing.T) *bench {
			return hostileBench(t, hostileNode(text, true), hostilePool(t, ""), someConfig)
		}
		worlds["a node's annotations, "+length] = func(t *testing.T) *bench {
			return hostileBench(t, hostileNode(text, false), hostilePool(t, ""), someConfig)
		}
		worlds["a pool's status, "+length] = func(t *testing.T) *bench {
			return hostileBench(t, hostileNode("", true), hostilePool(t, text), someConfig)
		}
		worlds["an Event, "+length] = func(t *testing.T) *bench {
			b := hostileBench(t, hostileNode("", true), hostilePool(t, ""), someConfig)
			event := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "e"}, InvolvedObject: corev1.ObjectReference{Kind: "Node", Name: "n1"},
				Source: corev1.EventSource{Component: "kubelet-supervisor"}, Type: "Normal" + text, Reason: text, Message: text, LastTimestamp: metav1.NewTime(noon)}
			if err := b.Tracker().Add(event); err != nil {
				t.Fatal(err)
			}
			return b
		}
		worlds["an answer of the API server, "+length] = func(t *testing.T) *bench {
			b := hostileBench(t, hostileNode("", true), hostilePool(t, ""), someConfig)
			fails := func(verb string) {
				b.PrependReactor(verb, "*", func(clienttesting.Action) (bool, runtime.Object, error) {
					return true, nil, &apierrors.StatusError{ErrStatus: metav1.Status{Status: "Failure", Reason: metav1.StatusReasonForbidden, Code: http.StatusForbidden, Message: text}}
				})
			}
			fails("create")
			fails("patch")
			b.PrependReactor("get", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
				return true, nil, errors.New("refused" + text)
			})
			return b
		}
		worlds["a ConfigMap's values, "+length] = func(t *testing.T) *bench {
			return hostileBench(t, hostileNode("", true), hostilePool(t, ""), hostileDocument(text))
		}
		worlds["configz, "+length] = func(t *testing.T) *bench {
			b := hostileBench(t, hostileNode("", true), hostilePool(t, ""), someConfig)
			b.answersConfigz(hostileConfigz(text))
			return b
		}
	}
	for name, body := range map[string]string{
		"no JSON":     "oops" + hostileText,
		"a number":    `{"kubeletconfig": {"maxPods": ` + strings.Repeat("9", 1<<20) + `}}`,
		"depth":       `{"kubeletconfig": {"maxPods": ` + strings.Repeat("[", 1<<17) + strings.Repeat("]", 1<<17) + `}}`,
		"depth below": `{"kubeletconfig": {"maxPods": ` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + `}}`,
		"a type":      `{"kubeletconfig": {"maxPods": "` + strings.Repeat("9", 1<<20) + `", "syncFrequency": "1` + strings.Repeat("m", 1<<18) + `"}}`,
		"many fields": `{"kubeletconfig": {"maxPods": 42` + manyFields(20_000) + `}}`,
	} {
		worlds["configz, "+name] = func(t *testing.T) *bench {
			b := hostileBench(t, hostileNode("", true), hostilePool(t, ""), someConfig)
			b.answersConfigz(body)
			return b
		}
	}
	for name, content := range map[string]string{
		"no YAML":        "\x00 oops: [" + strings.ReplaceAll(hostileText, "\n", "\n  "),
		"another kind":   `{"apiVersion": "v1", "kind": ` + quoted(longText) + `}`,
		"a number":       document.Header + "maxPods: " + strings.Repeat("9", 900_000),
		"a type":         document.Header + `maxPods: ` + quoted(longText),
		"a duration":     document.Header + `syncFrequency: ` + quoted(longText),
		"unknown":        document.Header + strings.Repeat("x", 200_000) + ": 1\n" + quoted(hostileText) + ": " + quoted(leaked) + "\n",
		"secrets":        document.Header + secretFields,
		"a secret time":  document.Header + "syncFrequency: tcp://me:" + leaked + "@host\n",
		"a secret limit": document.Header + "fileCheckFrequency: " + leaked + "\n",
		"a layer":        layersText(`- {name: fleet, from: `+quoted(longText)+`, patch: {staticPodURL: `+leaked+`, clusterDomain: `+quoted(longText)+`}}`, `- {name: gpu, from: x, patch: {`+quoted(hostileText)+`: `+quoted(hostileText)+`}}`),
		"a layer's name": layersText(`- {name: ` + quoted(longText) + `, patch: {maxPods: 1}}`),
	} {
		worlds["a ConfigMap, "+name] = func(t *testing.T) *bench {
			return hostileBench(t, hostileNode("", true), hostilePool(t, ""), content)
		}
	}
	return worlds
}

// hostileBench is a cluster with a node that runs the first ConfigMap, and a pool.
func hostileBench(t *testing.T, node *corev1.Node, p *fakePool, content string) *bench {
	t.Helper()
	workers := configMapOf("workers", content)
	if node.Annotations[nodev1.ConfigSourceAnnotation] == "" { // a hostile one has one of its own
		knowing(saying(node, "kubelet-config/workers/kubelet", "Active", corev1.ConditionTrue, "using current", workers, workers))
		node.Annotations[nodev1.ConfigSourceAnnotation] = "kubelet-config/workers/kubelet"
	}
	b := newPoolBench(t, p, node, p.member("n2", 2, "Refused"))
	for _, configMap := range []*corev1.ConfigMap{workers, configMapOf("layers", layersText("- {name: fleet, patch: {maxPods: 30}}")), pushedOf("unused", someConfig)} {
		if err := b.Tracker().Add(configMap); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

// answersConfigz lets every kubelet answer so.
func (b *bench) answersConfigz(body string) {
	b.factory.Configz = func(context.Context, kubernetes.Interface, string) (map[string]any, error) {
		tree, err := view.ParseConfigz([]byte(body))
		if err != nil {
			return nil, fmt.Errorf("its kubelet cannot be asked what it runs with: %w", err)
		}
		return maps.Clone(tree), nil
	}
}

const secretFields = "staticPodURL: https://me:" + leaked + "@host/?" + leaked + "\nstaticPodURLHeader: {Authorization: [Bearer " + leaked + "], " + leaked + ": [x]}\nimageServiceEndpoint: tcp://me:" + leaked +
	"@host\nstaticPodURLHeaders: {Authorization: [" + leaked + "], " + leaked + ": 1}\n"

// hostileNode writes the text wherever a node can, or who may patch its status. With whole only its texts are so, and what they are in is as it
// should be.
func hostileNode(text string, whole bool) *corev1.Node {
	node := newNode("n1")
	if text == "" {
		return node
	}
	config := configMapOf("workers", someConfig)
	knowing(saying(node, "kubelet-config/workers/kubelet", "RolledBack", corev1.ConditionFalse, "using last-known-good; "+text, config, config))
	tells(node, func(s *nodev1.Status) {
		s.Failure = &nodev1.Failure{Kind: nodev1.FailureRefused, Message: text}
		s.Shadowed = []nodev1.ShadowedField{{Field: text, Value: text, By: text, Effective: text}}
		s.UnknownFields, s.Warnings, s.Features = []string{text}, []string{text}, append(s.Features, text)
		s.Hold = &nodev1.Hold{}
		poison(reflect.ValueOf(s.Hold).Elem(), text)
		s.Change = &nodev1.Change{}
		poison(reflect.ValueOf(s.Change).Elem(), text)
	})
	node.Annotations[nodev1.ConfigSourceAnnotation] = "kubelet-config/workers/kubelet"
	poison(reflect.ValueOf(&node.Status.NodeInfo).Elem(), text)
	for i := range node.Status.Conditions {
		node.Status.Conditions[i].Message = text
		if c := &node.Status.Conditions[i]; c.Type == nodev1.ConditionType {
			c.Reason = text
		}
	}
	node.Annotations[view.RecordAnnotation] = `[{"source": ` + quoted(text) + `, "by": ` + quoted(text) + `, "outcome": ` + quoted(text) + `}, {"source": "kubelet-config/workers/kubelet", "by": ` + quoted(text) + `}]`
	var said map[string]any
	if err := json.Unmarshal([]byte(node.Annotations[nodev1.ConfigStatusAnnotation]), &said); err == nil {
		said["error"] = text
		if active, is := said["active"].(map[string]any); is {
			active["configMap"] = map[string]any{"namespace": text, "name": text, "uid": text, "resourceVersion": text, "kubeletConfigKey": text}
		}
		changed, _ := json.Marshal(said)
		node.Annotations[nodev1.ConfigStatusAnnotation] = string(changed)
	}
	if !whole {
		for name := range node.Annotations {
			node.Annotations[name] = text
		}
		node.Annotations["kubelet-supervisor.io/pool-assigned"] = text
	}
	return node
}

// tells changes what a Node says to programs, and bounds nothing, as a hostile one would not.
func tells(node *corev1.Node, change func(*nodev1.Status)) {
	said := nodev1.Read(node).Status
	change(&said)
	if text, err := json.Marshal(said); err == nil {
		node.Annotations[nodev1.StatusAnnotation] = string(text)
	}
}

// poison writes a text into each string of a structure.
func poison(value reflect.Value, text string) {
	switch value.Kind() {
	case reflect.String:
		value.SetString(text)
	case reflect.Pointer:
		if value.Type() != reflect.TypeFor[*time.Time]() {
			value.Set(reflect.New(value.Type().Elem()))
			poison(value.Elem(), text)
		}
	case reflect.Slice:
		if value.Type().Elem().Kind() != reflect.Uint8 {
			value.Set(reflect.MakeSlice(value.Type(), 1, 1))
			poison(value.Index(0), text)
		}
	case reflect.Struct:
		for i := range value.NumField() {
			if value.Field(i).CanSet() {
				poison(value.Field(i), text)
			}
		}
	}
}

// hostilePool says the text wherever the status of a pool has one, and its revisions have secrets.
func hostilePool(t *testing.T, text string) *fakePool {
	t.Helper()
	p := newFakePool(t, few, `{"maxPods":250,"staticPodURL":"https://`+leaked+`","staticPodURLHeader":{"Authorization":["`+leaked+`"]}}`)
	p.stops("n2")
	if text == "" {
		return p
	}
	status := p.Status.DeepCopy()
	poison(reflect.ValueOf(&p.Status.Stops).Elem(), text)
	for i := range p.Status.Stops {
		p.Status.Stops[i].Hash, p.Status.Stops[i].Revision, p.Status.Stops[i].Attempt = status.Stops[0].Hash, status.Stops[0].Revision, status.Stops[0].Attempt
	}
	poison(reflect.ValueOf(&p.Status.Failures).Elem(), text)
	poison(reflect.ValueOf(&p.Status.Cohorts).Elem(), text)
	for i := range p.Status.Conditions {
		p.Status.Conditions[i].Message = text
	}
	p.Status.Revisions[0].ProvenIn = []v1alpha1.CohortProof{{Cohort: text}}
	p.Status.Revisions[0].FailedIn = []v1alpha1.CohortFailure{{Cohort: text, Node: text, Reason: text, Message: text}}
	p.Annotations = map[string]string{"kubernetes.io/change-cause": text}
	return p
}

func quoted(text string) string {
	written, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return string(written)
}

// hostileDocument has the text in each of its texts, in lists and as keys.
func hostileDocument(text string) string {
	return document.Header + secretFields + "clusterDomain: " + quoted(text) + "\nclusterDNS: [" + quoted(text) + "]\nevictionHard: {" + quoted(text[:min(len(text), 500)]) + ": " + quoted(text) +
		"}\nprovider" + "ID: " + quoted(text) + "\nfeatureGates: {Whatever" + strings.Repeat("x", min(len(text), 900)) + ": true}\n"
}

func hostileConfigz(text string) string {
	return `{"kubeletconfig": {"maxPods": 42, "clusterDomain": ` + quoted(text) + `, "clusterDNS": [` + quoted(text) + `], "evictionHard": {` + quoted(text) + `: ` + quoted(text) + `}, "syncFrequency": ` +
		quoted(text) + `, ` + quoted(text) + `: ` + quoted(text) + `, "staticPodURL": "https://me:` + leaked + `@host", "staticPodURLHeader": {"` + leaked + `": ["` + leaked + `"]}, "imageServiceEndpoint": "tcp://me:` +
		leaked + `@host", "logging": {` + quoted(text) + `: [` + quoted(text) + `]}}}`
}
