package core

import (
	"time"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
)

// Moment is when an event is decided about.
type Moment struct {
	Now  time.Duration // CLOCK_MONOTONIC: time asleep is no running time
	Wall time.Time     // for people only
}

// StaticPodEnded is in place of the kubelet's reason where a restart has ended a static pod: the kubelet gives none.
const StaticPodEnded = "StaticPod"

// Event is one thing that happened: one of the types below.
type Event interface{ event() }

// What can happen.
type (
	// Booted brings what the disk holds.
	Booted struct {
		Disk    Durable
		Kubelet kubeletconfig.Identity
		Local   string
		BootID  string   // of the host's boot; empty = unknown
		Cluster []string // digests of the keys of the cluster's certificate authorities; empty = unknown
		Waited  bool     // a kubelet was left behind that still waited at the lock; it was ended
		Warning string   // state that could not be read
		Useless string   // why the state folder cannot be used at all; empty = it can
		// LastChange is the one that the supervisor before has noted.
		LastChange LastChange
		// Said is what it said last.
		Said Said
	}
	// Assigned is a resolved assignment. Its checkpoint is already durable.
	Assigned struct {
		Version  Version
		Text     string
		NodeUID  string
		Shadowed bool
		Download time.Duration // how long it took until the checkpoint was durable
	}
	// Cleared is the absence of an assignment, or its explicit `local`.
	Cleared struct {
		Text    string // empty or "local"
		NodeUID string
	}
	// SyncFailed is an assignment that is malformed or cannot be read.
	SyncFailed struct {
		Problem Problem
		Text    string
	}
	// NodeGone says that the Node does not exist. What it said last may no longer hold.
	NodeGone struct{}
	// Retry asks to try a rejected configuration again. An empty Value is a request from the node itself, always new.
	Retry struct{ Value string }
	// Saved answers Save.
	Saved struct{ Err error }
	// Proved answers Prove.
	Proved struct {
		Proof
		NoMorePreflight bool
		NoRoom          bool   // for one more process
		Unanswered      bool   // there is no verdict yet: the same question may be answered with more time
		Nonce           string // random, for a hold that needs one
	}
	// Foreseen answers Foresee. Where it is neither known nor waited for, it cannot be known.
	Foreseen struct {
		Change
		Known    bool          // all that there is to know was answered
		WaitsFor string        // what has not answered, in one line; empty = nothing is waited for
		Lost     int           // running pods that would certainly be killed, or started again
		Losses   []nodev1.Loss // which
		InDoubt  []nodev1.Loss // that may be killed, and may not
		Words    string        // which, in one line
		Warning  string        // what cannot be known, or is uncertain, in one line
		Nonce    string        // random, for a hold that needs one

		Obstacles []Obstacle // to any start with what is to run
		Unseen    bool       // what is to run was not known, so not all obstacles were looked for
	}
	// ObstaclesSeen brings what the start of a kubelet with what runs now would meet.
	ObstaclesSeen struct{ Obstacles []Obstacle }
	// Asked answers Ask; Open: it was not answered, and must be asked again.
	Asked struct{ Open bool }
	// Consented brings the value of annotation allow-disruption; empty = none.
	Consented struct{ Value string }
	// PodsLost brings what a restart has cost that was not foreseen.
	PodsLost struct {
		Words string
		New   map[string]int // of them were not reported before, by the reason that the kubelet gave; "" where it gave none
	}
	// Reported says that the Node shows the outcome of the change that began then.
	Reported struct{ Began time.Time }
	// ParkEnded answers Park: the kubelet waits at the lock, or it does not and is gone.
	ParkEnded struct {
		Waits bool
		// Proved is the verdict on one that exited before the lock; its zero value is none.
		Proved Proved
	}
	// Unparked answers Unpark: what waited has ended.
	Unparked struct{}
	// Merged answers Merge. Without a version there is nothing to lay the layers over, for the reason given.
	Merged struct {
		Local   string
		Version *Version
		Fault   string
	}
	// Blamed answers Blame: which layers it is that a kubelet refuses; empty = no single one.
	Blamed struct {
		Content string
		Kubelet kubeletconfig.Identity
		Words   string
	}
	// Started answers Start.
	Started struct {
		Err          error
		Unrenderable bool                      // the version's file could not be made: the kubelet itself is not to blame
		NoRoom       bool                      // for one more process
		Delay        time.Duration             // backoff before the next try when Err is set
		InTheWay     []kubeletconfig.StateFile // nothing was started, because these files are of another policy
		Limits       []LimitSeen               // nothing was started, because these limits must be recorded or written back before
		Locked       bool                      // it holds the lock for as long as it lives
		Gone         bool                      // what had waited for this had ended before: nothing was started
	}
	// Healthy comes when the child answers its healthz.
	Healthy struct{}
	// Unhealthy comes when the child no longer answers it.
	Unhealthy struct{ Words string }
	// PortSeen names the other process that has the healthz port of a child that was never healthy; empty = none is known now.
	// Shared: the fallback has the same port.
	PortSeen struct {
		HeldBy string
		Shared bool
	}
	// NotInUse says that the kubelet that runs differs from the one that the child should be, or was not started with its configuration, by
	// its command line (rule 25). Without Words nothing is known against it now.
	NotInUse struct{ Words string }
	// Hung is a child that has fed its watchdog and no longer does.
	Hung struct{ Words string }
	// ChildExited is the end of the child; it also answers Stop.
	ChildExited struct {
		Asked        bool // by us
		Code         int  // exit code; -1 when a signal ended it
		Words        string
		RuntimeDown  bool          // the container runtime did not answer, the fallback's endpoint being the same
		OutOfInotify bool          // the node had no inotify instance or watch left for it, and it may open as many files as the fallback
		StateFile    string        // name of the state file that its last words blame; empty = none
		LockDenied   bool          // it was not allowed the lock, and is started without from now on
		Delay        time.Duration // backoff before the next start of the same configuration
	}
	// LeaseSeen is a look at the kubelet's Lease.
	LeaseSeen struct {
		Reachable     bool
		RenewedBefore bool          // at the first look at the present child: renewTime differs from that at the last look at the one before
		Renewed       bool          // renewTime differs from that at the last look at the present child
		Duration      time.Duration // the Lease's own; 0 = unknown
		Problem       string        // why an API server that answers tells nothing
	}
	// ConditionsSeen is a look at the Node's conditions, which are not known where the Node could not be read.
	ConditionsSeen struct {
		Conditions
		Posted  bool // by the present child: the heartbeat differs from the one before its start
		Before  bool // by a kubelet before it: the heartbeat is still the same
		Pods    PodStarts
		Problem string // why an API server that answers tells nothing
	}
	// LocalChanged brings what the kubelet and the local files are now.
	LocalChanged struct {
		Kubelet kubeletconfig.Identity
		Local   string
	}
	// UnitSeen brings the digests of the files, by their paths, from which systemd would start the supervisor now, and what systemd has
	// against such a start.
	UnitSeen struct {
		Files  map[string]string
		Refuse string // its message; empty: nothing that is known
	}
	// FilesSetAside answers SetAside.
	FilesSetAside struct{ Err error }
	// LimitsWrittenBack answers WriteBack.
	LimitsWrittenBack struct{ Err error }
	// ClusterSeen brings the keys of the cluster's certificate authorities, where the kubeconfig has changed.
	ClusterSeen struct{ Keys []string }
	// Ticked is a due time.
	Ticked struct{}
	// HostStopping is the host's shutdown, or its cancellation.
	HostStopping struct{ CalledOff bool }
	// StopAsked is the end of the supervisor, as systemd or a person asks for it.
	StopAsked struct{}
)

