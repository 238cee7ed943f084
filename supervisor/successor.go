//go:build linux

package supervisor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/kubelet"
)

// Successor is the program that takes the place of the running one on a reload, in the same process.
type Successor struct {
	Path      string   // the running program's, as it was started; what is there now takes over
	Arguments []string // with the program's name, as it was started
	Check     []string // with the program's name: it says Answer and exits with 0 if it can take over with the same flags, and starts nothing
	Answer    string   // the last line that it says; any program may exit with 0
	// IgnoreSignals has signals ignored that would end a program which does not listen yet, until undo is called. It may be nil.
	IgnoreSignals func() (undo func())
}

const (
	successorCheckTime  = 10 * time.Second
	successorWordsLimit = 8 << 10
)

// fileIdentity tells one file from another at the same path.
type fileIdentity struct {
	device, inode    uint64
	size             int64
	modified, change syscall.Timespec
}

func identityOf(path string) (fileIdentity, error) {
	info, err := os.Stat(path)
	if err != nil {
		return fileIdentity{}, err
	}
	s, is := info.Sys().(*syscall.Stat_t)
	if !is {
		return fileIdentity{}, fmt.Errorf("the identity of %s is not known", path)
	}
	return fileIdentity{device: s.Dev, inode: s.Ino, size: s.Size, modified: s.Mtim, change: s.Ctim}, nil
}

// check runs the program that is there now, and gives what it was that was checked. A program that is cut off, for another machine, or
// that does not know its flags, must not be executed: it would take the kubelet with it.
func (s *Successor) check(ctx context.Context) (fileIdentity, error) {
	identity, err := identityOf(s.Path)
	if err != nil {
		return identity, fmt.Errorf("the program cannot be executed: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, successorCheckTime)
	defer cancel()
	command := exec.CommandContext(ctx, s.Path)
	command.Args = s.Check
	command.Env = kubelet.Environment(os.Environ())
	command.WaitDelay = time.Second
	words := &headBuffer{limit: successorWordsLimit}
	command.Stdout, command.Stderr = words, words
	err = command.Run()
	switch {
	case err == nil && words.lastLine() == s.Answer:
		return identity, nil
	case err == nil:
		return identity, fmt.Errorf("%s is not this program: asked whether it can take over it said %.64q", s.Path, words.lastLine())
	case ctx.Err() != nil:
		return identity, fmt.Errorf("%s did not end within %s", s.Path, successorCheckTime)
	}
	return identity, fmt.Errorf("%s cannot take over: %w: %s", s.Path, err, words.lastLine())
}

// execute replaces the running program, which keeps the given descriptors (-1 = none) open. It returns only when that failed, with
// everything as it was.
func (s *Successor) execute(h Handover, lock, notify int) error {
	data, err := h.file()
	if err != nil {
		return err
	}
	defer func() { _ = data.Close() }()
	descriptors := []int{int(data.Fd()), lock, notify}
	env := append(os.Environ(), fmt.Sprintf("%s=%d,%d,%d", handoverVariable, descriptors[0], lock, notify))
	if s.IgnoreSignals != nil {
		defer s.IgnoreSignals()()
	}
	// A child that is forked now must not get these files.
	syscall.ForkLock.Lock()
	defer syscall.ForkLock.Unlock()
	for _, fd := range descriptors {
		if fd < 0 {
			continue
		}
		defer unix.CloseOnExec(fd)
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETFD, 0); err != nil {
			return fmt.Errorf("keeping a file open: %w", err)
		}
	}
	if err := syscall.Exec(s.Path, s.Arguments, env); err != nil {
		return fmt.Errorf("executing %s: %w", s.Path, err)
	}
	return errors.New("executing the program returned")
}

// headBuffer keeps the beginning of what is written. The buffer is no embedded one: its ReadFrom, which io.Copy prefers, knows no limit.
type headBuffer struct {
	limit int
	kept  bytes.Buffer
}

func (b *headBuffer) Write(data []byte) (int, error) {
	_, _ = b.kept.Write(data[:min(len(data), max(0, b.limit-b.kept.Len()))])
	return len(data), nil
}

func (b *headBuffer) lastLine() string {
	lines := strings.Split(strings.TrimSpace(b.kept.String()), "\n")
	return strings.TrimPrefix(lines[len(lines)-1], "kubelet-supervisor: ")
}
