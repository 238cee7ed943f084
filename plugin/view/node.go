package view

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/pager"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/internal/bounded"
)

// A Node is a Node with what it reports about its kubelet's configuration.
type Node struct {
	*corev1.Node
	Says nodev1.NodeStatus
}

// NodeOf returns the view of a Node.
func NodeOf(node *corev1.Node) Node { return Node{node, nodev1.Read(node)} }

// Reason returns the node's answer to the assignment; "" if it has none.
func (v Node) Reason() string { return v.Says.Status.Reason }

// ReasonAndMessage returns the reason with the message for people.
func (v Node) ReasonAndMessage() string { return cmp.Or(v.Reason(), "nothing") + ": " + v.Message() }

// Wellness returns True, False or Unknown, from the reason. It ignores the condition, which can be forged.
func (v Node) Wellness() corev1.ConditionStatus { return nodev1.ConditionStatus(v.Reason()) }

// LastSpoke returns when the supervisor last updated the status.
func (v Node) LastSpoke() time.Time { return v.Says.Condition.LastHeartbeatTime.Time }

// Message returns the condition's message, made printable. No program reads anything in it.
func (v Node) Message() string { return bounded.Line(v.Says.Condition.Message) }

// Kubelet returns the version that the kubelet reports, for people.
func (v Node) Kubelet() string {
	return bounded.Text(bounded.Line(v.Status.NodeInfo.KubeletVersion), 64)
}

// Ready reports whether the Node's kubelet reports to the API server.
func (v Node) Ready() bool {
	return slices.ContainsFunc(v.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// Current returns the assignment of the Node; no assignment means local. It returns false for a malformed one.
func (v Node) Current() (nodev1.Assignment, bool) {
	wanted, err := v.Says.Wanted()
	return wanted, err == nil
}

// A Selection has the Nodes that a command line names.
type Selection struct {
	Names    []string
	Selector string
}

// Validate refuses names together with a selector, a selector that does not parse and, if required, an empty
// selection.
func (c Selection) Validate(required bool) error {
	switch {
	case len(c.Names) > 0 && c.Selector != "":
		return errors.New("name nodes or select them with -l, not both")
	case required && len(c.Names) == 0 && c.Selector == "":
		return errors.New("name nodes, or select them with -l")
	}
	if _, err := labels.Parse(c.Selector); err != nil {
		return fmt.Errorf("-l %s: %w", c.Selector, err)
	}
	return nil
}

// Nodes reads the selected Nodes: named ones in the order of the command line, others sorted. It fails if a
// selection matches none.
func (c Selection) Nodes(ctx context.Context, client kubernetes.Interface) ([]Node, error) {
	var views []Node
	if len(c.Names) > 0 {
		for _, name := range c.Names {
			view, err := GetNode(ctx, client, name)
			if err != nil {
				return nil, err
			}
			views = append(views, view)
		}
		return views, nil
	}
	list, _, err := ListNodes(ctx, client, metav1.ListOptions{LabelSelector: c.Selector})
	if err != nil {
		return nil, err
	}
	for i := range list {
		views = append(views, NodeOf(&list[i]))
	}
	if len(views) == 0 && c.Selector != "" {
		return nil, fmt.Errorf("no node matches -l %s", c.Selector)
	}
	slices.SortFunc(views, func(a, b Node) int { return strings.Compare(a.Name, b.Name) })
	return views, nil
}

// ListNodes lists Nodes, and returns the resource version of the list.
func ListNodes(ctx context.Context, client kubernetes.Interface, options metav1.ListOptions) (nodes []corev1.Node, version string, err error) {
	version, err = inChunks(ctx, options, func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		return client.CoreV1().Nodes().List(ctx, o)
	}, func(object runtime.Object) error {
		nodes = append(nodes, *object.(*corev1.Node))
		return nil
	})
	if err != nil {
		return nil, "", fmt.Errorf("listing nodes: %w", err)
	}
	return nodes, version, nil
}

// inChunks lists 500 objects at a time, as kubectl does, so that the API server need not hold thousands for one
// answer. If the API server has forgotten the next chunk, it lists everything in one request.
func inChunks(ctx context.Context, options metav1.ListOptions, list pager.ListPageFunc, each func(runtime.Object) error) (version string, err error) {
	whole, _, err := pager.New(list).List(ctx, options)
	if err != nil {
		return "", err
	}
	about, err := meta.ListAccessor(whole)
	if err != nil {
		return "", err
	}
	return about.GetResourceVersion(), meta.EachListItem(whole, each)
}

// GetNode reads one Node.
func GetNode(ctx context.Context, client kubernetes.Interface, name string) (Node, error) {
	name = strings.TrimPrefix(strings.TrimPrefix(name, "nodes/"), "node/") // as printed by -o name
	node, err := client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return Node{}, fmt.Errorf("there is no node %q; see kubectl get nodes (%w)", name, err)
	case err != nil:
		return Node{}, fmt.Errorf("reading node %s: %w", name, err)
	}
	return NodeOf(node), nil
}
