package config

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"
)

// outputReaders read both streams of a process. exec.Cmd's own do not say that
// they gave up, when the process itself failed.
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
	for i, to := range []*output{&r.stdout, &r.stderr} {
		reading.Go(func() { _, _ = io.Copy(to, o.ours[i]) })
	}
	go func() {
		reading.Wait()
		close(o.done)
	}()
	return o, nil
}

// started leaves the other ends to the process alone.
func (o *outputReaders) started() { _ = closeAll(o.theirs) }

// end waits for the end of the output, but not for long, and tells whether it
// had to be cut off.
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

// output is one stream: bounded, and searched as it comes.
type output struct {
	marks  *marks
	head   []byte
	tail   []byte // at most twice keptOutput, of which the end counts
	recent []byte // the end of what was searched; a mark, none longer than acceptedMark, can arrive in pieces
}

func (o *output) Write(chunk []byte) (int, error) {
	searched := append(o.recent, chunk...)
	o.marks.look(searched)
	o.recent = bytes.Clone(searched[max(0, len(searched)-len(acceptedMark)):])

	fits := min(len(chunk), keptOutput-len(o.head))
	o.head = append(o.head, chunk[:fits]...)
	o.tail = append(o.tail, chunk[fits:]...)
	if len(o.tail) > 2*keptOutput {
		o.tail = bytes.Clone(o.tail[len(o.tail)-keptOutput:])
	}
	return len(chunk), nil
}

func (o *output) text() string {
	tail := o.tail
	if len(tail) <= keptOutput {
		return string(o.head) + string(tail)
	}
	return string(o.head) + "\n" + string(tail[len(tail)-keptOutput:])
}
