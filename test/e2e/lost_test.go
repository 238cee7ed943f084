//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/status"
	configsync "github.com/kubelet-supervisor/kubelet-supervisor/sync"
	"github.com/kubelet-supervisor/kubelet-supervisor/test/cluster"
)

// A status that somebody removes or forges is written again. The look at the Node, which a supervisor has every ten minutes, comes
// every half second here; so it is the publisher alone, with the node's identity.
func TestLostStatus(t *testing.T) {
	n := sharedNode(t)
	n.must(t, http.MethodPost, "/api/v1/nodes", object{"metadata": object{"name": cluster.NodeName}}, nil)
	identity, err := n.IdentityConfig("system:node:"+cluster.NodeName, "system:nodes")
	if err != nil {
		t.Fatal(err)
	}
	client, err := configsync.NewClient(identity)
	if err != nil {
		t.Fatal(err)
	}
	publisher := status.NewPublisher(status.Options{Client: client, NodeName: cluster.NodeName, CheckEvery: time.Second / 2})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- publisher.Run(ctx) }()
	defer func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	observed := "kube-system/good/kubelet"
	publisher.Offer(status.Report{Publication: nodev1.Publication{Observed: &observed, Status: nodev1.Status{Reason: nodev1.ReasonActive},
		Condition: corev1.NodeCondition{Status: corev1.ConditionTrue, Reason: nodev1.ReasonActive, Message: "using current"}}})
	asPublished := func(v nodeView) bool {
		return v.is(observed, "Active") && nodev1.Read(v.Node).Status.Reason == nodev1.ReasonActive && v.Condition.Status == corev1.ConditionTrue && v.Condition.Message == "using current"
	}
	n.awaitNode(t, "the status is published", asPublished)
	for name, patch := range map[string]object{
		"the annotations are removed": {"metadata": object{"annotations": object{statusAnnotation: nil, observedAnnotation: nil}}},
		"the status is forged":        {"metadata": object{"annotations": object{nodev1.StatusAnnotation: `{"reason":"Rejected"}`}}},
		"one is forged":               {"metadata": object{"annotations": object{observedAnnotation: "kube-system/other/kubelet"}}},
		"the condition is forged": {"status": object{"conditions": []object{
			{"type": conditionType, "status": "False", "reason": "Refused", "message": "forged", "lastHeartbeatTime": nil, "lastTransitionTime": nil}}}},
	} {
		t.Run(name, func(t *testing.T) {
			before := n.awaitNode(t, "the status is there", asPublished).Node.ResourceVersion
			n.must(t, http.MethodPatch, nodePath+"/status", patch, nil)
			after := n.awaitNode(t, "it is published again", func(v nodeView) bool { return asPublished(v) && v.Node.ResourceVersion != before }).Node.ResourceVersion
			holds(t, 3*time.Second, "nothing is written any more", func() error {
				v, err := n.view()
				if err == nil && v.Node.ResourceVersion != after {
					err = fmt.Errorf("the Node is at resourceVersion %s, after %s", v.Node.ResourceVersion, after)
				}
				return err
			})
		})
	}
}
