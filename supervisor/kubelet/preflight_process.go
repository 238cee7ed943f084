//go:build linux

package kubelet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// outputDelay bounds how long a process that outlives the pre-flight can hold its output open, and how long we wait for a turn to read it
// on a busy machine.
const outputDelay = 3 * time.Second

// attempt is what came of one run.
type attempt struct {
	stdout, stderr stream
	folder         string // of its certificates
	accepted       bool   // the mark of the check was seen
	pastCheck      bool   // a mark of a real start was seen; the process was killed
	startFailed    bool
	cutOff         bool // the output was not read to its end
	signalled      bool
	code           int
	status         string // for people: "exit status 1"
}

// run starts the kubelet, waits for it or kills it when ctx ends, and leaves nothing behind. The error says why it could not be started or
// watched.
func (p *Preflight) run(ctx context.Context, candidate Candidate) (*attempt, error) {
	result := &attempt{}
	folder, err := os.MkdirTemp(p.TempFolder, "preflight-")
	if err != nil {
		return result, fmt.Errorf("making a folder for its certificates: %w", err)
	}
	defer os.RemoveAll(folder)
	result.folder = folder

	arguments := slices.Clone(p.Arguments)
	if candidate.File != "" {
		arguments = append(arguments, "--config="+candidate.File)
	}
	arguments = append(arguments, "--cert-dir="+folder, "--lock-file=", "--exit-on-lock-contention=true")
	if p.tellsHere() {
		arguments = append(arguments, "--v=5") // for its configuration: see teller
	}

	ctx, stop := context.WithCancel(ctx)
	defer stop()
	marks := &marks{past: stop}
	result.stdout.marks, result.stderr.marks = marks, marks
	command := exec.Command(p.Kubelet, arguments...)
	command.Env = Environment(os.Environ()) // it must not report READY=1 in the kubelet's name
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}

	done := make(chan error, 1)
	go func() {
		// The parent-death signal comes when the thread that started the process ends.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		done <- result.execute(ctx, command)
	}()
	err = <-done
	result.accepted, result.pastCheck = marks.seen()
	return result, err
}

// tellsHere: kubelets up to 1.25 can log into files, where what may be secret has no business.
func (p *Preflight) tellsHere() bool {
	return !slices.ContainsFunc(p.Arguments, func(word string) bool {
		return strings.HasPrefix(strings.ReplaceAll(word, "_", "-"), "--logtostderr")
	})
}

func (r *attempt) execute(ctx context.Context, command *exec.Cmd) error {
	readers, err := r.read(command)
	if err != nil {
		r.startFailed = true
		return fmt.Errorf("making a pipe for the output of a pre-flight: %w", err)
	}
	err = command.Start()
	readers.started()
	defer readers.end()
	if err != nil {
		r.startFailed = true
		return fmt.Errorf("starting the kubelet for a pre-flight: %w", err)
	}
	pid := command.Process.Pid
	// Best effort: of all processes of the node this is the one to lose.
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/oom_score_adj", pid), []byte("1000"), 0)

	exited, killed := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(killed)
		select {
		case <-ctx.Done():
			_ = syscall.Kill(-pid, syscall.SIGKILL)
		case <-exited:
		}
	}()
	awaitExit(pid)
	close(exited)
	<-killed
	// Whatever it left in its group goes too, while its own process ID is not yet free to belong to another process.
	_ = syscall.Kill(-pid, syscall.SIGKILL)
	if err := command.Wait(); command.ProcessState == nil {
		return fmt.Errorf("waiting for the kubelet of a pre-flight: %w", err)
	}
	r.cutOff = readers.end()
	status, _ := command.ProcessState.Sys().(syscall.WaitStatus)
	r.signalled, r.code, r.status = status.Signaled(), status.ExitStatus(), command.ProcessState.String()
	return nil
}

// awaitExit waits until the process has ended, without reaping it.
func awaitExit(pid int) {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return
		}
	}
}
