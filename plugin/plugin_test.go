package plugin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/dynamic"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1/nodetest"
	"github.com/kubelet-supervisor/kubelet-supervisor/forecast"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/cmdutil"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/document"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/internal/plugintest"
)

// A bench is a cluster of client-go's fakes with the plugin in front of it. Nodes answer assignments as `answers` says.
type bench struct {
	*fake.Clientset
	pools   *dynamicfake.FakeDynamicClient
	factory *cmdutil.Factory
	input   *bytes.Buffer
	configz map[string]any // what every kubelet runs with; nil: cannot be asked
	pods    []corev1.Pod   // of every node; nil: cannot be listed
	host    forecast.Host  // what every kubelet measures
}

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func newBench(t *testing.T, objects ...runtime.Object) *bench {
	t.Helper()
	b := &bench{Clientset: fake.NewClientset(objects...), input: &bytes.Buffer{}}
	defaults, _, _, err := document.Defaults("v1.36.3")
	if err != nil {
		t.Fatal(err)
	}
	b.configz = maps.Clone(defaults)
	b.factory = cmdutil.NewFactory(genericiooptions.IOStreams{In: b.input, Out: &bytes.Buffer{}, ErrOut: &bytes.Buffer{}})
	b.factory.Connect = func() (kubernetes.Interface, error) { return b, nil }
	b.pools = newFakePools()
	b.factory.ConnectDynamic = func() (dynamic.Interface, error) { return b.pools, nil }
	b.factory.ConnectAs = func(string, ...string) (kubernetes.Interface, error) { return b, nil }
	b.factory.Now = func() time.Time { return noon }
	b.factory.Configz = func(context.Context, kubernetes.Interface, string) (map[string]any, error) {
		if b.configz == nil {
			return nil, errors.New("its kubelet cannot be asked what it runs with: nodes/proxy is forbidden")
		}
		return maps.Clone(b.configz), nil
	}
	b.factory.Pods = func(context.Context, kubernetes.Interface, string) ([]corev1.Pod, error) {
		if b.pods == nil {
			return nil, errors.New("its pods cannot be listed: pods is forbidden")
		}
		return b.pods, nil
	}
	b.factory.Summary = func(context.Context, kubernetes.Interface, string) (forecast.Host, error) { return b.host, nil }
	b.PrependReactor("create", "subjectaccessreviews", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "subjectaccessreviews"}, "", errors.New("no"))
	})
	return b
}

// run runs one command line.
func (b *bench) run(t *testing.T, arguments ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs lockedBuffer
	b.factory.Out, b.factory.ErrOut, b.factory.In = &out, &errs, b.input
	code = execute(t.Context(), b.factory, arguments, "test")
	return code, out.buffer.String(), errs.buffer.String()
}

// do runs a command line that has to succeed.
func (b *bench) do(t *testing.T, arguments ...string) (stdout, stderr string) {
	t.Helper()
	code, stdout, stderr := b.run(t, arguments...)
	if code != 0 {
		t.Fatalf("%v: exit code %d\n%s%s", arguments, code, stdout, stderr)
	}
	return stdout, stderr
}

func (b *bench) node(t *testing.T, name string) *corev1.Node {
	t.Helper()
	node, err := b.CoreV1().Nodes().Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return node
}

// answers lets nodes answer an assignment at once, as a supervisor would: with what reply makes of the Node.
func (b *bench) answers(t *testing.T, reply func(node *corev1.Node, assignment string)) {
	b.PrependReactor("patch", "nodes", func(action clienttesting.Action) (bool, runtime.Object, error) {
		patch := action.(clienttesting.PatchActionImpl)
		object, err := b.Tracker().Get(patch.GetResource(), "", patch.Name)
		if err != nil {
			return true, nil, err
		}
		var change struct {
			Metadata struct{ Annotations map[string]*string }
		}
		if err := json.Unmarshal(patch.GetPatch(), &change); err != nil {
			return true, nil, err
		}
		node := object.(*corev1.Node).DeepCopy()
		if node.Annotations == nil {
			node.Annotations = map[string]string{}
		}
		for key, value := range change.Metadata.Annotations {
			if delete(node.Annotations, key); value != nil {
				node.Annotations[key] = *value
			}
		}
		answer := node.DeepCopy()
		if len(patch.PatchOptions.DryRun) > 0 { // the fake would keep it
			return true, answer, nil
		}
		if reply != nil {
			reply(node, node.Annotations[nodev1.ConfigSourceAnnotation])
		}
		return true, answer, b.Tracker().Update(patch.GetResource(), node, "")
	})
}

