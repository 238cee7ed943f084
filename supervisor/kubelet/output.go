//go:build linux

package kubelet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fsnotify/fsnotify"
	"golang.org/x/sys/unix"
)

// output carries the kubelet's log to the supervisor's own, and finds its end. The kubelet writes to a file below
// RUN_DIR and not to a pipe: a pipe would block the kubelet when the supervisor stalls, and kill it when the
// supervisor dies. Copying is a goroutine of its own: where the supervisor's own output stalls, kubelets are started
// and their last lines known anyway, and what no process reads is given up, so that the file does not grow for ever. A
// library that follows files, such as nxadm/tail, only reads: it neither frees what was copied nor gives up an output
// that takes nothing.
type output struct {
	path     string
	to       io.Writer
	watch    func(path string) (*fsnotify.Watcher, error)
	patience time.Duration // with an output that takes nothing, before we go on without it

	opening sync.Mutex
	writer  *os.File // the kubelet's; opened for appending
	reader  *os.File

	began     atomic.Int64  // where the present kubelet's part begins
	given     atomic.Int64  // what comes before was given up
	copying   chan struct{} // holds the turn: only its holder may copy and forget
	copied    atomic.Int64
	forgotten int64 // of it the file no longer holds so much
	inherited bool  // the file is the kubelet's already
}

// handedOutput is how far the copying is.
type handedOutput struct{ Began, Copied, Forgotten int64 }

const (
	outputRemembered = 64 << 10
	outputForgetsAt  = 4 << 20
	outputMost       = 64 << 20 // that no process has read
	outputPatience   = time.Second
	outputPoll       = time.Second // where its changes cannot be watched
)

func newOutput(path string, to io.Writer) *output {
	return &output{path: path, to: to, watch: watchFile, patience: outputPatience, copying: make(chan struct{}, 1)}
}

// pause stops the copying for good, so that the program that takes over goes on at the right place. It does not wait long for an output
// that stalls: a line may come twice then. resume takes it back.
func (o *output) pause() (resume func()) {
	select {
	case o.copying <- struct{}{}:
		return func() { <-o.copying }
	case <-time.After(o.patience):
		return func() {}
	}
}

// handOver is for after pause.
func (o *output) handOver() handedOutput {
	return handedOutput{Began: o.began.Load(), Copied: max(o.copied.Load(), o.given.Load()), Forgotten: o.forgotten}
}

func (o *output) inherit(h handedOutput) {
	o.began.Store(h.Began)
	o.copied.Store(h.Copied)
	o.forgotten, o.inherited = h.Forgotten, true
}

// attach makes the file the command's output.
func (o *output) attach(command *exec.Cmd) error {
	if err := o.open(); err != nil {
		return err
	}
	o.began.Store(o.size())
	command.Stdout, command.Stderr = o.writer, o.writer
	return nil
}

// open makes the file if that was not done yet.
func (o *output) open() (err error) {
	o.opening.Lock()
	defer o.opening.Unlock()
	if o.reader != nil {
		return nil
	}
	flags := os.O_CREATE | os.O_WRONLY | os.O_APPEND
	if !o.inherited {
		flags |= os.O_TRUNC
	}
	if o.writer, err = os.OpenFile(o.path, flags, 0o600); err != nil {
		return fmt.Errorf("opening the kubelet's log: %w", err)
	}
	if o.reader, err = os.Open(o.path); err != nil {
		return fmt.Errorf("opening the kubelet's log: %w", errors.Join(err, o.writer.Close()))
	}
	return nil
}

func (o *output) size() int64 {
	info, err := o.reader.Stat()
	if err != nil {
		return 0
	}
	return info.Size()
}

// end returns the last output of the present kubelet, at most outputRemembered bytes.
func (o *output) end() []byte {
	if err := o.open(); err != nil {
		return nil
	}
	size := o.size()
	from := max(o.began.Load(), size-outputRemembered)
	if from >= size {
		return nil
	}
	words := make([]byte, size-from)
	n, _ := o.reader.ReadAt(words, from)
	return words[:n]
}

