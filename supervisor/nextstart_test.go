//go:build linux

package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"go.uber.org/zap"

	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/core"
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

// What systemd answers may not come true. A supervisor that comes back with other words than those for which
// one has ended does not end for them again, in this boot; for others it does.
func TestNoSupervisorEndsTwiceForTheSameWords(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.write("etc/kubelet.yaml", fakenode.Configuration("mode: crash, code: 1, words: unknown flag"))
	n.write("etc/next.yaml", fakenode.Configuration("mode: ok"))
	own := n.options.Arguments
	next := append(slices.Clone(own), "--config="+n.path("etc/next.yaml"))
	answer := append([]string{n.options.Kubelet}, next...)
	var asked atomic.Int32
	n.options.TrialFailures = 1
	n.options.NextStart = func(context.Context) ([]string, error) {
		asked.Add(1)
		return answer, nil
	}
	ends := func(when string) {
		t.Helper()
		if err := n.run().wait(); !errors.Is(err, ErrNextStart) {
			t.Errorf("%s it ended with %v", when, err)
		}
	}
	stays := func(when string) {
		t.Helper()
		asked.Store(0)
		r := n.run()
		fakenode.Await(t, "the next start is asked about", func() bool { return asked.Load() > 2 })
		if err := r.end(); err != nil {
			t.Errorf("%s it ended by itself: %v", when, err)
		}
		if said := strings.Count(r.log.String(), "this one does not end for it"); said != 1 {
			t.Errorf("%s it was said %d times", when, said)
		}
	}
	ends("at first")
	stays("started with the words of old again,")
	stays("and once more,")
	answer = append(answer, "--v=2")
	ends("where the answer is another,")
	before, err := json.Marshal(endedForWords{"another", answer})
	if err != nil {
		t.Fatal(err)
	}
	n.write("run/ended-for.json", string(before))
	ends("in another boot")

	n.options.Arguments = answer[1:]
	r := n.run()
	r.awaitHealthy()
	if err := r.end(); err != nil {
		t.Errorf("started with the words of the answer it ended with %v", err)
	}
	n.options.Arguments = own
	ends("where the answer came true before,")
}

// As long as something else than local fails, there is a fallback: other flags of the unit are taken by nobody's crash.
func TestAFailedTrialTakesNoOtherFlags(t *testing.T) {
	for name, test := range map[string]struct {
		child            core.Child
		stopping, frozen bool
		event            core.Event
		asks             bool
	}{
		"local ends":                      {event: core.ChildExited{Code: 1}, asks: true},
		"what is assigned ends":           {child: core.Child{Version: &core.Version{Content: "deadly"}}, event: core.ChildExited{Code: 1}},
		"local is ended by us":            {event: core.ChildExited{Asked: true}},
		"a kubelet of local gets healthy": {event: core.Healthy{}},
		"a stop was asked for":            {stopping: true, event: core.ChildExited{Code: 1}},
		"the host shuts down":             {frozen: true, event: core.ChildExited{Code: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			l := wire(Options{})
			l.nextStart.asked = make(chan []string, 1)
			l.Logger, l.TrialFailures, l.state.Child = zap.NewNop(), 3, test.child
			l.state.Stopping, l.state.Frozen = test.stopping, test.frozen
			l.NextStart = func(context.Context) ([]string, error) {
				asked++
				return nil, errors.New("no bus")
			}
			for range 3 {
				l.nextStart.observe(t.Context(), &decision{event: test.event, after: l.state})
			}
			l.tasks.Wait()
			if got := asked > 0; got != test.asks {
				t.Errorf("asked %d times", asked)
			}
		})
	}
}

// Local got healthy while systemd was asked: something starts, and so nothing is taken.
func TestAnAnswerThatComesTooLate(t *testing.T) {
	for failures, ends := range map[int]bool{0: false, 1: true} {
		l := wire(Options{})
		l.nextStart.asking, l.nextStart.failures = true, failures
		l.Logger, l.RunDir = zap.NewNop(), t.TempDir()
		event := l.nextStart.hear([]string{"/usr/bin/kubelet"})
		if got := errors.Is(l.nextStart.superseded, ErrNextStart); got != ends || (event == core.StopAsked{}) != ends || l.nextStart.asking {
			t.Errorf("after %d failures: %#v, %v", failures, event, l.nextStart.superseded)
		}
	}
}
