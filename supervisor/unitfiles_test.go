package supervisor

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"github.com/kubelet-supervisor/kubelet-supervisor/decide"
)

// The unit's files are told at first, and when they have changed.
func TestTheUnitIsWatched(t *testing.T) {
	path := filepath.Join(t.TempDir(), "flags.env")
	write := func(content string) {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		l := &loop{events: make(chan decide.Event, 10)}
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
				if e := (<-l.events).(decide.UnitSeen); len(e.Files) != 1 || e.Files[path] == "" {
					t.Errorf("heard %+v", e)
				}
			}
		}
		write("A=1")
		go l.watchUnit(ctx)
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
			l := &loop{events: make(chan decide.Event, 10)}
			l.Logger, l.UnitFiles = zap.NewNop(), ask
			if l.watchUnit(t.Context()); len(l.events) > 0 {
				t.Errorf("%s: %d events", name, len(l.events))
			}
		})
	}
}
