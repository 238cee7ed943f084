package controller

import (
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/rollout"
	"github.com/kubelet-supervisor/kubelet-supervisor/forecast/rejection"
)

// PoolLabel is the label of revisions and variants with the name of their pool.
const PoolLabel = "kubelet-supervisor.io/pool"

// cachedObjects are the kinds that are cached, each reduced to what is read: with 5,000 nodes whole Nodes would take most of the memory.
func cachedObjects() map[client.Object]cache.ByObject {
	configs := map[string]cache.Config{rollout.Namespace: {}}
	return map[client.Object]cache.ByObject{
		&corev1.Node{}:                   {Transform: trimNode},
		&v1alpha1.KubeletPool{}:          {Transform: trim},
		&v1alpha1.KubeletRolloutBudget{}: {Transform: trim},
		&corev1.ConfigMap{}:              {Namespaces: configs, Transform: trim},
		&appsv1.ControllerRevision{}: {Namespaces: map[string]cache.Config{rollout.Namespace: {LabelSelector: ours}},
			Transform: trim},
		&corev1.Pod{}: {Field: fields.OneTermEqualSelector("status.phase", string(corev1.PodFailed)), Transform: trimPod},
	}
}

// ours selects the objects that this controller has made.
var ours = func() labels.Selector {
	selector, err := labels.Parse(PoolLabel)
	if err != nil {
		panic(err)
	}
	return selector
}()

// trim removes what this program does not read.
func trim(in any) (any, error) {
	if object, is := in.(metav1.Object); is && object.GetManagedFields() != nil {
		object.SetManagedFields(nil)
	}
	return in, nil
}

// trimNode keeps what rollout.ReadNode reads, and all taints, because a PATCH replaces them.
func trimNode(in any) (any, error) {
	n, is := in.(*corev1.Node)
	if !is {
		return in, nil
	}
	return trimmed(n), nil
}

// theCordon is all that is kept of the managed fields of a Node.
var theCordon = metav1.NewFieldsV1(`{"f:spec":{"f:unschedulable":{}}}`)

func trimmed(n *corev1.Node) *corev1.Node {
	kept := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.Name, UID: n.UID, ResourceVersion: n.ResourceVersion, Labels: internMap(n.Labels),
		CreationTimestamp: n.CreationTimestamp, DeletionTimestamp: n.DeletionTimestamp, Annotations: map[string]string{}}}
	if n.Spec.Unschedulable {
		for _, by := range rollout.Cordoners(n) {
			kept.ManagedFields = append(kept.ManagedFields, metav1.ManagedFieldsEntry{Manager: intern(by), FieldsV1: theCordon})
		}
	}
	for key, value := range n.Annotations {
		for _, prefix := range []string{"kubelet-supervisor.io/", "machineconfiguration.openshift.io/state", "weave.works/kured-", "kured.dev/"} {
			if strings.HasPrefix(key, prefix) {
				if key == nodev1.StatusAnnotation {
					value = rollout.KeptStatus(value)
				}
				kept.Annotations[intern(key)] = intern(value)
			}
		}
	}
	kept.Spec = corev1.NodeSpec{Taints: n.Spec.Taints, Unschedulable: n.Spec.Unschedulable, ConfigSource: n.Spec.ConfigSource}
	info := &n.Status.NodeInfo
	kept.Status.NodeInfo = corev1.NodeSystemInfo{BootID: info.BootID, KubeletVersion: info.KubeletVersion, Architecture: info.Architecture}
	for _, c := range n.Status.Conditions {
		if condition, is := rollout.KeptCondition(c); is {
			kept.Status.Conditions = append(kept.Status.Conditions, condition)
		}
	}
	return kept
}

// trimPod keeps where a pod has failed, and whether its kubelet has rejected it: of the message it keeps the prefix that says so.
func trimPod(in any) (any, error) {
	p, is := in.(*corev1.Pod)
	if !is {
		return in, nil
	}
	kept := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name, UID: p.UID, ResourceVersion: p.ResourceVersion}}
	kept.Spec.NodeName, kept.Status.Phase, kept.Status.Reason, kept.Status.StartTime = p.Spec.NodeName, p.Status.Phase, p.Status.Reason, p.Status.StartTime
	if rejection.Says(p.Status.Message) {
		kept.Status.Message = rejection.Prefix
	}
	return kept, nil
}
