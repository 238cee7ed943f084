//go:build linux

package supervisor

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
	"github.com/kubelet-supervisor/kubelet-supervisor/store"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/core"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/kubelet"
	configsync "github.com/kubelet-supervisor/kubelet-supervisor/sync"
)

// refusingTransport is an API server that is in trouble, and counts what it is asked.
type refusingTransport struct{ asked atomic.Int64 }

func (r *refusingTransport) RoundTrip(*http.Request) (*http.Response, error) {
	r.asked.Add(1)
	return nil, errors.New("connection refused")
}

// A retry asks the API server at once, although the next try of a download that failed is minutes away.
func TestARetryDownloadsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := &refusingTransport{}
		client, err := configsync.NewClient(&rest.Config{Host: "http://api.test", Transport: api})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		follower := configsync.NewFollower(configsync.Options{Client: client, NodeName: "n1"})
		followed, received := make(chan struct{}), make(chan struct{})
		l := wire(Options{})
		l.api.follower = follower
		updates := make(chan configsync.Update)
		go func() {
			defer close(followed)
			_ = follower.Run(ctx, func(configsync.Update) {})
		}()
		go func() {
			defer close(received)
			l.api.receive(ctx, updates, func() {})
		}()
		time.Sleep(time.Hour) // of the bubble: the pause between tries is at its longest
		before := api.asked.Load()
		updates <- configsync.Update{Local: true, NodeUID: "one", Retry: "please"}
		synctest.Wait()
		if asked := api.asked.Load() - before; asked == 0 {
			t.Error("nothing was asked")
		}
		before = api.asked.Load()
		updates <- configsync.Update{Local: true, NodeUID: "one", Retry: "please", Text: "local"}
		synctest.Wait()
		if asked := api.asked.Load() - before; asked > 0 {
			t.Errorf("for a retry that was heard, %d requests", asked)
		}
		stop()
		<-followed
		<-received
	})
}

// With --edit-spread=0 what an edit moves is published at once, as upstream did; else once a minute.
func TestHowOftenMovesArePublished(t *testing.T) {
	for spread, want := range map[time.Duration]time.Duration{0: 0, time.Second: movesEvery, time.Minute: movesEvery} {
		a := wire(Options{}).api
		a.EditSpread = spread
		options := a.publishing(nil, "n1", configsync.NewFollower(configsync.Options{}))
		if options.MovesEvery != want {
			t.Errorf("with --edit-spread=%s moves are published every %s, want %s", spread, options.MovesEvery, want)
		}
	}
}

// The order on the disk: what is fallen back to comes first. A supervisor that is killed in the middle of a reset must not fall back to what a
// person has removed.
func TestLastKnownGoodIsWrittenFirst(t *testing.T) {
	version := func(name, resourceVersion string) *core.Version {
		return &core.Version{Source: corev1.ConfigMapNodeConfigSource{Namespace: "kube-system", Name: name, UID: "uid", ResourceVersion: resourceVersion, KubeletConfigKey: "kubelet"}}
	}
	removed, unwritable := version("removed", "1"), version("unwritable", "")
	for name, row := range map[string]struct {
		save                       core.Durable
		wantAssigned, wantLastGood string
	}{
		"a reset whose second write fails": {core.Durable{Assigned: unwritable}, "removed", ""},
		"one whose first write fails":      {core.Durable{LastKnownGood: unwritable}, "removed", "removed"},
	} {
		l := wire(Options{})
		l.payloads.store = openStore(t, t.TempDir())
		if err := l.payloads.save(core.Durable{Assigned: removed, LastKnownGood: removed}); err != nil {
			t.Fatal(err)
		}
		if err := l.payloads.save(row.save); err == nil {
			t.Errorf("%s: it does not fail", name)
		}
		for pointer, want := range map[store.Pointer]string{store.Assigned: row.wantAssigned, store.LastKnownGood: row.wantLastGood} {
			now, err := l.payloads.store.LoadSource(pointer)
			if got := nameOf(now); err != nil || got != want {
				t.Errorf("%s: %s is %q, %v, want %q", name, pointer, got, err, want)
			}
		}
	}
}

func nameOf(source *corev1.ConfigMapNodeConfigSource) string {
	if source == nil {
		return ""
	}
	return source.Name
}

// At the first sign of the host's shutdown, and at an asked stop, a kubelet that waits or is on its way to the lock is ended (rule 13).
func TestWhatWaitsIsEndedAtTheFirstSign(t *testing.T) {
	for name, row := range map[string]struct {
		event core.Event
		want  bool
	}{
		"the host shuts down":      {core.HostStopping{}, true},
		"that was called off":      {core.HostStopping{CalledOff: true}, false},
		"a stop was asked for":     {core.StopAsked{}, true},
		"nothing of the kind":      {core.Ticked{}, false},
		"the API server was asked": {core.ClusterSeen{}, false},
	} {
		n := newNode(t)
		n.options.Logger = zap.NewNop()
		l, err := newLoop(n.options)
		if err != nil {
			t.Fatal(err)
		}
		l.state.Child.Alive = true // and nothing is to be done about it
		l.state.Child.Healthy = true
		ended := false
		l.runner.cancelPark = func() { ended = true }
		ctx, stop := context.WithCancel(t.Context())
		l.state.Doing = core.Foresee{} // so that nothing else is begun
		l.handle(lifetimes{asked: ctx, over: ctx}, row.event)
		if ended != row.want {
			t.Errorf("%s: what waits was ended: %t", name, ended)
		}
		stop()
		l.close()
	}
}

