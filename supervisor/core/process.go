package core

import (
	"fmt"
	"time"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
)

// Process is the kubelet that runs, the one that waits to take its place, and what a start would take: what was seen of them, and how they
// ended.
type Process struct {
	Child          Child
	Parked         *Parked                // waits to take the child's place; nil = nothing does
	OnDisk         kubeletconfig.Identity // the kubelet as it would be started now
	Local          string                 // content of the local file now
	Active         *Version               `json:"active,omitempty"`
	Worked         LocalKubelet           // the newest local kubelet that was healthy
	Lease          Lease
	Renews         bool `json:"leaseRenewed,omitempty"`
	Node           NodeLooks
	Before         Conditions    `json:"conditions,omitzero"`
	LocalFailures  int           // starts of the local configuration in a row that ended on their own and were never healthy
	ControlsFailed int           // starts of local in a row that never were healthy, whatever ended them
	NextStart      time.Duration // backoff of NextOf
	NextOf         *Version
	Exits          []time.Duration // unasked exits outside a trial
	CleanExits     []time.Duration // unasked exits with 0
	Exit           string          // message of the last unasked exit
	ExitCode       int             // its code; negative = a signal ended it, or it is not known
	PodsLost       string          // what the newest restart cost although no look had foreseen it
}

// inUse returns what the kubelet that runs was started with; local where its command line says that it was started with nothing of ours.
func (p *Process) inUse() *Version {
	if p.Child.NotInUse != "" {
		return nil
	}
	return p.Child.Version
}

// runs reports whether the child was started with the content of v.
func (p *Process) runs(v *Version) bool { return p.Child.Alive && Same(p.Child.Version, v) }

// kubeletOf returns the kubelet that verdicts on v are about: the one that runs it, else the one that it would be started with. What runs
// is not stopped because the kubelet that is on the disk now would not take it.
func (p *Process) kubeletOf(v *Version) kubeletconfig.Identity {
	if p.runs(v) {
		return p.Child.Kubelet
	}
	return p.OnDisk
}

// Child is the kubelet process as the loop sees it. Its zero value is no process.
type Child struct {
	Alive        bool
	Version      *Version               // the configuration it was started with; nil = local
	Kubelet      kubeletconfig.Identity // binary, command line and drop-ins it was started with
	Local        string                 // content of the local file at its start
	Effective    string                 // digest of its effective configuration; empty = unknown, or there is no process
	From         *Version               // whose files it was started with, where that is no longer Version (recognise)
	Started      time.Duration
	Healthy      bool
	EverHealthy  bool
	HealthySince time.Duration // start of the present stretch of health
	Words        string        // why it is unhealthy
	NotInUse     string        // why the kubelet that runs is none that was started with Version; empty = nothing is known against it
	PortHeld     string        // that another process has its healthz port, and which; empty = none is known
	PortShared   bool          // it is the fallback's, too
	Hung         string        // why it has to be ended; empty = it does not hang
	Locked       bool          // it holds the lock
	Foreign      bool          // its configuration is of another cluster, and forgotten (rule 18)
	Asked        bool          // what it was started with was asked for, and answered
	AskTries     int           // without an answer
	AskedAt      time.Duration // the newest of them
	Crashed      bool          // it ended, and not to make room for another, or could not be started
	Unparkable   bool          // the next one could not wait for its lock: it is started plainly
}

// LocalKubelet is a kubelet that runs with the node's own configuration.
type LocalKubelet struct {
	Local   string // content of the local file
	Kubelet kubeletconfig.Identity
}

// Lease is what is known of the renewal of the kubelet's own Lease since its start.
type Lease struct {
	Reachable      bool          // the last look got an answer
	ReachableSince time.Duration // since when without interruption, or since the child's start
	Renewed        bool          // a renewal by this child was seen
	RenewedAt      time.Duration
	Lost           bool          // a look said that it was not renewed for longer than the limit
	Duration       time.Duration // the Lease's own; 0 = unknown
	Problem        string        // why an API server that answers tells nothing of it
}

func (p *Process) localFilesChanged() bool {
	return p.Child.Alive && (p.Child.Kubelet != p.OnDisk || p.Child.Version == nil && p.Child.Local != p.Local)
}

func (p *Process) contentOf(v *Version) string { return ContentOr(v, p.Local) }

