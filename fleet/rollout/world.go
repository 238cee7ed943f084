package rollout

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
)

// World has everything that a decision is made from.
type World struct {
	// Now is the API server's Date. It is used for windows, the age of a Node and timestamps only.
	Now time.Time
	// Elapsed is the monotonic time since the last decision.
	Elapsed time.Duration
	// Synced means that every cache has been complete at some time since this process began to lead. Otherwise nothing
	// is written.
	Synced bool
	Pools  []Pool
	// Budgets are all budgets of the cluster.
	Budgets []Budget
	// Layers are the known layers. A layer that is not in here is not known yet, which differs from Missing.
	Layers map[Ref]Layer
	Nodes  []Node
	Turned []TurnedAway
	// Broken are variants that are assigned to nodes, and that do not match their names or do not exist.
	Broken []Broken
	// Seen, Gone and Clocks are the memory of this process, from the last plan. They may be empty.
	Seen   map[types.UID]Seen
	Gone   []Gone
	Clocks map[string]Clock
	// Denied are the Nodes whose PATCH the API server has refused (400, 403), with its message. The controller forgets
	// them after a while, so that they are tried again.
	Denied map[types.UID]string
	// RefusedRevisions and RefusedVariants are objects that the API server refuses, by name, with its message, for
	// example from a quota or a webhook. The plan names them as long as they are needed, so that the controller tries
	// them again occasionally, and forgets the others.
	RefusedRevisions, RefusedVariants map[string]string
	// Mute are the pools whose status the API server refuses. Nothing is done for them, because it could not be
	// recorded; only our cordons are lifted.
	Mute map[string]bool
	// Drains is what this process has found at the drains in progress.
	Drains map[types.UID]Drained
}

// Broken is a damaged variant, by the name of its ConfigMap.
type Broken struct {
	Name string
	// Tampered means that it exists, but does not match its name.
	Tampered bool
}

// Plan is what to do: revisions and variants first, then the status, then the writes. No write needs an object
// that is refused.
type Plan struct {
	Revisions []Revision
	Variants  []Variant
	// Status has the pools whose status changes.
	Status map[string]v1alpha1.KubeletPoolStatus
	// Budgets has the budgets whose status changes.
	Budgets map[string]v1alpha1.KubeletRolloutBudgetStatus
	Writes  []Write
	// Drains are the nodes from which pods must be evicted now. Evictions from any other node stop immediately.
	Drains []Draining
	Events []Event
	// Look is when to decide again if nothing happens; 0 means never.
	Look   time.Duration
	Seen   map[types.UID]Seen
	Gone   []Gone
	Clocks map[string]Clock
}

// Write is one PATCH of one Node, for exactly that uid and resourceVersion.
type Write struct {
	Node            string
	UID             types.UID
	ResourceVersion string
	Pool            string
	Why             Why
	// Source is the new value of config-source, Mark that of pool-assigned, Retry that of retry. Empty values do not
	// change.
	Source string
	Mark   Mark
	Retry  Retry
	// RemoveTaint is the key of a taint to remove, or empty.
	RemoveTaint string
	// Consent allows the node to make a change that would kill pods: its own approval of the change, or empty. It
	// applies to all pods that the node has when it makes the change.
	Consent string
	// Drain is the new value of pool-drain if Why concerns drains; the zero value means none. Lifts means that the
	// node is uncordoned.
	Drain Drain
	Lifts bool
}

// Why is the reason for a write.
type Why string

// The reasons for a write, in the order in which they are sent.
const (
	WhyUndrain  Why = "Undrain"  // the end of a drain, and of its cordon
	WhyRevert   Why = "TakeBack" // a stopped or superseded revision that has not begun
	WhyJoin     Why = "Join"     // a new node
	WhyRollback Why = "Back"     // to a revision that was completed before
	WhyConsent  Why = "Consent"  // to a change that a node holds for its pods
	WhyDrain    Why = "Drain"    // a cordon, for a node that waits for its pods
	WhyAdvance  Why = "Move"     // in a wave
	WhyLate     Why = "Late"     // after the rollout
)

