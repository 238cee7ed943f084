package supervisor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"

	"github.com/fsnotify/fsnotify"
	"golang.org/x/sys/unix"
)

// output carries the kubelet's log to the supervisor's own, and finds its end. The kubelet writes to a file below RUN_DIR and not to a
// pipe: a pipe would block the kubelet when the supervisor stalls, and kill it when the supervisor dies. Copying is a goroutine of its
// own: where the supervisor's own output stalls, kubelets are started and their last words known all the same.
type output struct {
	path string
	to   io.Writer

	opening sync.Mutex
	writer  *os.File // the kubelet's; opened for appending
	reader  *os.File

	began     atomic.Int64 // where the present kubelet's part begins
	copied    int64        // the copying goroutine's alone, as is forgotten
	forgotten int64        // of it the file no longer holds so much
}

const (
	outputRemembered = 64 << 10
	outputForgetsAt  = 4 << 20
)

func newOutput(path string, to io.Writer) *output { return &output{path: path, to: to} }

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
	if o.writer, err = os.OpenFile(o.path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY|os.O_APPEND, 0o600); err != nil {
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

// end gives the last words of the present kubelet, at most outputRemembered bytes.
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
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("following the kubelet's log: %w", err)
	}
	defer func() { _ = watcher.Close() }()
	if err := watcher.Add(o.path); err != nil {
		return fmt.Errorf("following the kubelet's log: %w", err)
	}
	for {
		o.copy()
		select {
		case <-watcher.Events:
		case err := <-watcher.Errors:
			_, _ = fmt.Fprintln(o.to, "kubelet-supervisor: following the kubelet's log:", err)
		case <-ctx.Done():
			o.copy()
			return nil
		}
	}
}

// copy copies what was written and not copied yet.
func (o *output) copy() {
	block := make([]byte, 32<<10)
	for {
		n, err := o.reader.ReadAt(block, o.copied)
		o.copied += int64(n)
		_, _ = o.to.Write(block[:n])
		o.forget()
		if err != nil {
			return
		}
	}
}

// forget gives back the space of what was copied, but for the end. A hole loses nothing that the kubelet writes meanwhile, as cutting
// the file would; that is left to file systems that know no holes.
func (o *output) forget() {
	if o.copied-o.forgotten < outputForgetsAt {
		return
	}
	o.forgotten = o.copied
	err := unix.Fallocate(int(o.writer.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, 0, o.copied-outputRemembered)
	if err != nil && o.writer.Truncate(0) == nil {
		o.copied, o.forgotten = 0, 0
		o.began.Store(0)
	}
}

// followOutput copies the kubelet's log while the loop lives.
func (l *loop) followOutput(ctx context.Context) {
	if err := l.kubelets.output.follow(ctx); err != nil {
		l.Logger.Warn(err.Error())
	}
}