// saying makes a Node as a supervisor leaves it, which has heard of the retry. What follows the first semicolon of the message is why it fails.
func saying(node *corev1.Node, observed, reason string, state corev1.ConditionStatus, message string, active, good *corev1.ConfigMap) *corev1.Node {
	source := func(c *corev1.ConfigMap) *corev1.NodeConfigSource {
		if c == nil {
			return nil
		}
		return &corev1.NodeConfigSource{ConfigMap: &corev1.ConfigMapNodeConfigSource{
			Namespace: c.Namespace, Name: c.Name, UID: c.UID, ResourceVersion: c.ResourceVersion, KubeletConfigKey: "kubelet"}}
	}
	before := nodev1.Read(node)
	said := nodev1.Status{Observed: observed, Reason: reason, Since: noon.Add(-5 * time.Minute), Retry: before.Retry, Features: append([]string{}, before.Status.Features...)}
	if _, why, is := strings.Cut(message, "; "); is && state != corev1.ConditionTrue {
		said.Failure = &nodev1.Failure{Kind: nodev1.FailureRefused, Message: why}
	}
	nodetest.Say(node, said, corev1.NodeConfigStatus{Active: source(active), LastKnownGood: source(good)}, message)
	node.Status.Conditions = []corev1.NodeCondition{
		{Type: corev1.NodeReady, Status: corev1.ConditionTrue},
		{Type: nodev1.ConditionType, Status: state, Reason: reason, Message: message, LastHeartbeatTime: metav1.NewTime(noon.Add(-5 * time.Minute))},
	}
	return node
}

// resaying changes what a Node says to programs.
func resaying(node *corev1.Node, change func(*nodev1.Status)) *corev1.Node {
	said := nodev1.Read(node).Status
	change(&said)
	node.Annotations[nodev1.StatusAnnotation] = said.Encode()
	return node
}

func newNode(name string) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"pool": "workers"}},
		Status: corev1.NodeStatus{
			NodeInfo:   corev1.NodeSystemInfo{KubeletVersion: "v1.36.3"},
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}
}

func localNode(name string) *corev1.Node {
	return saying(newNode(name), "", "Local", corev1.ConditionTrue, "using current (default); nothing is assigned", nil, nil)
}

const someConfig = document.Header + "maxPods: 42\nsyncFrequency: 1m\n"

func configMapOf(name, content string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: cmdutil.ConfigNamespace, Name: name, UID: types.UID("uid-of-" + name), ResourceVersion: "7",
			Labels: map[string]string{document.PurposeLabel: document.PurposeConfiguration}, CreationTimestamp: metav1.NewTime(noon.Add(-24 * time.Hour))},
		Data: map[string]string{"kubelet": content},
	}
}

// pushedOf is one that push has made.
func pushedOf(name, content string) *corev1.ConfigMap {
	made, err := document.NewConfigMap(cmdutil.ConfigNamespace, name, []document.File{{Key: "kubelet", Content: []byte(content)}})
	if err != nil {
		panic(err)
	}
	like := configMapOf(made.Name, content)
	made.UID, made.ResourceVersion, made.CreationTimestamp = like.UID, like.ResourceVersion, like.CreationTimestamp
	return made
}

// What tests of the plugin and of its sub-packages share.
var contains, golden, layersText, writeFile = plugintest.Contains, plugintest.Golden, plugintest.LayersText, plugintest.WriteFile

func grantFor(configMap string, nodes ...string) []runtime.Object {
	meta := metav1.ObjectMeta{Namespace: "kube-system", Name: grantName(configMap), Labels: map[string]string{document.PurposeLabel: document.PurposeGrant}}
	binding := &rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name}}
	for _, node := range nodes {
		binding.Subjects = append(binding.Subjects, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: nodeUser(node)})
	}
	rules := []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{configMap}, Verbs: []string{"get", "list", "watch"}}}
	return []runtime.Object{&rbacv1.Role{ObjectMeta: meta, Rules: rules}, binding}
}
