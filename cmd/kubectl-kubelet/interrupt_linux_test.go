package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const asPlugin = "KUBECTL_KUBELET_TEST_AS_PLUGIN"

func TestMain(m *testing.M) {
	if os.Getenv(asPlugin) != "" {
		main()
	}
	os.Exit(m.Run())
}

// terminal opens a terminal: its keyboard, and its other side, for a program.
func terminal(t *testing.T) (keyboard, program *os.File) {
	t.Helper()
	keyboard, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = keyboard.Close() })
	if err := unix.IoctlSetPointerInt(int(keyboard.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(int(keyboard.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	return keyboard, program
}

// Ctrl-C at a question ends it, on a real terminal, whose driver makes the signal of the key.
func TestInterruptAtAQuestion(t *testing.T) {
	keyboard, program := terminal(t)
	command := exec.CommandContext(t.Context(), os.Args[0], "install")
	command.Env = append(os.Environ(), asPlugin+"=yes")
	command.Stdin, command.Stdout, command.Stderr = program, program, program
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	_ = program.Close()
	watchdog := time.AfterFunc(time.Minute, func() { _ = command.Process.Kill() })
	defer watchdog.Stop()
	var said bytes.Buffer
	part := make([]byte, 4096)
	for typed := false; ; {
		n, err := keyboard.Read(part)
		said.Write(part[:n])
		if !typed && strings.Contains(said.String(), "Install these? [y/N]") {
			typed = true
			if _, err := keyboard.Write([]byte{3}); err != nil {
				t.Fatal(err)
			}
		}
		if err != nil { // the program has ended
			break
		}
	}
	err := command.Wait()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 || !strings.Contains(said.String(), "nothing was changed; it was interrupted") {
		t.Errorf("it ended with %v:\n%s", err, said.String())
	}
}
