//go:build linux

package supervisor

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/core"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/kubelet"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/metrics"
)

const (
	handoverVariable = "KUBELET_SUPERVISOR_HANDOVER" // the descriptors of the handover, the state folder's lock and the notify socket
	handoverLimit    = 64 << 20

	// HandoverVersion is the form of what a running supervisor hands over to the program that takes its place. A program that does not
	// read it must not be executed.
	HandoverVersion = "v3"
)

// Handover is what a supervisor hands over to the program that it becomes on a reload: all it knows, its kubelet, and its open files.
type Handover struct {
	Version    string
	Supervisor kubelet.Process
	Kubelet    string // its path, which the command line may no longer show
	Child      *kubelet.HandedChild
	Core       core.State // its Settings are the command line's
	Starts     kubelet.HandedLauncher
	Last       *core.Version // that was started, or tried
	Exits      []RecordedExit
	Generation int
	Reloads    int
	Unusable   string // why there is no state folder
	LeaseSeen  leaseSeen
	Node       handedNode
	Counts     metrics.Counts
	Runs       *kubeletconfig.HandedEffective // what the kubelet was started with, or the one before it; nil = unknown

	lock, notify *os.File // nil = none
	broken       error    // why nothing of it can be used
}

// file writes the handover where the next program reads it.
func (h Handover) file() (*os.File, error) {
	data, err := json.Marshal(h)
	if err != nil {
		return nil, fmt.Errorf("encoding what is handed over: %w", err)
	}
	fd, err := unix.MemfdCreate("kubelet-supervisor-handover", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("making room for what is handed over: %w", err)
	}
	file := os.NewFile(uintptr(fd), "handover")
	if _, err := file.WriteAt(data, 0); err != nil {
		return nil, fmt.Errorf("writing what is handed over: %w", errors.Join(err, file.Close()))
	}
	return file, nil
}

// TakeHandover takes what the program before this one, in the same process, handed over. It returns nil where there was none. The program
// must call it once, before any child is started: it unsets the variable and has the files closed on exec, so that children inherit
// neither.
func TakeHandover() *Handover {
	value, is := os.LookupEnv(handoverVariable)
	if !is {
		return nil
	}
	_ = os.Unsetenv(handoverVariable)
	var files [3]*os.File
	for i, word := range strings.Split(value, ",") {
		if fd, err := strconv.Atoi(word); err == nil && fd > 2 && i < len(files) {
			unix.CloseOnExec(fd)
			files[i] = os.NewFile(uintptr(fd), handoverVariable)
		}
	}
	h, err := readHandover(files[0])
	if err != nil {
		for _, file := range files[1:] {
			_ = file.Close() // the lock would be in the way of our own
		}
		return &Handover{broken: err}
	}
	h.lock, h.notify = files[1], files[2]
	return h
}

// KubeletPath returns the path of the kubelet that runs, or empty where nothing was handed over.
func (h *Handover) KubeletPath() string {
	if h == nil {
		return ""
	}
	return h.Kubelet
}

func readHandover(file *os.File) (*Handover, error) {
	data, err := io.ReadAll(io.NewSectionReader(file, 0, handoverLimit))
	if err = errors.Join(err, file.Close()); err != nil {
		return nil, fmt.Errorf("reading what was handed over: %w", err)
	}
	return decodeHandover(data)
}

func decodeHandover(data []byte) (*Handover, error) {
	var h Handover
	if err := json.Unmarshal(data, &h); err != nil {
		return nil, fmt.Errorf("decoding what was handed over: %w", err)
	}
	switch {
	case h.Version != HandoverVersion:
		return nil, fmt.Errorf("what was handed over is of version %.64q, and this program reads %q", h.Version, HandoverVersion)
	case h.Supervisor.PID != os.Getpid() || h.Supervisor.StartTime != kubelet.ProcessOf(os.Getpid()).StartTime:
		return nil, fmt.Errorf("the handover is for another process, with pid %d", h.Supervisor.PID)
	case !h.Core.Booted || h.Core.Child.Alive != (h.Child != nil):
		return nil, errors.New("what was handed over contradicts itself")
	}
	return &h, nil
}

// handOver tells everything. Nothing is under way.
func (l *loop) handOver() Handover {
	h := Handover{
		Version: HandoverVersion, Supervisor: l.record.Supervisor, Kubelet: l.Kubelet, Core: l.state,
		Starts: l.runner.kubelets.HandOver(), Last: l.runner.lastStarted,
		Exits: l.record.Exits, Generation: l.record.Generation, Reloads: l.record.Reloads, LeaseSeen: l.api.lease.handOver(),
		Node:   l.api.node.handOver(),
		Counts: l.metrics.Counts(), Runs: l.prover.effectives.handOver(),
	}
	if l.payloads.unusable != nil {
		h.Unusable = l.payloads.unusable.Error()
	}
	if l.state.Child.Alive {
		h.Child = l.runner.child.HandOver()
	}
	return h
}

// inherit makes the loop what the one before was.
func (l *loop) inherit(h *Handover) error {
	l.runner.kubelets.Inherit(h.Starts, h.notify)
	if h.Child != nil {
		child, err := l.runner.kubelets.InheritChild(h.Child)
		if err != nil {
			return err
		}
		l.runner.child = child
	}
	l.manager.WasReady()
	l.state = h.Core
	l.state.Settings = l.Settings
	l.record.Exits, l.record.Generation = slices.Clone(h.Exits), h.Generation
	l.record.Reloads = h.Reloads
	l.runner.lastStarted = h.Last
	l.prover.effectives.inherit(h.Runs)
	if l.runner.child == nil {
		return nil
	}
	l.record.started(l.runner.child.Process())
	l.api.lease.inherit(h.LeaseSeen)
	l.api.node.inherit(h.Node)
	return nil
}
