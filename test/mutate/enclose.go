//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// enclosed is the argument with which this program is the first process of a mutant's namespaces.
const enclosed = "-enclosed"

// enclosure is a command in namespaces of its own. A mutant in it sees no process but its own, and when it has ended all of them have; it can
// write below the folder alone, which is empty; it has a network with nothing but a loopback.
func enclosure(ctx context.Context, folder, binary string, arguments ...string) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := exec.CommandContext(ctx, self, append([]string{enclosed, folder, binary}, arguments...)...)
	c.Env = append(os.Environ(), "TMPDIR="+folder)
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL,
		Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS | syscall.CLONE_NEWNET | syscall.CLONE_NEWIPC}
	return c, nil
}

// enclose is that first process: it runs the command, waits for all that is left to it, and ends with the command's exit code.
func enclose(folder, binary string, arguments []string) int {
	if err := wall(folder); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "mutate: enclosing:", err)
		return 125
	}
	directory, err := os.Getwd()
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "mutate: enclosing:", err)
		return 125
	}
	process, err := os.StartProcess(binary, append([]string{binary}, arguments...), &os.ProcAttr{Dir: directory, Env: os.Environ(), Files: []*os.File{os.Stdin, os.Stdout, os.Stderr}})
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "mutate: enclosing:", err)
		return 125
	}
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return 125
		case pid == process.Pid && status.Exited():
			return status.ExitStatus()
		case pid == process.Pid:
			return 128 + int(status.Signal())
		}
	}
}

// wall makes everything read-only but the folder, and gives the namespaces a /proc and a loopback of their own.
func wall(folder string) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("making mounts private: %w", err)
	}
	if err := unix.MountSetattr(unix.AT_FDCWD, "/", unix.AT_RECURSIVE, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}); err != nil {
		return fmt.Errorf("making file systems read-only: %w", err)
	}
	// Open to all, as a folder for temporary files is: tests start programs as other users. Its size keeps a mutant that writes without end small.
	if err := unix.Mount("tmpfs", folder, "tmpfs", 0, "mode=1777,size=1g"); err != nil {
		return fmt.Errorf("mounting %s: %w", folder, err)
	}
	if err := unix.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		return fmt.Errorf("mounting /proc: %w", err)
	}
	return loopback()
}

// loopback switches it on.
func loopback() error {
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("switching the loopback on: %w", err)
	}
	defer func() { _ = unix.Close(socket) }()
	request, err := unix.NewIfreq("lo")
	if err != nil {
		return fmt.Errorf("switching the loopback on: %w", err)
	}
	request.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(socket, unix.SIOCSIFFLAGS, request); err != nil {
		return fmt.Errorf("switching the loopback on: %w", err)
	}
	return nil
}

// startEnclosed runs a mutant so.
func (r *runner) startEnclosed(ctx context.Context, binary string, id int, arguments ...string) ([]byte, error) {
	// One for all, for each sees its own, and a short one, for tests make sockets in it. It stays.
	folder := filepath.Join(os.TempDir(), "mutate")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	c, err := enclosure(ctx, folder, binary, arguments...)
	if err != nil {
		return nil, err
	}
	c.Dir = r.Dir
	c.Env = append(c.Env, variable+"="+strconv.Itoa(id), "GOMAXPROCS=1")
	c.Env = append(c.Env, r.env...)
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
	return c.CombinedOutput()
}
