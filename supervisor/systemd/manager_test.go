package systemd

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
)

// told is a service manager that remembers what it was told.
type told struct {
	*Manager
	mu   sync.Mutex
	list []string
}

// newTold runs one until the end of the test, in its bubble.
func newTold(t *testing.T, watchdog time.Duration) *told {
	t.Helper()
	r := &told{Manager: NewManager(zap.NewNop())}
	r.Watchdog = watchdog
	r.send = func(message string) error {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.list = append(r.list, message)
		return nil
	}
	ctx, stop := context.WithCancel(t.Context())
	go r.Run(ctx)
	fed := make(chan struct{})
	go func() {
		defer close(fed)
		r.Feed(ctx)
	}()
	t.Cleanup(func() { stop(); <-r.over; <-fed })
	return r
}

// heard gives what it was told since the last call.
func (r *told) heard() []string {
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	list := r.list
	r.list = nil
	return list
}

func (r *told) expect(t *testing.T, want ...string) {
	t.Helper()
	if got := r.heard(); !slices.Equal(got, want) {
		t.Errorf("systemd was told %q, want %q", got, want)
	}
}

func TestReadiness(t *testing.T) {
	for name, row := range map[string]struct {
		when func(m *told)
		want []string
	}{
		"a healthy kubelet":                   {func(m *told) { m.Ready(); m.Ready() }, []string{"READY=1"}},
		"not healthy for a while":             {func(m *told) { m.Begin(); time.Sleep(readyWithin - time.Second) }, nil},
		"not healthy at all: it goes on":      {func(m *told) { m.Begin(); time.Sleep(readyWithin + time.Second) }, []string{"READY=1"}},
		"a kubelet left behind does not end":  {func(*told) { time.Sleep(time.Hour) }, nil},
		"healthy, and then late":              {func(m *told) { m.Ready(); time.Sleep(time.Hour) }, []string{"READY=1"}},
		"a reload ends with READY=1":          {func(m *told) { m.Ready(); synctest.Wait(); m.Reloaded() }, []string{"READY=1", "READY=1"}},
		"a new generation was ready before":   {func(m *told) { m.Reloaded(); m.Ready() }, []string{"READY=1"}},
		"the status is said when it changes":  {func(m *told) { m.Status("a"); synctest.Wait(); m.Status("a"); m.Status("b") }, []string{"STATUS=a", "STATUS=b"}},
		"lines in a status would be commands": {func(m *told) { m.Status("a\nREADY=1\x00") }, []string{"STATUS=a READY=1 "}},
		"time for a start":                    {func(m *told) { m.Starting(time.Minute) }, []string{"EXTEND_TIMEOUT_USEC=160000000"}},
		"a stop, and time for it":             {func(m *told) { m.Stopping(time.Minute) }, []string{"STOPPING=1\nEXTEND_TIMEOUT_USEC=70000000"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newTold(t, 0)
				row.when(m)
				m.expect(t, row.want...)
			})
		})
	}
}

func TestReloadingNamesItsMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newTold(t, 0)
		m.Reloading()
		got := strings.Join(m.heard(), "|")
		if moment, is := strings.CutPrefix(got, "RELOADING=1\nMONOTONIC_USEC="); !is || strings.Trim(moment, "0123456789") != "" {
			t.Errorf("told %q", got)
		}
	})
}

// The watchdog is fed only as long as the loop answers.
func TestTheWatchdogIsFedByALoopThatLives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newTold(t, 30*time.Second)
		m.Ready()
		m.expect(t, "READY=1")
		time.Sleep(time.Hour) // the loop is stuck
		m.expect(t)
		for range 10 {
			<-m.Pulse
			m.expect(t, "WATCHDOG=1")
			time.Sleep(m.Watchdog/3 + 1)
		}
		<-m.Pulse // at least twice in the interval
		m.expect(t, "WATCHDOG=1")
	})
}

// The READY=1 that ends a reload is told, though that of the start still waits.
func TestAReloadEndsWhateverWaits(t *testing.T) {
	m := NewManager(zap.NewNop())
	m.Ready()
	m.Reloading()
	m.Status("reloading")
	m.Reloaded()
	m.Reloaded()
	var waiting []string
	for _, message := range m.waiting {
		first, _, _ := strings.Cut(message.text, "\n")
		waiting = append(waiting, first)
	}
	if want := []string{"READY=1", "RELOADING=1", "STATUS=reloading", "READY=1"}; !slices.Equal(waiting, want) {
		t.Errorf("%q waits, want %q", waiting, want)
	}
}

// A service manager that takes nothing holds nothing up, and the queue stays short.
func TestAServiceManagerThatDoesNotListen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := NewManager(zap.NewNop())
		released := make(chan struct{})
		m.send = func(string) error { <-released; return nil }
		ctx, stop := context.WithCancel(t.Context())
		go m.Run(ctx)
		m.tell("FIRST=1")
		synctest.Wait()
		for i := range 1000 {
			m.tell("WATCHDOG=1")
			m.Status(strings.Repeat("x", i%7))
		}
		if len(m.waiting) > 3 {
			t.Errorf("%d messages wait", len(m.waiting))
		}
		stop()
		begin := time.Now()
		m.Flush()
		if waited := time.Since(begin); waited != managerPatience {
			t.Errorf("it was waited for %s", waited)
		}
		close(released)
		<-m.over
	})
}

func TestFlushWaitsForWhatWasSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newTold(t, 0)
		m.Status("the end")
		m.Flush()
		m.mu.Lock()
		defer m.mu.Unlock()
		if !slices.Equal(m.list, []string{"STATUS=the end"}) {
			t.Errorf("told %q", m.list)
		}
	})
}
