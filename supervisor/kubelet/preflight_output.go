//go:build linux

package kubelet

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"
)

// outputReaders read both streams of a process. exec.Cmd's own do not say that they gave up, when the process itself failed.
type outputReaders struct {
	ours, theirs []*os.File
	done         chan struct{}
	once         sync.Once
	cutOff       bool
}

// read makes the pipes and begins to read them.
func (r *attempt) read(command *exec.Cmd) (*outputReaders, error) {
	o := &outputReaders{done: make(chan struct{})}
	for range 2 {
		ours, theirs, err := os.Pipe()
		if err != nil {
			return nil, errors.Join(err, closeAll(o.ours), closeAll(o.theirs))
		}
		o.ours, o.theirs = append(o.ours, ours), append(o.theirs, theirs)
	}
	command.Stdout, command.Stderr = o.theirs[0], o.theirs[1]
	var reading sync.WaitGroup
	for i, to := range []*stream{&r.stdout, &r.stderr} {
		reading.Go(func() {
			_, _ = io.Copy(to, o.ours[i])
			to.end()
		})
	}
	go func() {
		reading.Wait()
		close(o.done)
	}()
	return o, nil
}

// started leaves the other ends to the process alone.
func (o *outputReaders) started() { _ = closeAll(o.theirs) }

// end waits for the end of the output, but not for long, and reports whether it had to be cut off.
func (o *outputReaders) end() (cutOff bool) {
	o.once.Do(func() {
		timer := time.NewTimer(outputDelay)
		defer timer.Stop()
		select {
		case <-o.done:
		case <-timer.C:
			o.cutOff = true
		}
		_ = closeAll(o.ours)
		<-o.done
	})
	return o.cutOff
}

func closeAll(files []*os.File) (err error) {
	for _, file := range files {
		err = errors.Join(err, file.Close())
	}
	return err
}

// keptOutput is how much of a stream's beginning, and of its end, is kept.
const keptOutput = 64 << 10

// stream is one output: bounded, and searched as it comes, without what the kubelet prints of its configuration.
type stream struct {
	marks  *marks
	reader markReader
	teller teller
	head   []byte
	tail   []byte // at most twice keptOutput, of which the end counts
}

func (s *stream) Write(piece []byte) (int, error) {
	s.keep(s.teller.pass(piece))
	return len(piece), nil
}

func (s *stream) keep(chunk []byte) {
	s.marks.note(s.reader.read(chunk, s.teller.pid))
	fits := min(len(chunk), keptOutput-len(s.head))
	s.head = append(s.head, chunk[:fits]...)
	s.tail = append(s.tail, chunk[fits:]...)
	if len(s.tail) > 2*keptOutput {
		s.tail = bytes.Clone(s.tail[len(s.tail)-keptOutput:])
	}
}

// end is for the end of the output, whose last line may have no line feed.
func (s *stream) end() {
	s.keep(s.teller.end())
	s.marks.note(s.reader.end(s.teller.pid))
}

func (s *stream) text() string {
	tail := s.tail
	if len(tail) <= keptOutput {
		return string(s.head) + string(tail)
	}
	return string(s.head) + "\n" + string(tail[len(tail)-keptOutput:])
}
