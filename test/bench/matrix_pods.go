//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/cluster"
)

const (
	podsNamespace = "default"
	heldJob       = "a change that would kill a running pod: held, and the pod is named"
)

// tryHold has two pods, of which a change would kill the younger. Where the kubelet does not tell its effective configuration, nothing can be
// foreseen: the change is made, and the Node says so. It leaves no pod and no assignment of its own.
func (b *bench) tryHold(ctx context.Context, tells bool) (err error) {
	n := b.node
	names := []string{"bench-older", "bench-younger"}
	for _, name := range names {
		defer func() { err = errors.Join(err, n.removePod(ctx, name)) }()
		if err := n.runPod(ctx, name); err != nil {
			return err
		}
	}
	text := n.payload(good)
	version, err := n.write(ctx, "bench-held", strings.Replace(text, fmt.Sprintf("maxPods: %d\n", 100+n.pods), "maxPods: 1\n", 1))
	if err != nil {
		return err
	}
	if err := n.assign(ctx, "bench-held"); err != nil {
		return err
	}
	if tells {
		return n.awaitNode(ctx, "that it is held", func(v view) bool {
			return v.speaksOf("bench-held") && v.reason == "WouldDisrupt" && strings.Contains(v.message, podsNamespace+"/bench-younger (OutOfpods)")
		})
	}
	return n.awaitNode(ctx, "that it is active without a forecast", func(v view) bool {
		return v.runs("bench-held", version) && strings.Contains(v.message, "was not foreseen")
	})
}

// runPod waits for a pod to run, and so long that the next one is younger by the second in which the API dates pods.
func (n *node) runPod(ctx context.Context, name string) error {
	no, grace := false, int64(1)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{NodeName: cluster.NodeName, HostNetwork: true, AutomountServiceAccountToken: &no, TerminationGracePeriodSeconds: &grace,
			Containers: []corev1.Container{{Name: "main", Image: cluster.PauseImage, ImagePullPolicy: corev1.PullNever}}},
	}
	if err := n.client.Post().Namespace(podsNamespace).Resource("pods").Body(pod).Do(ctx).Into(pod); err != nil {
		return fmt.Errorf("making pod %s: %w", name, err)
	}
	return await(ctx, "pod "+name+" runs", func() error {
		var now corev1.Pod
		err := n.client.Get().Namespace(podsNamespace).Resource("pods").Name(name).Do(ctx).Into(&now)
		if err == nil && (now.Status.Phase != corev1.PodRunning || time.Since(pod.CreationTimestamp.Time) < 2*time.Second) {
			err = fmt.Errorf("it is %s", now.Status.Phase)
		}
		return err
	})
}

func (n *node) removePod(ctx context.Context, name string) error {
	return n.client.Delete().Namespace(podsNamespace).Resource("pods").Name(name).Body(&metav1.DeleteOptions{GracePeriodSeconds: new(int64)}).Do(ctx).Error()
}
