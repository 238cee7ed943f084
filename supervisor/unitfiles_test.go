//go:build linux

package supervisor

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/core"
)

// aBus answers whether systemd could start the supervisor again.
type aBus struct {
	lock   sync.Mutex
	refuse string
	fails  error
	asked  int
}

func (b *aBus) answer(refuse string, fails error) {
	b.lock.Lock()
	defer b.lock.Unlock()
	b.refuse, b.fails = refuse, fails
}

func (b *aBus) ask(context.Context) (string, error) {
	b.lock.Lock()
	defer b.lock.Unlock()
	b.asked++
	return b.refuse, b.fails
}

func (b *aBus) wasAsked() (times int) {
	b.lock.Lock()
	defer b.lock.Unlock()
	times, b.asked = b.asked, 0
	return times
}

// Whenever the unit's files or the program have changed, systemd is asked whether it could start us again. What it refuses is asked for again, and
// what it does not answer changes nothing.
func TestANextStartIsAskedForAfterAChange(t *testing.T) {
	folder := t.TempDir()
	flags, program := filepath.Join(folder, "flags.env"), filepath.Join(folder, "program")
	write := func(path, content string) {
		if err := os.WriteFile(path, []byte(content), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	write(flags, "A=1")
	write(program, "one")
	const exec, user = "status 203/EXEC", "status 217/USER"
	watched := func(t *testing.T, bus *aBus, handover *Handover, before core.Unit) (expect func(after time.Duration, asks int, said ...string)) {
		l := wire(Options{})
		l.Logger, l.Successor, l.Handover, l.AskStart = zap.NewNop(), &Successor{Path: program}, handover, bus.ask
		l.UnitFiles = func(context.Context) ([]string, error) { return []string{flags}, nil }
		go l.watches.watchUnit(t.Context(), before)
		return func(after time.Duration, asks int, said ...string) {
			t.Helper()
			time.Sleep(after)
			synctest.Wait()
			if asked := bus.wasAsked(); asked != asks || len(l.events) != len(said) {
				t.Fatalf("asked %d times, want %d; %d events, want %d", asked, asks, len(l.events), len(said))
			}
			for _, want := range said {
				if e := (<-l.events).(core.UnitSeen); e.Refuse != want {
					t.Errorf("systemd refuses %q, want %q", e.Refuse, want)
				}
			}
		}
	}
	synctest.Test(t, func(t *testing.T) {
		bus := &aBus{}
		expect := watched(t, bus, nil, core.Unit{})
		expect(time.Second, 0, "")
		expect(time.Hour, 0)
		bus.answer(exec, nil)
		write(program, "another")
		expect(unitEvery, 1, "", exec)
		expect(2*startEvery, 2)
		bus.answer("", errors.New("no answer"))
		write(flags, "A=2")
		expect(unitEvery, 1, exec)
		bus.answer("", nil)
		expect(startEvery, 1, "")
		expect(time.Hour, 0)
		bus.answer("", errors.New("no answer"))
		write(flags, "A=3")
		expect(unitEvery, 1, "")
		bus.answer("two\nlines", nil)
		expect(startEvery, 1, "two lines")
		bus.answer("", nil)
		expect(startEvery, 1, "")
		if err := os.Remove(program); err != nil {
			t.Fatal(err)
		}
		expect(unitEvery, 1, "")
	})
	synctest.Test(t, func(t *testing.T) { // a program that takes over goes on with what was known, and asks: its own file is new
		bus := &aBus{refuse: exec}
		expect := watched(t, bus, &Handover{}, core.Unit{Refuse: user})
		expect(time.Second, 0, user)
		expect(startEvery, 1, exec)
	})
}

// The unit's files are told at first, and when they have changed.
func TestTheUnitIsWatched(t *testing.T) {
	path := filepath.Join(t.TempDir(), "flags.env")
	write := func(content string) {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		l := wire(Options{})
		l.Logger = zap.NewNop()
		l.UnitFiles = func(context.Context) ([]string, error) { return []string{path}, nil }
		ctx, stop := context.WithCancel(t.Context())
		heard := func(want int) {
			t.Helper()
			time.Sleep(unitEvery)
			synctest.Wait()
			if len(l.events) != want {
				t.Fatalf("%d events, want %d", len(l.events), want)
			}
			for range want {
				if e := (<-l.events).(core.UnitSeen); len(e.Files) != 1 || e.Files[path] == "" {
					t.Errorf("heard %+v", e)
				}
			}
		}
		write("A=1")
		go l.watches.watchUnit(ctx, core.Unit{})
		heard(1)
		heard(0)
		write("A=2")
		heard(1)
		stop()
	})
	for name, ask := range map[string]func(context.Context) ([]string, error){
		"no unit":    nil,
		"no answer":  func(context.Context) ([]string, error) { return nil, errors.New("no") },
		"it hangs":   func(ctx context.Context) ([]string, error) { <-ctx.Done(); return nil, ctx.Err() },
		"it is over": func(context.Context) ([]string, error) { return nil, context.Canceled },
	} {
		synctest.Test(t, func(t *testing.T) {
			l := wire(Options{})
			l.Logger, l.UnitFiles = zap.NewNop(), ask
			if l.watches.watchUnit(t.Context(), core.Unit{}); len(l.events) > 0 {
				t.Errorf("%s: %d events", name, len(l.events))
			}
		})
	}
}
