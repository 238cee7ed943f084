package plugin

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/kubernetes"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/internal/bounded"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/document"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/view"
)

// A waitCondition is what a Node must report for a command to have succeeded.
type waitCondition struct {
	wanted    nodev1.Assignment
	text      string            // what config-observed must be, verbatim; "" for nothing assigned
	uid       string            // of the ConfigMap
	version   string            // its resourceVersion
	payload   map[string]string // the content then; nil: any other version has other content
	immutable bool              // every version has the same content
	edited    bool              // the content has changed since, and the node follows it
	good      bool              // last known good, not only active
	retry     string            // the retry that the supervisor must have seen; "" for none
}

// waitConditionOf returns the condition that nodes run a ConfigMap in the version that was read.
func waitConditionOf(wanted nodev1.Assignment, configMap *corev1.ConfigMap, good bool) waitCondition {
	return waitCondition{
		wanted: wanted, uid: string(configMap.UID), version: configMap.ResourceVersion, payload: document.Payload(configMap),
		immutable: configMap.Immutable != nil && *configMap.Immutable, good: good,
	}
}

// learn reads the ConfigMap if a node runs a newer version of it than was assigned. A version that only differs in
// labels also counts: for it, a node only moves its pointers.
func (g *waitCondition) learn(ctx context.Context, client kubernetes.Interface, v view.Node) {
	active := v.Says.Config.Active
	if g.immutable || g.payload == nil || g.edited || !g.isActive(active) {
		return
	}
	newer, err := resourceversion.CompareResourceVersion(active.ConfigMap.ResourceVersion, g.version)
	if err != nil || newer <= 0 {
		return
	}
	found, _, err := view.GetConfigMap(ctx, client, g.wanted.Unpinned())
	if err != nil || string(found.UID) != g.uid {
		return
	}
	if !maps.Equal(document.Payload(found), g.payload) {
		g.edited = true
		return
	}
	g.version = active.ConfigMap.ResourceVersion
}

// isActive reports whether a node runs the ConfigMap, in any version.
func (g waitCondition) isActive(active *corev1.NodeConfigSource) bool {
	return active != nil && active.ConfigMap != nil && nodev1.AssignmentOf(active) == g.wanted.Unpinned() && string(active.ConfigMap.UID) == g.uid
}

// A verdict says how far a Node is from the condition.
type verdict int

const (
	waiting verdict = iota
	failing         // the node reports a failure, and tries again automatically
	failed
	reached
)

// judge returns the verdict, and a text for the user.
//
// ¶ The node writes a status in one patch: once it has observed the wanted assignment, the status is about that.
func (g waitCondition) judge(v view.Node) (verdict, string) {
	says := v.ReasonAndMessage()
	switch {
	case v.Says.Assignment != g.text:
		return failed, fmt.Sprintf("another user or program assigned %q in the meantime", v.Says.Assignment)
	case !v.Says.Supervised:
		return waiting, "no supervisor has spoken on this node yet"
	case v.Says.Status.Observed != g.text:
		return waiting, "waits for the node's supervisor"
	case g.retry != v.Says.Status.Retry && g.retry != "":
		return waiting, "waits for the node to try again; it said: " + says
	}
	switch v.Wellness() {
	case corev1.ConditionTrue:
		return g.judgeRunning(v)
	case corev1.ConditionFalse:
		switch v.Reason() {
		case nodev1.ReasonRolledBack: // a final verdict follows
			return waiting, says
		case nodev1.ReasonSyncFailed: // a grant takes a moment to reach every API server
			return failing, says
		}
		return failed, says
	}
	return waiting, says
}

// judgeRunning judges a Node without problems: does it run the wanted configuration?
func (g waitCondition) judgeRunning(v view.Node) (verdict, string) {
	if g.wanted.IsLocal() {
		if v.Says.Config.Active != nil {
			return waiting, "goes back to its own configuration"
		}
		return reached, "runs its own configuration"
	}
	switch active := v.Says.Config.Active; {
	case !g.isActive(active):
		return waiting, "runs " + bounded.Line(nodev1.AssignmentOf(active).String())
	case g.edited:
		return failed, fmt.Sprintf("ConfigMap %s/%s was edited in the meantime, and the node follows that: it does not run what was shown", g.wanted.Namespace, g.wanted.Name)
	case active.ConfigMap.ResourceVersion != g.version && !g.immutable:
		return waiting, "runs another version of " + g.wanted.Unpinned().String()
	case !g.good:
		return reached, "runs " + g.wanted.Unpinned().String()
	case v.Reason() != nodev1.ReasonActive:
		return waiting, "runs it on trial"
	}
	return reached, "passed its trial with " + g.wanted.Unpinned().String()
}
