//go:build linux

package supervisor

import (
	"context"
	"os"
	"time"

	"go.uber.org/zap"

	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/core"
)

// Options are what `run` was asked to do. Folders are absolute.
type Options struct {
	Kubelet       string   // path of the kubelet binary
	Arguments     []string // its command line, without the binary; never edited
	core.Settings          // what the core needs; Standalone is found out here
	StateDir      string
	RunDir        string
	Namespaces    []string // that sources may come from; "*" = all

	StopTimeout time.Duration // from SIGTERM to SIGKILL
	Preflight   string        // auto, always or never
	Kubeconfig  string        // empty: the kubelet's
	NodeName    string        // empty: the kubelet's

	MetricsFile    string // for node_exporter's textfile collector; empty: none
	MetricsAddress string // a socket, or an address of loopback; empty: none

	Logger   *zap.Logger
	Output   *os.File       // where the kubelet's log goes, if not to the journal
	Journal  string         // journald's socket for log streams, where our log goes there; empty: it does not
	Requests <-chan Request // reload and retry; may be nil

	// NextStart gives the kubelet's command line as the unit that started us would have it now, the binary first; nil: there is no such
	// unit.
	NextStart func(ctx context.Context) ([]string, error)

	// UnitFiles gives patterns of the files that systemd reads at each start of the unit that started us; nil: there is no such unit.
	UnitFiles func(ctx context.Context) ([]string, error)

	// AskStart lets systemd start this program once, as the unit that started us would now, and gives what it has against that; empty:
	// nothing. The error is that it could not be asked.
	AskStart func(ctx context.Context) (refuses string, err error)

	Version   string     // of this program, for state.json
	Successor *Successor // what a reload puts in our place; nil: it only looks again
	Handover  *Handover  // what the program before this one handed over; nil: there was none
}

// Request is something that a person asks of a running supervisor from the node.
type Request int

// What can be asked.
const (
	Reload   Request = iota + 1 // become the successor, and look at the local files, the kubeconfig and the Node again
	RetryNow                    // try a rejected or refused configuration again
)
