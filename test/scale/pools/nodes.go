//go:build linux

package pools

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1/nodetest"
	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/rollout"
)

const (
	poolName  = "workers"
	poolLabel = "kubelet-supervisor.io/pool-of"
	goodPods  = 250
	atOnce    = 16 // requests under way
	images    = 40 // that a Node names: 50 are the kubelet's most
)

const goodWords = "the assigned configuration passed its trial"

// longWords are longer than a pool's status takes.
var longWords = strings.Repeat("the kubelet's own words, and many of them; ", 24)

func newPool() *v1alpha1.KubeletPool {
	p := &v1alpha1.KubeletPool{ObjectMeta: metav1.ObjectMeta{Name: poolName}}
	p.Spec.Selector.MatchLabels = map[string]string{poolLabel: poolName}
	p.Spec.Layers = []v1alpha1.Layer{{Name: "density", Inline: &runtime.RawExtension{Raw: fmt.Appendf(nil, `{"maxPods":%d}`, goodPods)}}}
	p.Spec.Rollout.Settle = &metav1.Duration{}
	return p
}

// makeNodes makes Nodes that have the pool's first revision already, as the controller will render it.
func (m *measurement) makeNodes(ctx context.Context) error {
	m.pool = newPool()
	probe := node(0)
	speak(probe, "Local", "")
	plan := rollout.Decide(rollout.World{Now: time.Now(), Synced: true, Pools: []rollout.Pool{rollout.ReadPool(m.pool, nil, time.LoadLocation)},
		Nodes: []rollout.Node{rollout.ReadNode(probe)}})
	if len(plan.Writes) != 1 || len(plan.Variants) != 1 {
		return fmt.Errorf("a pool with one node plans %d writes and %d variants", len(plan.Writes), len(plan.Variants))
	}
	m.good = plan.Writes[0]
	return m.each(ctx, m.Nodes, func(ctx context.Context, i int) error {
		n := node(i)
		n.Annotations[nodev1.ConfigSourceAnnotation] = m.good.Source
		n.Annotations[rollout.MarkAnnotation] = m.good.Mark.String()
		n.Annotations[nodev1.RetryAnnotation] = m.good.Retry.String()
		if err := m.admin.Create(ctx, n); err != nil {
			return err
		}
		return m.say(ctx, n, "Active", goodWords)
	})
}

// node is one of a cloud, with all that such a Node has, Ready, with a supervisor that was assigned nothing.
func node(i int) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("ip-10-%d-%d-%d.eu-central-1.compute.internal", i/10_000, i/100%100, i%100), Labels: map[string]string{
		poolLabel: poolName, "topology.kubernetes.io/zone": fmt.Sprintf("eu-central-1%c", 'a'+i%3), "kubernetes.io/os": "linux"},
		CreationTimestamp: metav1.NewTime(time.Now().Add(-time.Hour)), Annotations: map[string]string{"volumes.kubernetes.io/controller-managed-attach-detach": "true"}}}
	for j := range 12 {
		n.Labels[fmt.Sprintf("cloud.example.com/label-%02d", j)] = fmt.Sprintf("value-%d", i%(j+1))
	}
	n.Spec.ProviderID = fmt.Sprintf("aws:///eu-central-1a/i-%017x", i)
	n.Status.NodeInfo = corev1.NodeSystemInfo{KubeletVersion: fmt.Sprintf("v1.%d.3", 35+i%2), Architecture: []string{"amd64", "arm64"}[i/2%2], BootID: fmt.Sprintf("boot-%d", i),
		OSImage: "Debian GNU/Linux 13", KernelVersion: "6.12.0", ContainerRuntimeVersion: "containerd://2.1.4"}
	now := metav1.Now()
	for kind, is := range map[corev1.NodeConditionType]corev1.ConditionStatus{corev1.NodeReady: "True", corev1.NodeMemoryPressure: "False",
		corev1.NodeDiskPressure: "False", corev1.NodePIDPressure: "False"} {
		n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: kind, Status: is, Reason: "Kubelet", Message: "kubelet has said so",
			LastHeartbeatTime: now, LastTransitionTime: now})
	}
	for j := range images {
		name := fmt.Sprintf("registry.example.com/team/image-%d", j)
		n.Status.Images = append(n.Status.Images, corev1.ContainerImage{Names: []string{name + "@sha256:" + strings.Repeat("0123456789abcdef", 4), name + ":v1.2.3"},
			SizeBytes: 100_000_000})
	}
	return n
}