// outdate has what waits ended before anything else is done.
func (p *Process) outdate() {
	p.Parked = &Parked{Version: p.Parked.Version}
}

// askKubeletAt returns when a kubelet that gave no answer is asked again.
func (p *Process) askKubeletAt(nodeUID string) time.Duration {
	c := p.Child
	if c.AskTries == 0 {
		return 0
	}
	return c.AskedAt + jitter(nodeUID, askAgainAfter(c.AskTries), c.AskedAt)
}

func (p *Process) unforeseenUntil(settings Settings) time.Duration {
	return p.Child.Started + settings.TrialPeriod
}

// leaseLimit returns how long a Lease may go without a renewal. The kubelet renews it after a quarter of its duration.
func (p *Process) leaseLimit() time.Duration {
	return max(leaseLimitLeast, p.Lease.Duration/2+leaseLimitSlack)
}

// leaseLostAt returns when the missing renewal becomes a failure.
func (p *Process) leaseLostAt() time.Duration {
	return max(p.Lease.ReachableSince, p.Lease.RenewedAt) + p.leaseLimit()
}

// ran returns what runs, or else what ran last.
func (p *Process) ran() *Version {
	if p.Child.Alive {
		return p.Child.Version
	}
	return p.Active
}

func (p *Process) changeTo(want *Version) Change {
	c := p.Child
	return Change{Content: p.contentOf(want), Kubelet: p.OnDisk, Runs: p.contentRun(), RunsKubelet: c.Kubelet}
}

// lastExit returns why a kubelet is being started again on which there is no verdict yet.
func (p *Process) lastExit() *nodev1.Failure {
	if p.Exit == "" {
		return nil
	}
	return failureOf(Exited, p.Exit, 0, p.ExitCode)
}

// countCleanExit counts an exit with 0, which follows a SIGTERM of another process. One that comes again and again is a failure like any
// other.
func (p *Process) countCleanExit(now time.Duration, e *ChildExited) bool {
	recent := without(p.CleanExits, func(at time.Duration) bool { return now-at > cleanExitWindow })
	p.CleanExits = append(recent, now)
	if len(p.CleanExits) < cleanExitLimit {
		return false
	}
	p.CleanExits = nil
	e.Delay = max(e.Delay, cleanExitPause)
	e.Words = fmt.Sprintf("%s, %d times within %s", e.Words, cleanExitLimit, cleanExitWindow)
	return true
}

// isRunWith reports whether the version is what runs, and nothing of the node has changed since.
func (p *Process) isRunWith(want *Version) bool { return p.runs(want) && !p.localFilesChanged() }

// contentRun returns the content that the child was started with.
func (p *Process) contentRun() string { return ContentOr(p.Child.Version, p.Child.Local) }

func (p *Process) learnPort(e PortSeen) {
	if p.Child.Alive && !p.Child.EverHealthy { // else it comes too late: once healthy, the child has the port
		p.Child.PortHeld, p.Child.PortShared = e.HeldBy, e.Shared
	}
}

func (p *Process) learnHung(e Hung) {
	if p.Child.Alive {
		p.Child.Healthy, p.Child.Words, p.Child.Hung = false, e.Words, e.Words
	}
}

// isControlOf reports whether the child is of the same kubelet that the suspect failed with.
func (p *Process) isControlOf(x Suspect) bool { return x.Kubelet == p.Child.Kubelet }

// localHangs reports whether local was started longer than localHangsAfter ago.
func (p *Process) localHangs(now time.Duration, settings Settings) bool {
	return p.Child.Version == nil && now >= p.Child.Started+settings.localHangsAfter()
}

// hasSettled reports whether enough time has passed since the start: what is bad now is not bad because the kubelet has just been started.
func (p *Process) hasSettled(now time.Duration, settings Settings) bool {
	return p.Child.Healthy && now >= p.Child.HealthySince+settings.healthThatCounts()
}

// hasMeasured reports whether the child has measured what was seen at a time. A kubelet says at its start that there is no pressure: its
// eviction manager measures some 10 s later, and its status follows at a pace of its own.
func (p *Process) hasMeasured(settings Settings, at time.Duration) bool {
	return at >= p.Child.Started+min(measuredBy, settings.TrialPeriod)
}