// Forward reports whether a write moves a node ahead. Such a write waits for windows and zones, and is void after
// a stop; a write on the way back is not.
func (w Why) Forward() bool {
	return w == WhyAdvance || w == WhyLate || w == WhyConsent || w == WhyDrain
}

// moves reports whether a write assigns the target to a member.
func (w Why) moves() bool { return w == WhyAdvance || w == WhyLate || w == WhyRollback }

func (w Why) order() int {
	return slices.Index([]Why{WhyUndrain, WhyRevert, WhyJoin, WhyRollback, WhyConsent, WhyDrain, WhyAdvance, WhyLate}, w)
}

// Event is a Kubernetes Event about a pool or, where Node is set, about a Node.
type Event struct {
	Pool, Node string
	UID        types.UID
	Warning    bool
	Reason     string
	Message    string
}

// TurnedAway is a pod that a kubelet has rejected.
type TurnedAway struct {
	Node types.UID
	// Namespace and Name identify the pod.
	Namespace, Name string
	// Started is when the kubelet first had it, by the node's clock; zero means unknown.
	Started time.Time
	// Unbound means that this process has seen it before a scheduler chose the node. Any user who creates a pod can
	// name a node in it.
	Unbound bool
	// Age is how long this process has known that it failed.
	Age time.Duration
}

// Seen is what this process remembers of a node. All its times are elapsed times.
type Seen struct {
	Name string
	// Mark and Retry name the assignment that the other fields are about, and Source what was assigned.
	Mark   Mark
	Retry  Retry
	Source string
	// Phase is its progress at the last turn.
	Phase Class
	// WasReady means that it was Ready at the assignment.
	WasReady bool
	// Pressure has its pressures at the assignment.
	Pressure Pressure
	// BootID, Ready, Runs, Ill and Aside are from the last turn. AsideFirst means that it was aside before it became
	// ill.
	BootID, Minor, Arch                 string
	Ready, Runs, Ill, Aside, AsideFirst bool
	// Assigned is how long it has had the assignment, Unanswered how long it has owed an answer, and Running how long
	// it has run it.
	Assigned, Unanswered, Running time.Duration
	// IllFor is how long it was ill, less a part of the time that it has been well since.
	IllFor time.Duration
	// Upgraded means that its kubelet's minor version has changed, and Upheld is how long it has been Ready and run
	// what it has since then.
	Upgraded bool
	Upheld   time.Duration
	// AwayFor is how long it has not been Ready.
	AwayFor time.Duration
	// Asks is what its labels ask for, and AsksFor for how long. Relabelled means that they asked for something else a
	// moment ago.
	Asks       Asks
	AsksFor    time.Duration
	Relabelled bool
	// Restless is how long they have not been unchanged for long enough.
	Restless time.Duration
	// Drain is the drain in progress. Drained is its duration, and Emptied how long it has had nothing left to do.
	Drain            Drain
	Drained, Emptied time.Duration
}

// Gone is a node that vanished while it was at risk.
type Gone struct {
	UID                     types.UID
	Node                    string
	Retry                   Retry
	Minor, Arch, Assignment string // its cohort
	Ill                     bool
}

// Clock has the exact elapsed times of a pool's open wave; the status has them in steps of half a minute.
type Clock struct {
	Retry           Retry
	Wave            int32
	Soaked, Elapsed time.Duration
	// Reached is the highest number of placed and proven nodes, and Idle how long it has not grown.
	Reached int
	Idle    time.Duration
	// Opened is when it was opened, by the API server's clock, as the age of a Node: nodes created later are not part
	// of it.
	Opened time.Time
	// Soaking means that the wave was proven at the last turn. Barred means that no member could be moved because of a
	// window, a budget or a topology.
	Soaking, Barred bool
}
