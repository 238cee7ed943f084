//go:build linux

package supervisor

import (
	"errors"
	"os"
	"time"
)

// saveTime is how long the loop waits for a write.
const saveTime = 10 * time.Second

var errDiskHangs = errors.New("the disk of the state folder does not answer")

// saves lets one save write at a time. A disk can hang for as long as it likes (a frozen file system, a server that is away): a kubelet has
// to be started and stopped anyway, so a save that takes too long has failed. What comes of it later is dropped.
type saves struct {
	turn chan struct{}
	most time.Duration
}

func newSaves() saves { return saves{turn: make(chan struct{}, 1), most: saveTime} }

// do waits for write, but not for long. The goroutine that hangs with the disk is waited for by the next save alone.
func (s saves) do(write func() error) error {
	deadline := time.NewTimer(s.most)
	defer deadline.Stop()
	select {
	case s.turn <- struct{}{}:
	case <-deadline.C:
		return errDiskHangs
	}
	done := make(chan error, 1)
	go func() {
		err := write()
		<-s.turn
		done <- err
	}()
	select {
	case err := <-done:
		return err
	case <-deadline.C:
		return errDiskHangs
	}
}

// doThen does then as well, but only after a write that was waited for. One that was given up is carried out when the disk goes on; by then
// something else may be assigned, whose checkpoint the write knows nothing of. A then that hangs is not reported.
func (s saves) doThen(write func() error, then func()) error {
	if err := s.do(write); err != nil {
		return err
	}
	_ = s.do(func() error { then(); return nil })
	return nil
}

// hang reports whether a save is still being made.
func (s saves) hang() bool { return len(s.turn) > 0 }

// read waits for what a read gives, as long as for a write: a configuration that cannot be read in that time is passed over, because there
// has to be a kubelet. The goroutine that hangs with the disk ends with the read, and what it brings then is dropped.
func (s saves) read(read func() (map[string]string, error)) (map[string]string, error) {
	type result struct {
		payload map[string]string
		err     error
	}
	done := make(chan result, 1)
	go func() {
		payload, err := read()
		done <- result{payload, err}
	}()
	deadline := time.NewTimer(s.most)
	defer deadline.Stop()
	select {
	case r := <-done:
		return r.payload, r.err
	case <-deadline.C:
		return nil, errDiskHangs
	}
}

// diskAnswers looks whether the disk of the state folder hangs. No program can be executed while one of our threads waits for it, and
// execve(2) would wait with all others ended, and the watchdog would get no answer.
func (p *payloads) diskAnswers() error {
	return p.saves.do(func() error {
		_ = os.Chtimes(p.StateDir, time.Time{}, time.Now()) // waits for a frozen file system; that it fails is no matter
		return nil
	})
}
