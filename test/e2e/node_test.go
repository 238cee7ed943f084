//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/test/cluster"
)

const (
	nodePath             = "/api/v1/nodes/" + cluster.NodeName
	assignmentAnnotation = nodev1.ConfigSourceAnnotation
	statusAnnotation     = nodev1.ConfigStatusAnnotation
	observedAnnotation   = nodev1.ConfigObservedAnnotation
	retryAnnotation      = nodev1.RetryAnnotation
	conditionType        = "KubeletConfigOk"

	newest       = "1.36.3"
	keepsTheAPI  = "1.24.17" // keeps spec.configSource and status.config
	beforeCached = "1.30.14" // lists are read from etcd, except where any age will do
	configFolder = "/api/v1/namespaces/%s/configmaps"
)

// A node is the one node of a cluster.
type node struct {
	*cluster.Cluster
	supervisors atomic.Int32 // started so far; for the names of their folders
	readable    map[string][]string
}

var shared = map[string]*node{} // by version of the API server

// sharedNode is the node of the cluster (API server 1.36.3) that all tests share, with no Node object, no kubelet, and no
// ConfigMap readable.
func sharedNode(t *testing.T) *node { return nodeOf(t, newest) }

// nodeOf is the same for another API server.
func nodeOf(t *testing.T, apiServer string) *node {
	t.Helper()
	if shared[apiServer] == nil {
		shared[apiServer] = up(t, "e2e-"+strings.ReplaceAll(apiServer[2:4], ".", ""), apiServer)
	}
	n := shared[apiServer]
	n.reset(t)
	return n
}

func up(t *testing.T, name, apiServer string) *node {
	t.Helper()
	// The process id keeps apart two runs of these tests on one machine.
	c, err := cluster.Up(t.Context(), cluster.Options{Name: fmt.Sprintf("%s-%d", name, os.Getpid()), APIServer: apiServer, Log: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	n := &node{Cluster: c}
	for _, namespace := range []string{"kubelet-config", "elsewhere"} {
		n.must(t, http.MethodPost, "/api/v1/namespaces", object{"metadata": object{"name": namespace}}, nil)
	}
	return n
}

// reset makes the node a new one. The Node's Lease goes too: another Node's would be renewed by nobody.
func (n *node) reset(t *testing.T) {
	t.Helper()
	n.remove(t, nodePath)
	n.remove(t, "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/"+cluster.NodeName)
	n.readable = map[string][]string{}
	for _, namespace := range []string{"kube-system", "kubelet-config", "elsewhere"} {
		n.remove(t, "/apis/rbac.authorization.k8s.io/v1/namespaces/"+namespace+"/roles/kubelet-config")
	}
}

// A nodeView is what the Node says of its kubelet's configuration.
type nodeView struct {
	UID       string
	Ready     bool
	HasStatus bool                     // the annotation config-status is there
	Config    corev1.NodeConfigStatus  // the annotation config-status
	Field     *corev1.NodeConfigStatus // status.config, where the API server keeps it
	Observed  *string                  // the annotation config-observed
	Condition corev1.NodeCondition     // KubeletConfigOk; zero when it is not there
	Node      *corev1.Node             `json:"-"`
}

// view reads the Node; an error when there is none or its status cannot be decoded.
func (n *node) view() (nodeView, error) {
	var v nodeView
	v.Node = &corev1.Node{}
	if _, err := n.request(http.MethodGet, nodePath, nil, v.Node); err != nil {
		return v, err
	}
	v.UID, v.Field = string(v.Node.UID), v.Node.Status.Config
	for _, c := range v.Node.Status.Conditions {
		switch c.Type {
		case conditionType:
			v.Condition = c
		case corev1.NodeReady:
			v.Ready = c.Status == corev1.ConditionTrue
		}
	}
	if observed, is := v.Node.Annotations[observedAnnotation]; is {
		v.Observed = &observed
	}
	text, is := v.Node.Annotations[statusAnnotation]
	v.HasStatus = is
	if !is {
		return v, nil
	}
	if err := json.Unmarshal([]byte(text), &v.Config); err != nil {
		return v, fmt.Errorf("annotation %s is %q: %w", statusAnnotation, text, err)
	}
	return v, nil
}

func (v nodeView) String() string {
	text, _ := json.MarshalIndent(v, "", "  ")
	return string(text)
}

// is tells whether the Node speaks of this assignment ("" = none) with this reason.
func (v nodeView) is(observed, reason string) bool {
	said := ""
	if v.Observed != nil {
		said = *v.Observed
	}
	return v.HasStatus && said == observed && v.Condition.Reason == reason
}

// awaitNode waits until the Node is as described and returns it.
func (n *node) awaitNode(t *testing.T, description string, as func(nodeView) bool) nodeView {
	t.Helper()
	var v nodeView
	await(t, description, func() (err error) {
		if v, err = n.view(); err == nil && !as(v) {
			err = fmt.Errorf("%s", v)
		}
		return err
	})
	return v
}

// awaitReason waits until the Node speaks of this assignment ("" = none) with this reason of KubeletConfigOk.
func (n *node) awaitReason(t *testing.T, observed, reason string) nodeView {
	t.Helper()
	return n.awaitNode(t, fmt.Sprintf("%q is %s", observed, reason), func(v nodeView) bool { return v.is(observed, reason) })
}

// assign sets the annotation: NAMESPACE/NAME/KEY, with @UID, or local. The Node must exist.
func (n *node) assign(t *testing.T, assignment string) {
	t.Helper()
	n.annotate(t, assignmentAnnotation, assignment)
}

// unassign removes the annotation.
func (n *node) unassign(t *testing.T) {
	t.Helper()
	n.annotate(t, assignmentAnnotation, nil)
}

// annotate sets an annotation of the Node as admin; nil removes it.
func (n *node) annotate(t *testing.T, name string, value any) {
	t.Helper()
	n.must(t, http.MethodPatch, nodePath, object{"metadata": object{"annotations": object{name: value}}}, nil)
}

// events are those of the Node of this uid, oldest first, as "TYPE REASON: MESSAGE".
func (n *node) events(t *testing.T, uid string) []string {
	t.Helper()
	var list corev1.EventList
	n.must(t, http.MethodGet, "/api/v1/namespaces/default/events?fieldSelector=involvedObject.uid="+uid, nil, &list)
	var lines []string
	for _, e := range list.Items {
		if e.Source.Component == "kubelet-supervisor" || e.ReportingController == "kubelet-supervisor" {
			lines = append(lines, fmt.Sprintf("%s %s: %s", e.Type, e.Reason, e.Message))
		}
	}
	return lines
}
