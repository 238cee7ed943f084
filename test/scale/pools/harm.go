//go:build linux

package pools

import (
	"context"
	"fmt"
	"syscall"
	"time"
)

const restartAfter = 2 * time.Second

func (s *soaker) startController(i int) error {
	p, err := s.launch(fmt.Sprintf("controller-%d", i), s.controllerMetrics(i))
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if err == nil {
		s.controllers[i], s.frozen[i] = p, false
	}
	return err
}

// watchControllers starts a controller again that has ended, as systemd does, until all is over.
func (s *soaker) watchControllers(ctx context.Context) {
	for ; ctx.Err() == nil; pause(ctx, 200*time.Millisecond) {
		for i := range s.controllers {
			s.mutex.Lock()
			p, over := s.controllers[i], s.over
			s.mutex.Unlock()
			if over {
				return
			}
			select {
			case <-p.Done:
				pause(ctx, restartAfter)
				s.mutex.Lock()
				s.soaked.Ended++
				s.mutex.Unlock()
				if err := s.startController(i); err != nil {
					_, _ = fmt.Fprintln(s.Log, "starting a controller again:", err)
				}
			default:
			}
		}
	}
}

func (s *soaker) controller(i int) (p interface{ Signal(syscall.Signal) }, frozen bool) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.controllers[i], s.frozen[i]
}

// anyController is the number of one that may be harmed.
func (s *soaker) anyController() int {
	i := s.random.IntN(len(s.controllers))
	if s.soaked.Spared {
		i = len(s.controllers) - 1
	}
	return i
}

// killSupervisor kills any that may be harmed. The last number is the real kubelet's.
func (s *soaker) killSupervisor() error {
	last := s.options.Machines
	switch i := s.random.IntN(last + 1); {
	case s.soaked.Spared:
		return s.machines.Kill(1 + i%(last-1))
	case i == last:
		return s.real.kill()
	default:
		return s.machines.Kill(i)
	}
}

func (s *soaker) killController(i int) {
	p, _ := s.controller(i)
	p.Signal(syscall.SIGKILL)
}

// freeze stops a controller for longer or shorter than its Lease lasts.
func (s *soaker) freeze(ctx context.Context, i int) {
	p, frozen := s.controller(i)
	if frozen {
		return
	}
	s.mutex.Lock()
	s.frozen[i] = true
	s.mutex.Unlock()
	lasts := time.Duration(2+s.random.IntN(30)) * time.Second
	p.Signal(syscall.SIGSTOP)
	s.beside.Go(func() {
		pause(ctx, lasts)
		p.Signal(syscall.SIGCONT)
		s.mutex.Lock()
		s.frozen[i] = false
		s.mutex.Unlock()
	})
}

// killAPIServer starts it again at once. All watches have ended with it, and what was under way has no answer.
func (s *soaker) killAPIServer(ctx context.Context) error {
	if err := s.cluster.Signal(apiServer, syscall.SIGKILL); err != nil {
		return err
	}
	s.cluster.End(apiServer)
	return s.cluster.StartAPIServer(ctx)
}

// endAll ends the controllers, and waits for what is beside.
func (s *soaker) endAll() {
	s.mutex.Lock()
	s.over = true
	s.mutex.Unlock()
	s.beside.Wait()
	for _, p := range s.controllers {
		if p != nil {
			p.Signal(syscall.SIGCONT)
			_ = p.Stop(30 * time.Second)
		}
	}
}
