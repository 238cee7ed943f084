package rollout

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
)

// The annotations and labels of pools on Nodes; those of the Node contract are in package nodev1.
const (
	prefix          = "kubelet-supervisor.io/"
	MarkAnnotation  = prefix + "pool-assigned"
	DrainAnnotation = prefix + "pool-drain"
	RolloutLabel    = prefix + "rollout"
	PoolLabel       = prefix + "pool"

	// Unassigned means no assignment in a Mark; the annotation then does not exist.
	Unassigned = "-"
)

// Node has what the core reads of a Node. The controller makes it once for each version of the Node, so that a
// decision decodes nothing.
type Node struct {
	Name            string
	UID             types.UID
	ResourceVersion string
	Labels          map[string]string
	Created         time.Time
	Ready           bool
	// Cordoned means that others have cordoned it. Draining means that a pool has, for the drain in Drain.
	Cordoned, Draining bool
	// Drain is the drain that the Node records, in progress or ended.
	Drain Drain
	// Leaving means that it is being deleted, or that an autoscaler has marked it for deletion.
	Leaving bool
	// Updating means that another updater is changing it.
	Updating     bool
	ControlPlane bool
	BootID       string
	Pressure     Pressure
	// Minor is the kubelet's version, such as v1.36.
	Minor, Arch string
	Taints      []string

	// Supervised means that a supervisor has published its status; Layered that this supervisor knows layers.
	Supervised, Layered bool
	// Source is the assignment, from annotation or field; "" means nothing. Mark is what a pool has assigned to it.
	Source string
	Mark   Mark
	Retry  Retry
	// The node's own report. Assigned, Active and Good have the form of Source; Local means its own configuration.
	Observed               string
	RetryHeard             Retry
	Assigned, Active, Good string
	Reason                 nodev1.Reason
	// Failure is what the newest assignment has failed at.
	Failure string
	// ChangeBegan is when its newest change began, by its own clock.
	ChangeBegan time.Time
	// Shadows are fields of the assignment that are overridden on the node, and by what.
	Shadows []Shadow
	// Asks is the approval that a node which holds a change for its pods asks for, and Holds says for which pods;
	// Consent is the approval that it was given.
	Asks    nodev1.Approval
	Holds   string
	Consent string
}

// Shadow is a field that a flag or a drop-in file of a node overrides.
type Shadow struct{ Field, By string }

// Pressure is a set of pressures.
type Pressure uint8

// The pressures.
const (
	MemoryPressure Pressure = 1 << iota
	DiskPressure
	PIDPressure
)

// Mark records the assignment that a pool has written. It is the value of an annotation, as JSON. The zero value
// means no mark.
type Mark struct {
	Pool       string `json:"pool"`
	Assignment string `json:"assignment,omitempty"`
	Attempt    int64  `json:"attempt"`
	// NotReady means that the node was not Ready when this was assigned, so the assignment is not the cause. It is
	// stored on the Node because no process remembers it for long enough.
	NotReady bool `json:"notReady,omitempty"`
}

func (m Mark) String() string {
	if m.Pool == "" {
		return ""
	}
	if m.Assignment == Unassigned {
		m.Assignment = ""
	}
	return annotationOf(m)
}

// ParseMark decodes an annotation. It returns the zero value for an invalid one, because a user controls such a
// node.
func ParseMark(text string) Mark {
	var m Mark
	if text == "" || json.Unmarshal([]byte(text), &m) != nil || m.Pool == "" {
		return Mark{}
	}
	if m.Assignment == "" {
		m.Assignment = Unassigned
	}
	return m
}

// annotationOf encodes a value for an annotation. Strings and numbers can always be encoded.
func annotationOf(value any) string {
	text, err := canonical(value)
	if err != nil {
		panic(err)
	}
	return text
}

// Records reports whether the Node still has the assignment that the mark records.
func (m Mark) Records(source string) bool {
	return m.Pool != "" && (m.Assignment == source || m.Assignment == Unassigned && source == "")
}

// Retry names a revision in one of its attempts: POOL/HASH/ATTEMPT. It is the value of an annotation that the
// supervisor repeats in its status, so that it is known which attempt a verdict is about. The zero value means no
// retry.
type Retry struct {
	Pool, Hash string
	Attempt    int64
}

func (r Retry) String() string {
	if r.Pool == "" {
		return ""
	}
	return r.Pool + "/" + r.Hash + "/" + strconv.FormatInt(r.Attempt, 10)
}

