package plugin

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubelet-supervisor/kubelet-supervisor/decide"
)

// A goal is what a Node has to say for a command to have succeeded.
type goal struct {
	wanted  reference
	text    string // what config-observed must be, verbatim; "" for nothing assigned
	uid     string // of the ConfigMap
	version string // its resourceVersion
	good    bool   // last known good, not only active
	before  *corev1.NodeCondition
}

// A verdict says how far a Node is from a goal.
type verdict int

const (
	waiting verdict = iota
	failing         // the node reports a failure, and goes on trying by itself
	failed
	reached
)

// judge gives the verdict, and what to tell a person about it.
//
// Annotations and condition come in one patch: once config-observed is the wanted assignment, the condition speaks of it.
func (g goal) judge(v nodeView) (verdict, string) {
	c := v.condition
	says := fmt.Sprintf("%s: %s", printable(c.Reason), v.words())
	switch {
	case v.assignment != g.text:
		return failed, fmt.Sprintf("somebody assigned %q meanwhile", v.assignment)
	case !v.supervised:
		return waiting, "no supervisor has spoken on this node yet"
	case v.observed != g.text:
		return waiting, "waits for the node's supervisor"
	case g.before != nil && sameCondition(c, *g.before):
		return waiting, "waits for the node to try again; it said: " + says
	}
	switch c.Status {
	case corev1.ConditionTrue:
		return g.judgeRunning(v)
	case corev1.ConditionFalse:
		switch c.Reason {
		case decide.ReasonRolledBack: // its verdict follows
			return waiting, says
		case decide.ReasonSyncFailed: // a grant takes a moment to be known to every API server
			return failing, says
		}
		return failed, says
	}
	return waiting, firstOf(says, "has no condition yet")
}

// judgeRunning judges a Node on which all is well: with the wanted configuration?
func (g goal) judgeRunning(v nodeView) (verdict, string) {
	if g.wanted.local() {
		if v.config.Active != nil {
			return waiting, "goes back to its own configuration"
		}
		return reached, "runs its own configuration"
	}
	switch active := v.config.Active; {
	case referenceTo(active) != g.wanted.unpinned() || string(active.ConfigMap.UID) != g.uid:
		return waiting, "runs " + printable(referenceTo(active).String())
	case active.ConfigMap.ResourceVersion != g.version:
		return waiting, "runs another version of " + g.wanted.unpinned().String()
	case !g.good:
		return reached, "runs " + g.wanted.unpinned().String()
	case v.condition.Reason != decide.ReasonActive:
		return waiting, "runs it on trial"
	}
	return reached, "passed its trial with " + g.wanted.unpinned().String()
}

// sameCondition tells whether a supervisor has said nothing new: each of its patches that says something moves the heartbeat.
func sameCondition(a, b corev1.NodeCondition) bool {
	return a.Status == b.Status && a.Reason == b.Reason && a.Message == b.Message && a.LastHeartbeatTime.Equal(&b.LastHeartbeatTime)
}
