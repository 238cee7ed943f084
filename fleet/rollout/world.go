package rollout

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
)

// World is everything that a decision is made from.
type World struct {
	// Now is the API server's Date: for windows, the age of a Node and timestamps, nothing else.
	Now time.Time
	// Elapsed is monotonic, since the last decision.
	Elapsed time.Duration
	// Synced: every cache holds what the API server held at some time since this process began to lead. Else nothing is written.
	Synced bool
	Pools  []Pool
	// Budgets are all that there are.
	Budgets []Budget
	// Layers are those that are known. One that is not in here is not known yet, which is not the same as Missing.
	Layers map[Ref]Layer
	Nodes  []Node
	Turned []TurnedAway
	// Broken are the variants that nodes have been assigned, and that are not what their names say, or are not there.
	Broken []Broken
	// Seen, Gone and Clocks are the memory of this process, as the last plan gave them. They may be empty.
	Seen   map[types.UID]Seen
	Gone   []Gone
	Clocks map[string]Clock
	// Denied are the Nodes whose PATCH the API server has refused for good (400, 403), and its words. The shell forgets them after a while,
	// so that they are tried again.
	Denied map[types.UID]string
	// RefusedRevisions and RefusedVariants are what the API server does not take, by the names of the objects, and its words: a quota's, a
	// webhook's. The plan names them as long as they are needed, so that the shell tries them again now and then, and forgets the others.
	RefusedRevisions, RefusedVariants map[string]string
	// Mute are the pools whose status the API server does not take. Nothing is done for them, since it could not be remembered; only cordons of
	// ours are lifted.
	Mute map[string]bool
	// Drains is what this process has found at the drains under way.
	Drains map[types.UID]Drained
}

// Broken is a variant, by the name of its ConfigMap, that something is wrong with.
type Broken struct {
	Name string
	// Tampered: it is there, and not what its name says.
	Tampered bool
}

// Plan is what to do: revisions and variants first, then the status, then the writes. No write needs what is refused.
type Plan struct {
	Revisions []Revision
	Variants  []Variant
	// Status has the pools whose status changes.
	Status map[string]v1alpha1.KubeletPoolStatus
	// Budgets has the budgets whose status changes.
	Budgets map[string]v1alpha1.KubeletRolloutBudgetStatus
	Writes  []Write
	// Drains are the nodes from which pods are to be evicted now. A node that is not among them is left alone at once.
	Drains []Draining
	Events []Event
	// Look is when to decide again, even if nothing happens; 0 is never.
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
	// Source is the new value of config-source, Mark that of pool-assigned, Retry that of retry. Empty: they stay as they are.
	Source string
	Mark   Mark
	Retry  Retry
	// RemoveTaint is the key of a taint to remove, or empty.
	RemoveTaint string
	// Consent lets the node make a change that would kill pods, whatever pods it names just before: its own approval of the change, or empty.
	Consent string
	// Drain is the new value of pool-drain, where Why is about drains; the zero value is none. Lifts: the node is uncordoned.
	Drain Drain
	Lifts bool
}

// Why says what a write is for.
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

// Forward reports whether a write leads a node further ahead: it waits for windows and zones, and is void after a stop. The way back is not.
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

// TurnedAway is a pod that a kubelet has turned away.
type TurnedAway struct {
	Node types.UID
	// Namespace and Name are the pod's.
	Namespace, Name string
	// Started is when the kubelet first had it, by the node's clock; zero: it is not known.
	Started time.Time
	// Unbound: this process has seen it before a scheduler chose the node. Who makes a pod can name any node in it.
	Unbound bool
	// Age is for how long this process has known that it failed.
	Age time.Duration
}

// Seen is what this process remembers of a node. All of its times are elapsed ones.
type Seen struct {
	Name string
	// Mark and Retry name the assignment that the rest is about, and Source what was assigned.
	Mark   Mark
	Retry  Retry
	Source string
	// Phase is how far it was when it was last looked at.
	Phase Class
	// WasReady: it was Ready when it was assigned what it has.
	WasReady bool
	// Pressure has the pressures that it had when it was assigned.
	Pressure Pressure
	// BootID, Ready, Runs, Ill and Aside are as they were when last looked at. AsideFirst: it was aside before it became ill.
	BootID, Minor, Arch                 string
	Ready, Runs, Ill, Aside, AsideFirst bool
	// Assigned is since when it has the assignment, Unanswered since when it owes an answer to it, Running since when it runs it.
	Assigned, Unanswered, Running time.Duration
	// IllFor is for how long it was ill, less a part of the time that it has been well since.
	IllFor time.Duration
	// Upgraded: its kubelet has another minor version than before, and Upheld is for how long it has run what it has with that, and was Ready.
	Upgraded bool
	Upheld   time.Duration
	// AwayFor is for how long it is not Ready.
	AwayFor time.Duration
	// Asks is what its labels ask for, and AsksFor for how long they do. Relabelled: they have asked for something else a moment ago.
	Asks       Asks
	AsksFor    time.Duration
	Relabelled bool
	// Restless is for how long they have not been still for long enough.
	Restless time.Duration
	// Drain is the one that is under way. Drained is for how long, and Emptied for how long it has found nothing left to do.
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

// Clock has the elapsed times of a pool's open wave, exact ones; the status has those of the last half minute.
type Clock struct {
	Retry           Retry
	Wave            int32
	Soaked, Elapsed time.Duration
	// Reached is the most that was placed and proven of it, and Idle for how long it has not become more.
	Reached int
	Idle    time.Duration
	// Opened is when it was opened, by the API server's clock as the age of a Node is: who was made later is not part of it.
	Opened time.Time
	// Soaking: when it was last looked at, the wave was proven. Barred: no member could be moved because of a window, a budget or a topology.
	Soaking, Barred bool
}