// ParseRetry decodes an annotation. It returns the zero value for a user's own value.
func ParseRetry(text string) Retry {
	words := strings.Split(text, "/")
	if len(words) != 3 || words[0] == "" || words[1] == "" {
		return Retry{}
	}
	attempt, err := strconv.ParseInt(words[2], 10, 64)
	if err != nil {
		return Retry{}
	}
	return Retry{words[0], words[1], attempt}
}

// With returns the node as it will be after a write. The controller overlays its cache with what it has sent until
// the cache has caught up.
func (n Node) With(w Write) Node {
	if w.Source != "" {
		n.Source, n.Mark, n.Retry = w.Source, w.Mark, w.Retry
	}
	if w.RemoveTaint != "" {
		kept := make([]string, 0, len(n.Taints))
		for _, key := range n.Taints {
			if key != w.RemoveTaint {
				kept = append(kept, key)
			}
		}
		n.Taints = kept
	}
	if w.Consent != "" {
		n.Consent = w.Consent
	}
	switch w.Why {
	case WhyDrain:
		n.Draining, n.Drain = true, w.Drain
	case WhyUndrain:
		n.Draining, n.Drain = n.Draining && !w.Lifts, w.Drain
	}
	return n
}

// hasProven reports whether the node reports its assignment as its last known good configuration, and runs it.
func (n *Node) hasProven() bool {
	return n.Observed == n.Source && n.Active == n.Source && n.Good == n.Source && n.Reason == nodev1.ReasonActive
}

// ReadNode reads a Node.
func ReadNode(n *corev1.Node) Node {
	node := Node{Name: n.Name, UID: n.UID, ResourceVersion: n.ResourceVersion, Labels: n.Labels, Created: n.CreationTimestamp.Time,
		Cordoned: n.Spec.Unschedulable, Leaving: n.DeletionTimestamp != nil, Updating: updating(n), BootID: n.Status.NodeInfo.BootID,
		Minor: nodeWord(minor(n.Status.NodeInfo.KubeletVersion)), Arch: nodeWord(n.Status.NodeInfo.Architecture)}
	node.readTaints(n)
	node.readConditions(n)
	node.readPool(n)
	node.readStatus(nodev1.Read(n))
	node.readDrain(n)
	return node
}

// leaves reports whether autoscalers and clouds use a taint for nodes that they remove. Such a removal says
// nothing about the node's configuration.
func leaves(taint string) bool {
	switch taint {
	case "ToBeDeletedByClusterAutoscaler", "karpenter.sh/disrupted", "karpenter.sh/disruption", // the latter by Karpenter 0.32 to 0.37
		"cloud.google.com/impending-node-termination", "node.cloudprovider.kubernetes.io/shutdown", "node.kubernetes.io/out-of-service":
		return true
	}
	return strings.HasPrefix(taint, "aws-node-termination-handler/")
}

// shuttingDown is the message of a kubelet's Ready condition when the host shuts down.
const shuttingDown = "node is shutting down"

// shutsDown reports whether the host of the node shuts down. Without KEP-5683 a kubelet has no other field for it.
func shutsDown(ready *corev1.NodeCondition) bool {
	return ready.Status != corev1.ConditionTrue && strings.Contains(ready.Message, shuttingDown)
}

func (n *Node) readTaints(from *corev1.Node) {
	for _, taint := range from.Spec.Taints {
		n.Taints = append(n.Taints, taint.Key)
		n.Leaving = n.Leaving || leaves(taint.Key)
	}
	for _, label := range []string{"node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"} {
		if _, is := from.Labels[label]; is {
			n.ControlPlane = true
		}
	}
}

func (n *Node) readConditions(from *corev1.Node) {
	pressures := map[corev1.NodeConditionType]Pressure{corev1.NodeMemoryPressure: MemoryPressure, corev1.NodeDiskPressure: DiskPressure,
		corev1.NodePIDPressure: PIDPressure}
	for i := range from.Status.Conditions {
		condition := &from.Status.Conditions[i]
		is := condition.Status == corev1.ConditionTrue
		switch {
		case condition.Type == corev1.NodeReady:
			n.Ready = is
			n.Leaving = n.Leaving || shutsDown(condition)
		case is:
			n.Pressure |= pressures[condition.Type]
		}
	}
}

// readPool reads what a pool has written.
func (n *Node) readPool(from *corev1.Node) {
	n.Mark = ParseMark(from.Annotations[MarkAnnotation])
}

// noSource is an assignment that no pool makes: a field that names nothing.
const noSource = string(nodev1.CarrierField)

