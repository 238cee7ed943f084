//go:build linux

package supervisor

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/core"
)

func noSwap() ([]string, error) { return nil, nil }
func zram() ([]string, error)   { return []string{"/dev/zram0"}, nil }

// A look at a change looks at what its start would meet too. It is about what is to run: a change that cures the node does not wait for it.
func TestObstaclesOfAChange(t *testing.T) {
	for name, row := range map[string]struct {
		then   map[string]any // in addition
		swaps  func() ([]string, error)
		change func(t *testing.T, l *loop)
		want   map[core.ObstacleKind]string
	}{
		"nothing":              {nil, noSwap, nil, nil},
		"swap":                 {nil, zram, nil, map[core.ObstacleKind]string{core.ObstacleSwap: "swap is on (/dev/zram0), and failSwapOn is true"}},
		"swap that is allowed": {map[string]any{"failSwapOn": false}, zram, nil, nil},
		"swap that nobody can tell": {nil, func() ([]string, error) { return nil, errors.New("no") }, nil,
			map[core.ObstacleKind]string{core.ObstacleSwap: "cannot be read"}},
		"an expired certificate": {nil, noSwap, func(t *testing.T, l *loop) {
			l.Arguments = append(l.Arguments, "--kubeconfig="+written(t, t.TempDir(), "kubelet.conf", someKubeconfig(inline(t, nodeOne, past))), "--cert-dir="+t.TempDir())
		}, map[core.ObstacleKind]string{core.ObstacleCredential: "expired on"}},
		"another runtime, which is not there": {map[string]any{"containerRuntimeEndpoint": "unix:///none.sock"}, noSwap, nil,
			map[core.ObstacleKind]string{core.ObstacleRuntime: "the container runtime at unix:///none.sock does not answer: "}},
		"the runtime is gone": {nil, noSwap, func(t *testing.T, l *loop) {
			gone := toldOf(t, map[string]any{"maxPods": 110, "containerRuntimeEndpoint": "unix:///none.sock"})
			l.prover.effectives.keep("runs", kubeletconfig.Identity{}, gone, false)
			l.prover.effectives.keep("one", kubeletconfig.Identity{}, gone, false)
			l.prover.effectives.begin("runs", kubeletconfig.Identity{})
		}, map[core.ObstacleKind]string{core.ObstacleRuntime: "unix:///none.sock"}},
		"what is to run is not known": {nil, zram, func(_ *testing.T, l *loop) { l.prover.effectives.list = l.prover.effectives.list[:1] }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			l, do := looking(t, answers{"/api/v1/nodes/n1": nodeAnswer, "/api/v1/pods": podsAnswer})
			l.swaps = row.swaps
			if len(row.then) > 0 {
				tree := l.prover.effectives.find("one", kubeletconfig.Identity{}).Tree()
				for field, value := range row.then {
					tree[field] = value
				}
				l.prover.effectives.keep("one", kubeletconfig.Identity{}, toldOf(t, tree), false)
			}
			if row.change != nil {
				row.change(t, l)
			}
			if strings.Contains(name, "not known") {
				do.MayAsk = false
			}
			found := l.foresight.foresee(t.Context(), do).Obstacles
			if len(found) != len(row.want) {
				t.Fatalf("found %+v", found)
			}
			for _, o := range found {
				if words := row.want[o.Kind]; words == "" || !strings.Contains(o.Words, words) {
					t.Errorf("found %+v", o)
				}
			}
		})
	}
}

// A runtime that hangs is waited for where the forecast asks it, and is in the way where nobody else has asked it.
func TestARuntimeThatHangs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "runtime.sock")
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	then := toldOf(t, map[string]any{"containerRuntimeEndpoint": "unix://" + path})
	for asked, obstacles := range map[string]int{"unix://" + path: 0, "": 1, "unix:///other.sock": 1} {
		ctx, stop := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer stop()
		if found := (startLook{}).runtime(ctx, then, asked); len(found) != obstacles {
			t.Errorf("the forecast has asked %q: %+v", asked, found)
		}
	}
}

// What a kubelet would meet that starts in place of the one that runs is told when two looks have found it, and once; that it has gone, at once.
func TestTheHostIsWatched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := wire(Options{})
		l.Logger, l.swaps = zap.NewNop(), noSwap
		l.prover.effectives.keep("runs", kubeletconfig.Identity{}, toldOf(t, map[string]any{}), false)
		l.prover.effectives.begin("runs", kubeletconfig.Identity{})
		var on atomic.Bool
		l.swaps = func() ([]string, error) {
			if on.Load() {
				return zram()
			}
			return noSwap()
		}
		ctx, stop := context.WithCancel(t.Context())
		go l.watches.watchObstacles(ctx, nil)
		heard := func(want int, obstacles int) {
			t.Helper()
			synctest.Wait()
			if len(l.events) != want {
				t.Fatalf("%d events, want %d", len(l.events), want)
			}
			if want > 0 {
				if e := (<-l.events).(core.ObstaclesSeen); len(e.Obstacles) != obstacles {
					t.Errorf("heard %+v", e)
				}
			}
		}
		heard(0, 0)
		on.Store(true)
		time.Sleep(obstaclesEvery)
		heard(0, 0)
		time.Sleep(obstaclesEvery)
		heard(1, 1)
		time.Sleep(time.Hour)
		heard(0, 0)
		on.Store(false)
		time.Sleep(obstaclesEvery)
		heard(1, 0)
		stop()
	})
}
