package supervisor

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/kubelet-supervisor/kubelet-supervisor/config"
	"github.com/kubelet-supervisor/kubelet-supervisor/decide"
)

const (
	handoverVariable = "KUBELET_SUPERVISOR_HANDOVER" // the descriptors of the handover, the state folder's lock and the notify socket
	handoverLimit    = 64 << 20

	// HandoverVersion is the form of what a running supervisor hands over to the program that takes its place. A program that does not
	// read it must not be executed.
	HandoverVersion = "v1"
)

// Handover is what a supervisor hands over to the program that it becomes on a reload: all it knows, its kubelet, and its open files.
type Handover struct {
	Version    string
	Supervisor Process
	Kubelet    string // its path, which the command line may not tell any more
	Child      *handedChild
	Core       handedCore
	Starts     handedStarts
	Exits      []RecordedExit
	Generation int
	Reloads    int
	Unusable   string // why there is no state folder
	LeaseSeen  time.Time

	lock, notify *os.File // nil = none
	broken       error    // why nothing of it can be used
}

// handedChild is the kubelet that runs.
type handedChild struct {
	Process
	Of        *decide.Version
	Endpoints config.Endpoints
	Runtime   string
	Age       time.Duration // on a clock that does not jump
	Health    handedHealth
	Journaled bool
	Notes     kubeletNotes
}

type handedHealth struct{ Since, Sum time.Duration }

// handedStarts is what the next start needs to know of the ones before.
type handedStarts struct {
	Last     *decide.Version
	Failures int // in a row: how far the backoff is
	Output   handedOutput
}

// handedCore is the state. Its Settings are the command line's; what is on disk in files of its own is written out.
type handedCore struct {
	State         decide.State
	Durable, Disk handedDurable
}

type handedDurable struct {
	Assigned, LastKnownGood *decide.Version
	Rejected                []decide.Rejection
	Proofs                  []decide.Proof
}

func handDurable(d decide.Durable) handedDurable {
	return handedDurable{d.Assigned, d.LastKnownGood, d.Rejected, d.Proofs}
}

func (h handedDurable) into(d *decide.Durable) {
	d.Assigned, d.LastKnownGood, d.Rejected, d.Proofs = h.Assigned, h.LastKnownGood, h.Rejected, h.Proofs
}

func handCore(s decide.State) handedCore {
	return handedCore{State: s, Durable: handDurable(s.Durable), Disk: handDurable(s.Disk)}
}

func (h handedCore) state(settings decide.Settings) decide.State {
	s := h.State
	h.Durable.into(&s.Durable)
	h.Disk.into(&s.Disk)
	s.Settings = settings
	return s
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

// TakeHandover takes what the program before this one, in the same process, handed over. It is nil where there was none. It has to be
// called before any child is started: children inherit neither the variable nor the files.
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

// Names gives the path of the kubelet that runs. It is false where nothing was handed over.
func (h *Handover) Names(kubelet *string) bool {
	if h == nil || h.Kubelet == "" {
		return false
	}
	*kubelet = h.Kubelet
	return true
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
	case h.Supervisor.PID != os.Getpid() || h.Supervisor.StartTime != processOf(os.Getpid()).StartTime:
		return nil, fmt.Errorf("what was handed over is not for this process, but for pid %d", h.Supervisor.PID)
	case !h.Core.State.Booted || h.Core.State.Child.Alive != (h.Child != nil):
		return nil, errors.New("what was handed over contradicts itself")
	}
	return &h, nil
}

// handOver tells everything. Nothing is under way.
func (l *loop) handOver() Handover {
	h := Handover{
		Version: HandoverVersion, Supervisor: l.record.Supervisor, Kubelet: l.Kubelet, Core: handCore(l.state),
		Starts: handedStarts{Last: l.kubelets.last, Failures: l.kubelets.failures, Output: l.kubelets.output.handOver()},
		Exits:  l.record.Exits, Generation: l.record.Generation, Reloads: l.record.Reloads, LeaseSeen: l.lease.lastSeen(),
	}
	if l.unusable != nil {
		h.Unusable = l.unusable.Error()
	}
	if l.state.Child.Alive {
		c := l.child
		h.Child = &handedChild{Process: *l.record.Child, Of: c.version, Endpoints: c.endpoints, Runtime: c.runtime,
			Age: time.Since(c.started), Health: c.healthy.handOver(), Journaled: c.journaled}
		if l.kubelets.notify != nil {
			h.Child.Notes = l.kubelets.notify.notes()
		}
	}
	return h
}

// inherit makes the loop what the one before was.
func (l *loop) inherit(h *Handover) error {
	if h.Child != nil {
		if l.child = h.Child.process(); l.child == nil {
			return fmt.Errorf("the kubelet with pid %d is not this process's child", h.Child.PID)
		}
	}
	l.manager.WasReady()
	l.state = h.Core.state(l.Settings)
	l.record.Exits, l.record.Generation = slices.Clone(h.Exits), h.Generation
	l.record.Reloads = h.Reloads
	k := l.kubelets
	k.last = h.Starts.Last
	for range h.Starts.Failures {
		k.delay()
	}
	k.output.inherit(h.Starts.Output)
	k.notify = inheritNotify(h.notify, filepath.Join(l.RunDir, notifyFile))
	if l.child == nil {
		return nil
	}
	l.record.started(l.child)
	l.lease.newChild(l.child.started)
	l.lease.last = h.LeaseSeen
	if k.notify != nil {
		k.notify.kubeletNotes = h.Child.Notes
	}
	return nil
}

// process is the child as the loop knows it; nil where it cannot be had.
func (c *handedChild) process() *process {
	if err := unix.Waitid(unix.P_PID, c.PID, nil, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil); err != nil {
		return nil // not our child; one that has ended meanwhile still is
	}
	held, err := os.FindProcess(c.PID)
	if err != nil {
		return nil
	}
	p := &process{command: &exec.Cmd{Path: c.Executable, Process: held}, version: c.Of, endpoints: c.Endpoints, runtime: c.Runtime,
		started: time.Now().Add(-c.Age), journaled: c.Journaled, done: make(chan struct{})}
	p.healthy.since, p.healthy.sum = c.Health.Since, c.Health.Sum
	return p
}

func inheritNotify(file *os.File, path string) *notifySocket {
	if file == nil {
		return nil
	}
	defer func() { _ = file.Close() }() // FileConn makes a copy
	connection, err := net.FileConn(file)
	if err != nil {
		return nil
	}
	socket, is := connection.(*net.UnixConn)
	if !is {
		_ = connection.Close()
		return nil
	}
	return &notifySocket{path: path, connection: socket}
}