// speak lets the node answer to what it is assigned, as a supervisor does.
func speak(n *corev1.Node, reason, message string) {
	said := nodev1.Read(n)
	config, status := said.Config, nodev1.Status{Observed: said.Assignment, Reason: reason, Retry: said.Retry}
	wanted, err := said.Wanted()
	switch {
	case reason == nodev1.ReasonRefused:
		status.Failure = &nodev1.Failure{Kind: nodev1.FailureRefused, Message: message}
	case err == nil && reason == nodev1.ReasonActive:
		at := &corev1.NodeConfigSource{ConfigMap: wanted.Source()}
		config = corev1.NodeConfigStatus{Assigned: at, Active: at, LastKnownGood: at}
	}
	nodetest.Say(n, status, config, message)
}

// answer answers for all nodes until the end: the first revision is good, and every other one is refused at length.
func (m *measurement) answer(ctx context.Context) {
	for ctx.Err() == nil {
		watch, err := m.admin.Watch(ctx, &corev1.NodeList{})
		if err != nil {
			pause(ctx, time.Second)
			continue
		}
		for event := range watch.ResultChan() {
			n, is := event.Object.(*corev1.Node)
			if !is || n.Annotations[nodev1.ConfigSourceAnnotation] == n.Annotations[nodev1.ConfigObservedAnnotation] {
				continue
			}
			reason, words := "Refused", longWords
			if n.Annotations[nodev1.ConfigSourceAnnotation] == m.good.Source {
				reason, words = "Active", goodWords
			}
			if err := m.say(ctx, n, reason, words); err != nil && ctx.Err() == nil {
				_, _ = fmt.Fprintf(m.Log, "answering for Node %s: %v\n", n.Name, err)
			}
		}
	}
}

// say publishes an answer, as a supervisor does: annotations and condition in one PATCH.
func (m *measurement) say(ctx context.Context, n *corev1.Node, reason, words string) error {
	said := n.DeepCopy()
	speak(said, reason, words)
	return m.admin.Status().Patch(as(ctx, n), said, client.StrategicMergeFrom(n))
}

// fail lets one node in a hundred refuse, after all, what the pool has completed: its kubelet is another one by now, say.
func (m *measurement) fail(ctx context.Context) error {
	return m.each(ctx, (m.Nodes+99)/100, func(ctx context.Context, i int) error {
		var n corev1.Node
		if err := m.admin.Get(ctx, types.NamespacedName{Name: node(i * 100).Name}, &n); err != nil {
			return err
		}
		return m.say(ctx, &n, "Refused", longWords)
	})
}

// heartbeat is what a kubelet says every five minutes, where it has nothing to say.
func (m *measurement) heartbeat(ctx context.Context, i int) error {
	body := fmt.Appendf(nil, `{"status":{"conditions":[{"type":"Ready","lastHeartbeatTime":%q}]}}`, time.Now().UTC().Format(time.RFC3339))
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node(i % m.Nodes).Name}}
	return m.admin.Status().Patch(as(ctx, n), n, client.RawPatch(types.StrategicMergePatchType, body))
}

// each does something so many times, several at once.
func (m *measurement) each(ctx context.Context, count int, do func(ctx context.Context, i int) error) error {
	errs, slots := make(chan error, count), make(chan struct{}, atOnce)
	for i := range count {
		slots <- struct{}{}
		go func() { // ends with its request; all are waited for below
			defer func() { <-slots }()
			errs <- do(ctx, i)
		}()
	}
	var failure error
	for range count {
		if err := <-errs; err != nil && failure == nil {
			failure = err
		}
	}
	return errors.Join(failure, ctx.Err())
}