// readStatus reads the assignment and the node's report about it. It ignores the condition, because anyone who may
// patch nodes/status can forge it.
func (n *Node) readStatus(says nodev1.NodeStatus) {
	n.Source, n.Retry, n.Consent = says.Assignment, ParseRetry(says.Retry), says.AllowDisruption
	if says.Carrier == nodev1.CarrierField {
		n.Source = cmp.Or(n.Source, noSource)
	}
	n.Supervised, n.Layered = says.Supervised && says.Problem == nil, says.Knows(nodev1.LayersFeature)
	status := says.Status
	n.Observed, n.Reason, n.RetryHeard = status.Observed, nodeWord(status.Reason), ParseRetry(status.Retry)
	n.Assigned, n.Active, n.Good = sourceText(says.Config.Assigned), sourceText(says.Config.Active), sourceText(says.Config.LastKnownGood)
	if status.Failure != nil {
		n.Failure = message(status.Failure.Message)
	}
	if status.Change != nil {
		n.ChangeBegan = status.Change.Began
	}
	for _, f := range status.Shadowed[:min(len(status.Shadowed), namedShadows)] {
		n.Shadows = append(n.Shadows, Shadow{message(f.Field), message(f.By)})
	}
	if hold := status.Hold; hold != nil && n.Reason == nodev1.ReasonWouldDisrupt {
		n.Asks, n.Holds = nodev1.Approval(hold.Approval), message(hold.Text(namedLosses))
	}
}

func sourceText(source *corev1.NodeConfigSource) string { return nodev1.AssignmentOf(source).String() }

// namedShadows limits the overridden fields of a node that a pool reads.
const namedShadows = 3

// namedLosses limits the pods that a pool names as the cause of a delay on one node.
const namedLosses = 3

// KeptStatus returns the part of the status annotation that ReadNode reads, so that a cache need not store the
// rest. It is the same for most nodes of a pool, except for the start of the change.
func KeptStatus(text string) string {
	status, err := nodev1.DecodeStatus(text)
	if err != nil {
		return "" // not a status either
	}
	kept := nodev1.Status{Observed: status.Observed, Reason: status.Reason, Features: status.Features, Retry: status.Retry, Failure: status.Failure}
	if status.Change != nil {
		kept.Change = &nodev1.Change{Began: status.Change.Began}
	}
	for _, f := range status.Shadowed[:min(len(status.Shadowed), namedShadows)] {
		kept.Shadowed = append(kept.Shadowed, nodev1.ShadowedField{Field: f.Field, By: f.By})
	}
	if hold := status.Hold; hold != nil {
		named := hold.Losses[:min(len(hold.Losses), namedLosses)]
		kept.Hold = &nodev1.Hold{Approval: hold.Approval, Losses: named, More: hold.More + len(hold.Losses) - len(named), Known: hold.Known, WaitsFor: hold.WaitsFor}
	}
	return kept.Encode()
}

// The conditions in which other updaters, drains and the host report that they are changing the node (KEP-5683).
const (
	maintenance    corev1.NodeConditionType = "MaintenanceInProgress"
	shutdown       corev1.NodeConditionType = "GracefulNodeShutdownInProgress"
	drainCondition corev1.NodeConditionType = "DrainInProgress"
	drained        corev1.NodeConditionType = "Drained"
)

// KeptCondition returns the part of a condition that ReadNode reads, so that a cache need not store the rest; is
// is false if it reads nothing of it.
func KeptCondition(c corev1.NodeCondition) (kept corev1.NodeCondition, is bool) {
	kept = corev1.NodeCondition{Type: c.Type, Status: c.Status}
	switch c.Type {
	case corev1.NodeReady:
		if shutsDown(&c) {
			kept.Message = shuttingDown
		}
		return kept, true
	case corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure, maintenance, shutdown, drainCondition, drained:
		return kept, true
	}
	return kept, false
}

// updating recognizes other updaters: by conditions, OpenShift's machine config operator and kured by their
// annotations.
func updating(n *corev1.Node) bool {
	ours := ParseDrain(n.Annotations[DrainAnnotation])
	for i := range n.Status.Conditions {
		if n.Status.Conditions[i].Status != corev1.ConditionTrue {
			continue
		}
		switch n.Status.Conditions[i].Type {
		case maintenance, shutdown:
			return true
		case drainCondition, drained:
			if ours.Pool == "" || ours.Over != "" {
				return true
			}
		}
	}
	state, managed := n.Annotations["machineconfiguration.openshift.io/state"]
	_, rebooting := n.Annotations["weave.works/kured-reboot-in-progress"]
	_, rebootingNow := n.Annotations["kured.dev/reboot-in-progress"]
	return managed && state != "Done" || rebooting || rebootingNow
}

// minor returns v1.36 for v1.36.3.
func minor(version string) string {
	words := strings.SplitN(version, ".", 3)
	if len(words) < 2 {
		return version
	}
	return fmt.Sprintf("%s.%s", words[0], words[1])
}