// follow copies what the kubelets write until ctx ends.
func (o *output) follow(ctx context.Context) error {
	if err := o.open(); err != nil {
		return err
	}
	var poll <-chan time.Time
	watcher, err := o.watch(o.path)
	if err == nil {
		defer func() { _ = watcher.Close() }()
	} else { // a busy node has no inotify instance left
		o.complain(err)
		watcher = &fsnotify.Watcher{}
		ticker := time.NewTicker(outputPoll)
		defer ticker.Stop()
		poll = ticker.C
	}
	written := make(chan struct{}, 1)
	wake := func() {
		select {
		case written <- struct{}{}:
		default: // the next turn has not begun yet
		}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range written {
			o.takeTurn()
		}
	}()
	defer func() {
		close(written)
		for copied := int64(-1); copied != o.copied.Load(); { // a goroutine that hangs in an output that stalls ends with the program
			copied = o.copied.Load()
			select {
			case <-done:
				return
			case <-time.After(o.patience):
			}
		}
	}()
	for wake(); ; wake() {
		select {
		case <-watcher.Events:
		case <-poll:
		case err := <-watcher.Errors:
			o.complain(err)
		case <-ctx.Done():
			wake()
			return nil
		}
		o.giveUp()
	}
}

func watchFile(path string) (*fsnotify.Watcher, error) {
	watcher, err := fsnotify.NewWatcher()
	if err == nil {
		if err = watcher.Add(path); err != nil {
			_ = watcher.Close()
		}
	}
	return watcher, err
}

func (o *output) complain(err error) {
	_, _ = fmt.Fprintln(o.to, "kubelet-supervisor: following the kubelet's log:", err)
}

func (o *output) takeTurn() {
	o.copying <- struct{}{}
	defer func() { <-o.copying }()
	o.copy()
}

// copy copies what was written and not copied yet.
func (o *output) copy() {
	block := make([]byte, 32<<10)
	for {
		copied := o.copied.Load()
		n, err := o.reader.ReadAt(block, copied)
		if given := o.given.Load(); given > copied { // what was read may be a hole
			_, _ = fmt.Fprintf(o.to, "\nkubelet-supervisor: %d bytes of the kubelet's log are lost, because no process read them\n", given-copied)
			o.copied.Store(given)
			continue
		}
		o.copied.Store(copied + int64(n))
		_, _ = o.to.Write(block[:n])
		o.forget()
		if err != nil {
			return
		}
	}
}

// forget frees the space of what was copied, except the end. A hole loses nothing that the kubelet writes at that time, as cutting
// the file would; that is left to file systems that know no holes.
func (o *output) forget() {
	copied := o.copied.Load()
	if copied-o.forgotten < outputForgetsAt {
		return
	}
	o.forgotten = copied
	if err := o.free(0, copied-outputRemembered); err != nil && o.writer.Truncate(0) == nil {
		o.forgotten = 0
		o.copied.Store(0)
		o.began.Store(0)
	}
}

// giveUp drops all except the newest if no process reads it. File systems that know no holes keep it: cutting the file while
// it is copied would mix up what comes next.
func (o *output) giveUp() {
	size, taken := o.size(), max(o.copied.Load(), o.given.Load())
	const farBehindTheEnd = 1 << 40
	if size-taken < outputMost || o.free(farBehindTheEnd, 1) != nil {
		return
	}
	o.given.Store(size - outputForgetsAt) // first: the copying goroutine must not take the hole for the log
	_ = o.free(0, size-outputForgetsAt)
}

// free gives the space of a part of the file back.
func (o *output) free(from, length int64) error {
	return unix.Fallocate(int(o.writer.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, from, length)
}

// FollowOutput copies the kubelets' log to our own output until ctx ends.
func (l *Launcher) FollowOutput(ctx context.Context) {
	if err := l.output.follow(ctx); err != nil {
		l.Logger.Warn(err.Error())
	}
}
