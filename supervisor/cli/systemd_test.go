//go:build linux

package cli

import (
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor"
	"github.com/kubelet-supervisor/kubelet-supervisor/test/fakenode"
)

// serviceManager is a socket that remembers what it was told.
type serviceManager struct {
	t    *testing.T
	mu   sync.Mutex
	told []string
}

// listenAsSystemd makes what is started from now on believe that systemd started it. watchdog is in microseconds; empty: none.
func (n *node) listenAsSystemd(watchdog string) *serviceManager {
	n.t.Helper()
	s := &serviceManager{t: n.t}
	path := filepath.Join(n.folder, "systemd")
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		n.t.Fatal(err)
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		message := make([]byte, 4<<10)
		for {
			length, err := socket.Read(message)
			if err != nil {
				return
			}
			s.mu.Lock()
			s.told = append(s.told, string(message[:length]))
			s.mu.Unlock()
		}
	}()
	n.t.Cleanup(func() { socket.Close(); <-over })
	n.t.Setenv("NOTIFY_SOCKET", path)
	n.t.Setenv("WATCHDOG_USEC", watchdog)
	return s
}

func (s *serviceManager) heard() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.told)
}

// count tells how often it was told a message that begins so.
func (s *serviceManager) count(beginning string) (count int) {
	for _, message := range s.heard() {
		if strings.HasPrefix(message, beginning) {
			count++
		}
	}
	return count
}

func (s *serviceManager) await(beginning string) {
	s.t.Helper()
	fakenode.Await(s.t, "systemd hears "+beginning, func() bool { return s.count(beginning) > 0 })
}

// term asks the supervisor to stop and waits until it has.
func (p *supervisorProcess) term() {
	p.n.t.Helper()
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		p.n.t.Fatal(err)
	}
	if code := p.end(); code != exitOK {
		p.n.t.Errorf("%s", p.ProcessState)
	}
}

func TestSystemdHearsOfALife(t *testing.T) {
	n := newNode(t)
	systemd := n.listenAsSystemd("")
	p := n.run()
	p.awaitHealthy()
	systemd.await("READY=1")
	systemd.await("STATUS=Local: using current (default); nothing is assigned")
	p.term()
	told := systemd.heard()
	if !strings.HasPrefix(told[0], "EXTEND_TIMEOUT_USEC=") {
		t.Errorf("the first word is %q", told[0])
	}
	ready, stopping := slices.Index(told, "READY=1"), slices.Index(told, "STOPPING=1\nEXTEND_TIMEOUT_USEC=40000000")
	if ready < 0 || stopping < ready || systemd.count("READY=1") != 1 || systemd.count("WATCHDOG") != 0 {
		t.Errorf("systemd was told %q", told)
	}
	if last := told[len(told)-1]; !strings.HasPrefix(last, "STATUS=Stopped: ") {
		t.Errorf("the last word is %q", last)
	}
}

// The supervisor's ping goes on while its kubelet hangs: it is the kubelet that is restarted, and only after it has said at what.
func TestAKubeletThatStopsItsPings(t *testing.T) {
	n := newNode(t)
	systemd := n.listenAsSystemd("1200000")
	written(t, n.local, fakenode.Configuration("mode: ok, pings: 2, crashTimes: 1, counter: "+filepath.Join(n.folder, "starts")))
	p := n.run()
	first := p.awaitHealthy().Child.PID
	var record supervisor.Record
	fakenode.Await(t, "another kubelet", func() bool {
		record = p.awaitHealthy()
		return record.Child.PID != first
	})
	if len(record.Exits) != 1 || record.Exits[0].Asked || !strings.Contains(record.Exits[0].Words, "no watchdog ping for more than 1.2s; exit code 2") {
		t.Errorf("recorded %+v", record.Exits)
	}
	before := systemd.count("WATCHDOG=1")
	fakenode.Await(t, "pings of the supervisor's own", func() bool { return systemd.count("WATCHDOG=1") >= before+10 })
	if record := p.awaitHealthy(); len(record.Exits) != 1 {
		t.Errorf("the second pings, and was restarted: %+v", record.Exits)
	}
	p.term()
	if log := p.stderr.String(); !strings.Contains(log, "SIGQUIT: quit") || !strings.Contains(log, "goroutine 1 ") {
		t.Errorf("its goroutines are not in the log")
	}
}

// Kubelets before 1.32 never ping.
func TestAKubeletThatNeverPingsIsNotJudged(t *testing.T) {
	n := newNode(t)
	systemd := n.listenAsSystemd("1200000")
	n.kubelet[0] = written(t, filepath.Join(n.folder, "old-kubelet"), "#!/bin/sh\nunset WATCHDOG_USEC\nexec "+fakeKubelet+" \"$@\"\n")
	p := n.run()
	first := p.awaitHealthy().Child.PID
	fakenode.Await(t, "pings of the supervisor's own", func() bool { return systemd.count("WATCHDOG=1") >= 12 })
	if record := p.awaitHealthy(); record.Child.PID != first {
		t.Errorf("exits %+v", record.Exits)
	}
}

// WATCHDOG_PID names whom the watchdog is about (sd_watchdog_enabled(3)).
func TestTheWatchdogIsThatOfTheRightProcess(t *testing.T) {
	n := newNode(t)
	systemd := n.listenAsSystemd("1200000")
	t.Setenv("WATCHDOG_PID", "1") // meant for somebody else
	p := n.run()
	p.awaitHealthy()
	systemd.await("READY=1")
	if systemd.count("WATCHDOG=1") != 0 {
		t.Errorf("systemd was told %q", systemd.heard())
	}
}
