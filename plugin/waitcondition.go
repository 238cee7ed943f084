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

// A waitCondition is what a Node has to say for a command to have succeeded.
type waitCondition struct {
	wanted    nodev1.Assignment
	text      string            // what config-observed must be, verbatim; "" for nothing assigned
	uid       string            // of the ConfigMap
	version   string            // its resourceVersion
	payload   map[string]string // what it held then; nil: any other version is another content
	immutable bool              // every version of it holds the same
	edited    bool              // it holds something else meanwhile, and the node follows that
	good      bool              // last known good, not only active
	retry     string            // the retry that the supervisor has to have heard; "" for none
}

// waitConditionOf is the condition that nodes run a ConfigMap as it was read.
func waitConditionOf(wanted nodev1.Assignment, configMap *corev1.ConfigMap, good bool) waitCondition {
	return waitCondition{
		wanted: wanted, uid: string(configMap.UID), version: configMap.ResourceVersion, payload: document.Payload(configMap),
		immutable: configMap.Immutable != nil && *configMap.Immutable, good: good,
	}
}

// learn looks at the ConfigMap where a node runs a newer version of it than was assigned. A version that differs in labels alone is as good:
// a node only moves its pointers to it.
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

// isActive tells whether a node runs the ConfigMap, in whatever version.
func (g waitCondition) isActive(active *corev1.NodeConfigSource) bool {
	return active != nil && active.ConfigMap != nil && nodev1.AssignmentOf(active) == g.wanted.Unpinned() && string(active.ConfigMap.UID) == g.uid
}

// A verdict says how far a Node is from what is waited for.
type verdict int

const (
	waiting verdict = iota
	failing         // the node reports a failure, and goes on trying by itself
	failed
	reached
)

// judge gives the verdict, and what to tell a person about it.
//
// All of a status comes in one patch: once it has observed the wanted assignment, it speaks of that.
func (g waitCondition) judge(v view.Node) (verdict, string) {
	says := v.ReasonAndMessage()
	switch {
	case v.Says.Assignment != g.text:
		return failed, fmt.Sprintf("somebody assigned %q meanwhile", v.Says.Assignment)
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
		case nodev1.ReasonRolledBack: // its verdict follows
			return waiting, says
		case nodev1.ReasonSyncFailed: // a grant takes a moment to be known to every API server
			return failing, says
		}
		return failed, says
	}
	return waiting, says
}

// judgeRunning judges a Node on which all is well: with the wanted configuration?
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
		return failed, fmt.Sprintf("somebody edited ConfigMap %s/%s meanwhile, and the node follows that: it runs something else than was shown", g.wanted.Namespace, g.wanted.Name)
	case active.ConfigMap.ResourceVersion != g.version && !g.immutable:
		return waiting, "runs another version of " + g.wanted.Unpinned().String()
	case !g.good:
		return reached, "runs " + g.wanted.Unpinned().String()
	case v.Reason() != nodev1.ReasonActive:
		return waiting, "runs it on trial"
	}
	return reached, "passed its trial with " + g.wanted.Unpinned().String()
}