// Step is one decision: at most one blocking action, whose result is an Event.
type Step struct {
	Do         Action        // nil = none
	GaveUp     bool          // the question that was under way: its answer is not waited for, and must not be given
	Wake       time.Duration // when Ticked is due; negative = never
	WatchLease bool          // look at the kubelet's Lease while it is true
	LookAtNode bool          // once, at its conditions, and in a trial at its pods; answered by ConditionsSeen
	Events     []NodeEvent
	Phases     []EndedPhase // of the newest change, in their order
}

// Action is one blocking thing to do: one of the types below.
type Action interface{ action() }

// The actions.
type (
	// Save makes the state durable; answered by Saved.
	Save struct {
		Durable  Durable
		assigned *Assigned // the assignment that waits for it; nil = none
		number   int       // PendingNumber of that one
		spends   bool      // the approval of its Hold is spent by it
	}
	// Prove pre-flights a version (nil = local) with another as its control; answered by Proved.
	Prove struct {
		Version, Control *Version
		Alone            bool // there is nothing to compare with
		Tries            int  // how often it gave no answer
		Kubelet          kubeletconfig.Identity
		Local            string
	}
	// Foresee finds out what a change would do to running pods: Version (nil = local) instead of RunsVersion; answered by Foreseen.
	Foresee struct {
		Change
		Version, RunsVersion *Version
		Local                string // content of the local file
		MayAsk               bool   // a pre-flight with this kubelet is safe
		Tries                int    // looks in a row that were not answered
	}
	// Ask asks the kubelet's program what the running kubelet was started with, as long as it can answer; answered by Asked.
	Ask struct {
		Version *Version
		Kubelet kubeletconfig.Identity
		Local   string
		Tries   int // without an answer
	}
	// Merge lays the layers of a version over the node's own file as it is now, whose content is Local; answered by Merged.
	Merge struct {
		Version Version
		Local   string
		Pending bool // it is what waits, and not what is assigned
	}
	// Blame finds out which of the layers of a refused version are to blame; answered by Blamed.
	Blame struct {
		Version Version
		Kubelet kubeletconfig.Identity
	}
	// Stop ends the child; answered by ChildExited. With Hung, why it hangs, the end is not an asked one: it counts like any other
	// exit, and the child says first what it hangs at.
	Stop struct {
		Hung   string
		Looked bool // for a change that was looked at just before (Foresee)
	}
	// Start starts the kubelet; answered by Started. Fallback is what would run if this failed. Kubelet and Local are what it is
	// started with, whatever is on disk by the time of the answer.
	Start struct {
		Version, Fallback *Version
		OnTrial           bool
		Kubelet           kubeletconfig.Identity
		Local             string
		Unchecked         bool // start it whatever state files there are
		Unlimited         bool // start it whatever limits there are
		Lock              bool // it is to hold the lock
		Waits             bool // it has been started, and waits at the lock
	}
	// Park starts the next kubelet next to the one that runs, at whose lock it waits; answered by ParkEnded. Runs is what that one was
	// started with.
	Park struct {
		Version, Fallback, Runs *Version
		Kubelet                 kubeletconfig.Identity
		Local                   string
	}
	// Unpark ends the kubelet that waits; answered by Unparked.
	Unpark struct{}
	// SetAside renames state files; answered by FilesSetAside.
	SetAside struct{ Files []kubeletconfig.StateFile }
	// WriteBack gives limits of the host the values that they had before kubelets set them; answered by LimitsWrittenBack.
	WriteBack struct{ Limits []KeptLimit }
	// Exit ends the supervisor.
	Exit struct{}
)

