//go:build linux

package kubelet

import "time"

// Event is what is reported of a child: Healthy, Unhealthy, PortSeen, Hung, and at last Exited.
type Event interface{ event() }

type (
	// Healthy is the beginning of health.
	Healthy struct{}
	// Unhealthy is its end, or another reason why there is none.
	Unhealthy struct{ Words string }
	// NotInUse reports that the child was not started with what it should run, or did not become the kubelet; without
	// Words, that nothing is known against it.
	NotInUse struct{ Words string }
	// PortSeen names the other process that has the healthz port of a child that was never healthy; empty = none is known.
	// Shared: the fallback has the same port, so that it would fail the same way.
	PortSeen struct {
		HeldBy string
		Shared bool
	}
	// Hung is a child that has fed its watchdog and no longer does.
	Hung struct{ Words string }
	// Exited is its end.
	Exited struct {
		Asked        bool // by us
		Code         int  // exit code; -1 when a signal ended it
		Words        string
		RuntimeDown  bool          // the container runtime did not answer, the fallback's endpoint being the same
		OutOfInotify bool          // the node had no inotify instance or watch left for it, and it may open as many files as the fallback
		StateFile    string        // name of the state file that its last words blame; empty = none
		LockDenied   bool          // it was not allowed its lock file, and is started without from now on
		Delay        time.Duration // backoff before the next start of the same configuration
	}
)

func (Healthy) event()   {}
func (Unhealthy) event() {}
func (NotInUse) event()  {}
func (PortSeen) event()  {}
func (Hung) event()      {}
func (Exited) event()    {}
