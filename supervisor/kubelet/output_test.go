//go:build linux

package kubelet

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/fsnotify/fsnotify"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/fakenode"
)

// followed is an output that is being followed until stop is called.
type followed struct {
	*output
	seen *fakenode.Output
	stop func()
}

func follow(t *testing.T, path string) *followed {
	t.Helper()
	f := &followed{seen: fakenode.NewOutput(t)}
	f.output = newOutput(path, f.seen)
	ctx, stop := context.WithCancel(t.Context())
	over := make(chan struct{})
	go func() {
		defer close(over)
		if err := f.follow(ctx); err != nil {
			t.Error(err)
		}
	}()
	f.stop = func() { stop(); <-over }
	t.Cleanup(f.stop)
	return f
}

func TestTheLogIsForwardedWholeAndInOrder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kubelet.log")
	f := follow(t, path)
	const lines, width = 200_000, 60 // 12 MB: more than the file may hold
	command := exec.Command("/bin/sh", "-c", fmt.Sprintf("exec seq -f '%%0%d.0f' 1 %d", width-1, lines))
	if err := f.attach(command); err != nil {
		t.Fatal(err)
	}
	if err := command.Run(); err != nil {
		t.Fatal(err)
	}
	f.stop()
	want := 1
	for scan := bufio.NewScanner(strings.NewReader(f.seen.String())); scan.Scan(); want++ {
		if line := fmt.Sprintf("%0*d", width-1, want); scan.Text() != line {
			t.Fatalf("line %d is %q", want, scan.Text())
		}
	}
	if want != lines+1 {
		t.Errorf("%d lines were forwarded, %d written", want-1, lines)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if used := info.Sys().(*syscall.Stat_t).Blocks * 512; used > 2*outputForgetsAt {
		t.Errorf("the file still takes %d bytes", used)
	}
	if end := f.output.end(); len(end) != outputRemembered || !bytes.HasSuffix(end, fmt.Appendf(nil, "%d\n", lines)) {
		t.Errorf("it remembers %d bytes, ending in %q", len(end), end[max(0, len(end)-20):])
	}
}

func TestTheEndIsThatOfThePresentKubelet(t *testing.T) {
	o := newOutput(filepath.Join(t.TempDir(), "kubelet.log"), fakenode.NewOutput(t))
	if end := o.end(); end != nil {
		t.Errorf("before the first kubelet: %q", end)
	}
	for _, says := range []string{"one", "two"} {
		command := exec.Command("echo", says)
		if err := o.attach(command); err != nil {
			t.Fatal(err)
		}
		if err := command.Run(); err != nil {
			t.Fatal(err)
		}
		if end := string(o.end()); end != says+"\n" {
			t.Errorf("the end is %q", end)
		}
	}
}