// NodeEvent is an event for the Node.
type NodeEvent struct {
	Type, Reason, Message string
}

func (Booted) event()         {}
func (Assigned) event()       {}
func (Cleared) event()        {}
func (SyncFailed) event()     {}
func (NodeGone) event()       {}
func (Retry) event()          {}
func (Saved) event()          {}
func (Proved) event()         {}
func (Foreseen) event()       {}
func (Asked) event()          {}
func (ObstaclesSeen) event()  {}
func (Consented) event()      {}
func (PodsLost) event()       {}
func (Reported) event()       {}
func (ParkEnded) event()      {}
func (Unparked) event()       {}
func (Merged) event()         {}
func (Blamed) event()         {}
func (Started) event()        {}
func (Healthy) event()        {}
func (Unhealthy) event()      {}
func (NotInUse) event()       {}
func (PortSeen) event()       {}
func (Hung) event()           {}
func (ChildExited) event()    {}
func (LeaseSeen) event()      {}
func (ConditionsSeen) event() {}
func (LocalChanged) event()   {}
func (UnitSeen) event()       {}
func (FilesSetAside) event()  {}
func (ClusterSeen) event()    {}
func (Ticked) event()         {}
func (HostStopping) event()   {}
func (StopAsked) event()      {}

func (Save) action()     {}
func (Prove) action()    {}
func (Foresee) action()  {}
func (Ask) action()      {}
func (Merge) action()    {}
func (Blame) action()    {}
func (Stop) action()     {}
func (Start) action()    {}
func (SetAside) action() {}
func (Park) action()     {}
func (Unpark) action()   {}
func (Exit) action()     {}
