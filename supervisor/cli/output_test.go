//go:build linux

package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/fakenode"
)

// fullPipe gives the end of a pipe that takes nothing more, until somebody reads from the other.
func fullPipe(t *testing.T) (reader, writer *os.File) {
	t.Helper()
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = reader.Close(); _ = writer.Close() })
	fd := int(writer.Fd()) // blocking from here on
	if err := unix.SetNonblock(fd, true); err != nil {
		t.Fatal(err)
	}
	for err = error(nil); err == nil; {
		_, err = unix.Write(fd, []byte(strings.Repeat("x", 4<<10)))
	}
	if err := unix.SetNonblock(fd, false); err != nil {
		t.Fatal(err)
	}
	return reader, writer
}

// Nobody reads what the supervisor says: a kubelet that dies is started again all the same, and SIGTERM is heard.
func TestAnOutputThatIsFull(t *testing.T) {
	for _, format := range logFormats {
		t.Run(format, func(t *testing.T) {
			n := newNode(t)
			_, n.stderr = fullPipe(t)
			p := n.run("--log-format=" + format)
			before := p.awaitHealthy()
			if err := syscall.Kill(before.Child.PID, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			fakenode.Await(t, "another kubelet", func() bool { return p.awaitHealthy().Child.PID != before.Child.PID })
			p.term()
		})
	}
}

// The end of the program does not wait for it either.
func TestAnErrorToAnOutputThatIsFull(t *testing.T) {
	n := newNode(t)
	_, n.stderr = fullPipe(t)
	if code := n.begin(exec.Command(n.program, "run", "--")).end(); code != exitUsage {
		t.Errorf("code %d", code)
	}
}

// The other end of the output is gone: that ends neither a supervisor nor a start of the kubelet alone.
func TestAnOutputThatIsClosed(t *testing.T) {
	for _, format := range logFormats {
		t.Run(format, func(t *testing.T) {
			n := newNode(t)
			n.stderr = closedPipe(t)
			p := n.run("--log-format=" + format)
			p.awaitHealthy()
			p.term()
		})
	}
	t.Run("the kubelet alone", func(t *testing.T) {
		n := newNode(t)
		recorded := filepath.Join(n.folder, "record")
		t.Setenv("FAKE_KUBELET_RECORD", recorded)
		n.stderr = closedPipe(t)
		p := n.run("--verbose")
		fakenode.Await(t, "the kubelet", func() bool {
			data, _ := os.ReadFile(recorded)
			return p.ended() || len(data) > 0
		})
		if got := events(t, recorded); got != "start" { // which then dies by itself: it writes to that output, too
			t.Errorf("the kubelet saw %s", got)
		}
		p.end()
	})
}

func closedPipe(t *testing.T) (writer *os.File) {
	t.Helper()
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = writer.Close() })
	if err := reader.Close(); err != nil {
		t.Fatal(err)
	}
	return writer
}
