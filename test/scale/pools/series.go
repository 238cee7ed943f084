//go:build linux

package pools

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/cluster"
	"github.com/kubelet-supervisor/kubelet-supervisor/test/scale/history"
)

// sampleEvery is how often processes are looked at, whatever they do just then.
const sampleEvery = 20 * time.Second

// The processes that are looked at, by their names. In runs of odd seeds nobody harms them.
const (
	LeadController = "controller"
	FakeSupervisor = "supervisor, fake kubelet"
	RealSupervisor = "supervisor, real kubelet"
)

// A Sample is what processes took at a time since the pool was made.
type Sample struct {
	At time.Duration `json:"at"`
	Of []Taken       `json:"of"`
}

// Taken is of one process.
type Taken struct {
	Name      string  `json:"name"`
	Process   int     `json:"process"`
	Resident  float64 `json:"resident"`  // MiB
	Anonymous float64 `json:"anonymous"` // MiB
	Files     int     `json:"files"`
	Threads   int     `json:"threads"`
	Written   float64 `json:"written"` // KiB that the process had the disk write, since its start
}

// A Minute is how many writes of Nodes and pools the API server carried out in it, by whom.
type Minute struct {
	Controller int `json:"controller"`
	Nodes      int `json:"nodes"` // kubelets, supervisors and puppets, as the nodes' identities
	People     int `json:"people"`
}

// sample looks at processes until all is over.
func (s *soaker) sample(ctx context.Context) {
	for next := s.began; ctx.Err() == nil; pause(ctx, time.Second) {
		s.mutex.Lock()
		over, leader := s.over, s.controllers[0]
		s.mutex.Unlock()
		if over {
			return
		}
		if time.Now().Before(next) {
			continue
		}
		next = next.Add(sampleEvery)
		x := Sample{At: time.Since(s.began)}
		for _, of := range []struct {
			name string
			pid  int
		}{{LeadController, leader.PID()}, {FakeSupervisor, s.machines.PID(0)}, {RealSupervisor, s.real.running().PID()}} {
			if t, err := taken(of.name, of.pid); err == nil { // else it has just ended
				x.Of = append(x.Of, t)
			}
		}
		s.mutex.Lock()
		s.soaked.Samples = append(s.soaked.Samples, x)
		s.mutex.Unlock()
	}
}

func taken(name string, pid int) (t Taken, err error) {
	u, err := cluster.UsageOf(pid)
	if err != nil {
		return t, err
	}
	written, err := os.ReadFile(fmt.Sprintf("/proc/%d/io", pid))
	if err != nil {
		return t, err
	}
	t = Taken{Name: name, Process: pid, Resident: u.Resident, Anonymous: u.Anonymous, Files: u.Files, Threads: u.Threads}
	for line := range bytes.Lines(written) {
		if rest, is := strings.CutPrefix(string(line), "write_bytes: "); is {
			_, err = fmt.Sscanf(rest, "%g", &t.Written)
			t.Written /= 1024
		}
	}
	return t, err
}

// minutes counts the writes since the begin.
func minutes(writes []history.Write, begin time.Time) (all []Minute) {
	for i := range writes {
		w := &writes[i]
		at := int(w.Received.Sub(begin) / time.Minute)
		if w.Received.Before(begin) {
			continue
		}
		for len(all) <= at {
			all = append(all, Minute{})
		}
		switch {
		case w.User == controllerUser:
			all[at].Controller++
		case strings.HasPrefix(w.User, "system:node:"):
			all[at].Nodes++
		default:
			all[at].People++
		}
	}
	return all
}
