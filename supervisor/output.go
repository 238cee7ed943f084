package supervisor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"

	"github.com/fsnotify/fsnotify"
	"golang.org/x/sys/unix"
)

// output carries the kubelet's log to the supervisor's own, and remembers its end. The kubelet writes to a file below RUN_DIR and not
// to a pipe: a pipe would block the kubelet when the supervisor stalls, and kill it when the supervisor dies.
type output struct {
	path string
	to   io.Writer

	mu        sync.Mutex
	writer    *os.File // the kubelet's; opened for appending
	reader    *os.File
	read      int64
	forgotten int64 // of it the file no longer holds so much
	end       []byte
}

const (
	outputRemembered = 64 << 10
	outputForgetsAt  = 4 << 20
)

func newOutput(path string, to io.Writer) *output { return &output{path: path, to: to} }

// attach makes the file the command's output.
func (o *output) attach(command *exec.Cmd) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := o.open(); err != nil {
		return err
	}
	o.end = nil
	command.Stdout, command.Stderr = o.writer, o.writer
	return nil
}

// open makes the file if that was not done yet.
func (o *output) open() (err error) {
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

// follow copies what the kubelet writes until ctx ends.
func (o *output) follow(ctx context.Context) error {
	o.mu.Lock()
	err := o.open()
	o.mu.Unlock()
	if err != nil {
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
		o.drain()
		select {
		case <-watcher.Events:
		case <-watcher.Errors:
		case <-ctx.Done():
			o.drain()
			return nil
		}
	}
}

// drain copies what was written and not copied yet, and returns the end of what the present kubelet wrote.
func (o *output) drain() []byte {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.reader == nil {
		return nil
	}
	block := make([]byte, 32<<10)
	for {
		n, err := o.reader.ReadAt(block, o.read)
		o.read += int64(n)
		_, _ = o.to.Write(block[:n])
		o.end = append(o.end, block[:n]...)
		o.end = o.end[max(0, len(o.end)-outputRemembered):]
		o.forget()
		if err != nil {
			return bytes.Clone(o.end)
		}
	}
}

// forget gives back the space of what was copied. A hole loses nothing that the kubelet writes meanwhile, as cutting the file would;
// that is left to file systems that know no holes.
func (o *output) forget() {
	if o.read-o.forgotten < outputForgetsAt {
		return
	}
	o.forgotten = o.read
	err := unix.Fallocate(int(o.writer.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, 0, o.read)
	if err != nil && o.writer.Truncate(0) == nil {
		o.read, o.forgotten = 0, 0
	}
}

// followOutput copies the kubelet's log while the loop lives.
func (l *loop) followOutput(ctx context.Context) {
	if err := l.kubelets.output.follow(ctx); err != nil {
		l.Logger.Warn(err.Error())
	}
}
