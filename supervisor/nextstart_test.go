package supervisor

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"

	"go.uber.org/zap"

	"github.com/kubelet-supervisor/kubelet-supervisor/decide"
	"github.com/kubelet-supervisor/kubelet-supervisor/test/fakenode"
)

// With the words that it was started with no kubelet starts, and systemd would start it with others by now (rule 2).
func TestNoKubeletStartsWithTheWordsOfOld(t *testing.T) {
	for name, test := range map[string]struct {
		mode  string // of the kubelet with the words of the next start
		same  bool   // they are those of now
		err   error  // of asking for them
		leave bool
	}{
		"with those of the next start one would": {mode: "ok", leave: true},
		"the kubelet refuses those, too":         {mode: "refuse"},
		"they are the same":                      {mode: "ok", same: true},
		"nobody knows them":                      {mode: "ok", err: errors.New("no bus")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNode(t)
			n.write("etc/kubelet.yaml", fakenode.Configuration("mode: crash, code: 1, words: unknown flag"))
			n.write("etc/next.yaml", fakenode.Configuration("mode: "+test.mode))
			words := append([]string{n.options.Kubelet}, n.options.Arguments...)
			if !test.same {
				words = append(slices.Clone(words), "--config="+n.path("etc/next.yaml"))
			}
			var asked atomic.Int32
			n.options.TrialFailures = 1
			n.options.NextStart = func(context.Context) ([]string, error) {
				asked.Add(1)
				return words, test.err
			}
			r := n.run()
			fakenode.Await(t, "the next start is asked about", func() bool { return asked.Load() > 1 || test.leave && asked.Load() > 0 })
			if test.leave {
				if err := r.wait(); !errors.Is(err, ErrNextStart) {
					t.Errorf("it ended with %v", err)
				}
				return
			}
			if err := r.end(); err != nil {
				t.Errorf("it ended by itself: %v", err)
			}
		})
	}
}

// As long as something else than local fails, there is a fallback: other flags of the unit are taken by nobody's crash.
func TestAFailedTrialTakesNoOtherFlags(t *testing.T) {
	for name, test := range map[string]struct {
		child decide.Child
		event decide.Event
		asks  bool
	}{
		"local ends":                      {event: decide.ChildExited{Code: 1}, asks: true},
		"what is assigned ends":           {child: decide.Child{Version: &decide.Version{Content: "deadly"}}, event: decide.ChildExited{Code: 1}},
		"local is ended by us":            {event: decide.ChildExited{Asked: true}},
		"a kubelet of local gets healthy": {event: decide.Healthy{}},
	} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			l := &loop{nextStart: nextStart{asked: make(chan bool, 1)}}
			l.Logger, l.TrialFailures, l.state.Child = zap.NewNop(), 3, test.child
			l.NextStart = func(context.Context) ([]string, error) {
				asked++
				return nil, errors.New("no bus")
			}
			for range 3 {
				l.considerNextStart(t.Context(), test.event)
			}
			l.tasks.Wait()
			if got := asked > 0; got != test.asks {
				t.Errorf("asked %d times", asked)
			}
		})
	}
}