func TestALogThatCannotBeMade(t *testing.T) {
	o := newOutput(filepath.Join(t.TempDir(), "absent", "kubelet.log"), fakenode.NewOutput(t))
	for what, err := range map[string]error{"attach": o.attach(exec.Command("true")), "follow": o.follow(t.Context())} {
		if err == nil || !strings.HasPrefix(err.Error(), "opening the kubelet's log: ") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// stalled is a log that takes nothing, until it is released.
type stalled chan struct{}

func (s stalled) Write(p []byte) (int, error) {
	<-s
	return len(p), nil
}

// A supervisor whose own output stalls still starts kubelets and knows their last words.
func TestAStalledOutputHoldsNothingUp(t *testing.T) {
	released := make(stalled)
	o := newOutput(filepath.Join(t.TempDir(), "kubelet.log"), released)
	ctx, stop := context.WithCancel(t.Context())
	over := make(chan error, 1)
	go func() { over <- o.follow(ctx) }()
	for _, says := range []string{"one", "two"} {
		command := exec.Command("echo", says)
		if err := o.attach(command); err != nil {
			t.Fatal(err)
		}
		if err := command.Run(); err != nil {
			t.Fatal(err)
		}
		if end := string(o.end()); end != says+"\n" {
			t.Errorf("the end is %q", end)
		}
	}
	close(released)
	stop()
	if err := <-over; err != nil {
		t.Error(err)
	}
}

// What nobody takes is given up, so that the file does not grow for ever: the newest stays, and what is missing is said.
func TestAnOutputThatStallsForLong(t *testing.T) {
	released, path := make(chan struct{}), filepath.Join(t.TempDir(), "kubelet.log")
	taken := &bytes.Buffer{}
	o := newOutput(path, writerFunc(func(p []byte) (int, error) { <-released; return taken.Write(p) }))
	o.patience = fakenode.Patience // all of it is looked at
	ctx, stop := context.WithCancel(t.Context())
	over := make(chan error, 1)
	go func() { over <- o.follow(ctx) }()
	command := exec.Command("/bin/sh", "-c", fmt.Sprintf("yes 'a line of sixteen' | head -c %d; echo; echo the end", outputMost+outputMost/2))
	if err := o.attach(command); err != nil {
		t.Fatal(err)
	}
	if err := command.Run(); err != nil {
		t.Fatal(err)
	}
	fakenode.Await(t, "the file is small", func() bool {
		info, err := os.Stat(path)
		return err == nil && info.Sys().(*syscall.Stat_t).Blocks*512 < outputMost
	})
	close(released)
	stop()
	if err := <-over; err != nil {
		t.Error(err)
	}
	said := taken.String()
	if !strings.Contains(said, " bytes of the kubelet's log are lost, because no process read them\n") || !strings.HasSuffix(said, "\nthe end\n") || strings.Contains(said, "\x00") || len(said) > outputMost {
		t.Errorf("%d bytes were taken, among them %d of holes; the end is %q", len(said), strings.Count(said, "\x00"), said[max(0, len(said)-100):])
	}
	if end := string(o.end()); !strings.HasSuffix(end, "\nthe end\n") {
		t.Errorf("the last words are %q", end[max(0, len(end)-100):])
	}
}

// The log of a kubelet that was handed over stays; that of one before is no part of the next.
func TestALogThatIsInherited(t *testing.T) {
	for inherited, want := range map[bool]string{true: "of before\n", false: ""} {
		o := newOutput(written(t, "kubelet.log", "of before\n"), io.Discard)
		if inherited {
			o.inherit(handedOutput{Began: 3})
		}
		if got, wantEnd := string(o.end()), want[min(3, len(want)):]; got != wantEnd {
			t.Errorf("inherited %t: the last words are %q, want %q", inherited, got, wantEnd)
		}
		if content, err := os.ReadFile(o.path); string(content) != want || err != nil {
			t.Errorf("inherited %t: %q, %v", inherited, content, err)
		}
	}
}

// Nothing is given up but what nobody has taken, and only where that is much.
func TestWhatOfALogIsGivenUp(t *testing.T) {
	for name, row := range map[string]struct{ size, copied, given, want int64 }{
		"little":                    {10 << 20, 0, 0, 0},
		"as much as may be":         {outputMost - 1, 0, 0, 0},
		"more":                      {outputMost, 0, 0, outputMost - outputForgetsAt},
		"more, of which was copied": {outputMost + 100, 101, 0, 0},
		"more, and too little was":  {outputMost + 100, 100, 0, outputMost + 100 - outputForgetsAt},
		"more, and all was copied":  {2 * outputMost, 2 * outputMost, 0, 0},
		"more, given up before":     {outputMost + 100, 0, 101, 101},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOutput(filepath.Join(t.TempDir(), "kubelet.log"), io.Discard)
			if err := o.open(); err != nil {
				t.Fatal(err)
			}
			if err := o.writer.Truncate(row.size); err != nil {
				t.Fatal(err)
			}
			o.copied.Store(row.copied)
			o.given.Store(row.given)
			if o.giveUp(); o.given.Load() != row.want || o.size() != row.size {
				t.Errorf("up to %d is given up of %d, want %d", o.given.Load(), o.size(), row.want)
			}
		})
	}
}

// Without an inotify instance the log is forwarded all the same.
func TestALogThatCannotBeWatched(t *testing.T) {
	o := newOutput(filepath.Join(t.TempDir(), "kubelet.log"), nil)
	taken := fakenode.NewOutput(t)
	o.to = taken
	o.watch = func(string) (*fsnotify.Watcher, error) { return nil, syscall.EMFILE }
	ctx, stop := context.WithCancel(t.Context())
	over := make(chan error, 1)
	go func() { over <- o.follow(ctx) }()
	fakenode.Await(t, "the complaint", func() bool { return strings.Contains(taken.String(), syscall.EMFILE.Error()) })
	command := exec.Command("echo", "what the kubelet says")
	if err := o.attach(command); err != nil {
		t.Fatal(err)
	}
	if err := command.Run(); err != nil {
		t.Fatal(err)
	}
	fakenode.Await(t, "the kubelet's words", func() bool { return strings.Contains(taken.String(), "what the kubelet says\n") })
	stop()
	if err := <-over; err != nil {
		t.Error(err)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