// What waits is killed at that sign, but for one that is being let through: it is the kubelet now.
func TestWhatIsLetThroughIsNotKilled(t *testing.T) {
	for name, row := range map[string]struct {
		doing core.Action
		want  string
	}{
		"it waits":                {nil, "killed by SIGKILL"},
		"a look is under way":     {core.Foresee{}, "killed by SIGKILL"},
		"it is being let through": {core.Start{}, "exit code 0"},
	} {
		n := newNode(t)
		n.options.Logger = zap.NewNop()
		l, err := newLoop(n.options)
		if err != nil {
			t.Fatal(err)
		}
		child, err := l.runner.kubelets.Start(kubelet.Spec{})
		if err != nil {
			t.Fatal(err)
		}
		child.FallBackTo("")
		exits, healthy := make(chan kubelet.Exited, 1), make(chan struct{})
		go child.Attend(t.Context(), func(e kubelet.Event) {
			switch e := e.(type) {
			case kubelet.Healthy:
				close(healthy)
			case kubelet.Exited:
				exits <- e
			}
		})
		<-healthy // it hears SIGTERM
		l.runner.parked, l.state.Doing = child, row.doing
		l.runner.killParked(&l.state)
		child.Stop(time.Minute)
		if exit := <-exits; !strings.Contains(exit.Words, row.want) {
			t.Errorf("%s: %s", name, exit.Words)
		}
		l.close()
	}
}

// No kubelet is started with files that changed since they were judged: the change is told first, and the start has to be decided anew.
func TestNoStartWithFilesThatChanged(t *testing.T) {
	n := newNode(t)
	n.options.Logger = zap.NewNop()
	l, err := newLoop(n.options)
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	l.runner.starts = make(chan startResult, 1)
	known, err := l.lookLocal()
	if err != nil {
		t.Fatal(err)
	}
	l.state.OnDisk, l.state.Local = known.Kubelet, known.Local
	n.write("etc/kubelet.yaml", "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nmaxPods: 7\n")
	l.runner.start(t.Context(), &l.state, core.Start{Local: known.Local, Kubelet: known.Kubelet})
	var heard []string
	for range 2 {
		select {
		case event := <-l.events:
			switch e := event.(type) {
			case core.LocalChanged:
				heard = append(heard, fmt.Sprintf("changed %t", e != known))
			case core.Started:
				heard = append(heard, fmt.Sprintf("started %v", e.Err))
			}
		case b := <-l.runner.starts:
			if b.child != nil {
				b.child.Kill()
				b.child.Attend(context.Background(), func(kubelet.Event) {})
			}
			t.Fatalf("it was started: %v", b.err)
		}
	}
	if diff := cmp.Diff([]string{"changed true", "started " + errLocalChanged.Error()}, heard); diff != "" {
		t.Error(diff)
	}
	if got := n.events(); got != "" {
		t.Errorf("the kubelet: %s", got)
	}
}

// What runs is not asked of another kubelet than it was started with: that one may read the same file in another way, and has other defaults.
func TestAnotherKubeletIsNotAskedWhatRuns(t *testing.T) {
	n := newNode(t)
	n.options.Logger = zap.NewNop()
	l, err := newLoop(n.options)
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	on, err := l.lookLocal()
	if err != nil {
		t.Fatal(err)
	}
	ask := func(runs kubeletconfig.Identity) string {
		l.prover.effectives = effectives{}
		do := core.Foresee{Change: core.Change{Runs: on.Local, RunsKubelet: runs, Kubelet: on.Kubelet}, Local: on.Local, MayAsk: true}
		l.prover.runningEffective(t.Context(), do)
		return n.events("preflight")
	}
	if got := ask(kubeletconfig.Identity{Binary: "another"}); got != "" {
		t.Errorf("it was asked: %s", got)
	}
	if got := ask(on.Kubelet); got != "preflight" {
		t.Errorf("the kubelet that it was started with: %q", got)
	}
}

// A forecast is made of what the kubelet told. Our own reading of files and flags has none of its defaults, and is not taken for it.
func TestNoForecastOfOurOwnReading(t *testing.T) {
	read := kubeletconfig.ReadEffective([]string{"--max-pods=7"}, "")
	if !read.Known() || strings.Contains(string(read.JSON()), "evictionHard") {
		t.Fatalf("it is %s", read.JSON())
	}
	if c := configurationOf(read); c != nil {
		t.Errorf("a forecast would be made of %+v", c)
	}
	if c := configurationOf(toldOf(t, map[string]any{"maxPods": 7})); c == nil || c.MaxPods == nil || *c.MaxPods != 7 {
		t.Errorf("told is %+v", c)
	}
	if c := configurationOf(kubeletconfig.Effective{}); c != nil {
		t.Errorf("of nothing comes %+v", c)
	}
}
