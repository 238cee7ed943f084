//go:build linux

package supervisor

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
	"github.com/kubelet-supervisor/kubelet-supervisor/store"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/core"
	configsync "github.com/kubelet-supervisor/kubelet-supervisor/sync"
	"github.com/kubelet-supervisor/kubelet-supervisor/test/fakenode"
)

func TestEventOfAnUpdate(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "state")
	s, err := store.Open(folder)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	source := corev1.ConfigMapNodeConfigSource{Namespace: "kube-system", Name: "a", UID: "uid-a", ResourceVersion: "7", KubeletConfigKey: "kubelet"}
	payload := map[string]string{"kubelet": fakenode.Configuration("mode: ok"), "sibling": "\x00"}
	assigned := configsync.Update{Text: "kube-system/a/kubelet", NodeUID: "node", Source: &source, Payload: payload, Shadowed: true}
	failed := errors.New("no such folder")
	for name, test := range map[string]struct {
		update   configsync.Update
		unusable error
		want     any
		again    bool
	}{
		"an assignment": {assigned, nil, core.Assigned{Version: core.Version{Source: source, Content: kubeletconfig.Content(payload, "kubelet")},
			Text: "kube-system/a/kubelet", NodeUID: "node", Shadowed: true}, false},
		"an assignment that cannot be written": {assigned, failed, core.SyncFailed{Problem: core.Problem{Error: "failed to sync: internal failure, see Kubelet log for details",
			Words: "the configuration cannot be written to the state folder: no such folder"}, Text: "kube-system/a/kubelet"}, true},
		"none":                 {configsync.Update{Local: true, NodeUID: "node"}, nil, core.Cleared{NodeUID: "node"}, false},
		"local, said in words": {configsync.Update{Local: true, Text: "local", NodeUID: "node"}, nil, core.Cleared{Text: "local", NodeUID: "node"}, false},
		"a malformed one": {configsync.Update{Text: "a/b", Problem: &configsync.Problem{Malformed: true, Error: "failed to sync: x", Words: "y"}}, failed,
			core.SyncFailed{Problem: core.Problem{Malformed: true, Error: "failed to sync: x", Words: "y"}, Text: "a/b"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			l := wire(Options{})
			l.payloads.store, l.payloads.unusable = s, test.unusable
			if test.unusable != nil {
				l.payloads.store = nil
			}
			got, again := l.api.eventOf(test.update)
			if diff := cmp.Diff(test.want, got); diff != "" || again != test.again {
				t.Errorf("again %t, (-want +got):\n%s", again, diff)
			}
		})
	}
	if saved, err := s.LoadCheckpoint(source); err != nil || !cmp.Equal(saved, payload) {
		t.Errorf("the checkpoint is %q, %v", saved, err)
	}
}

// An assignment that cannot be written in time is a failed write. The ones after it are heard.
func TestAnAssignmentThatADiskHolds(t *testing.T) {
	s, err := store.Open(filepath.Join(t.TempDir(), "state"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	l := wire(Options{})
	l.payloads.store = s
	l.payloads.saves.most = 10 * time.Millisecond
	l.payloads.keeper.mu.Lock() // a write waits for it, as for a disk that hangs
	source := corev1.ConfigMapNodeConfigSource{Namespace: "kube-system", Name: "a", UID: "uid-a", ResourceVersion: "7", KubeletConfigKey: "kubelet"}
	update := configsync.Update{Text: "kube-system/a/kubelet", Source: &source, Payload: map[string]string{"kubelet": fakenode.Configuration("mode: ok")}}
	got, again := l.api.eventOf(update)
	if failed, is := got.(core.SyncFailed); !is || !again || !strings.Contains(failed.Problem.Words, errDiskHangs.Error()) {
		t.Errorf("again %t, %+v", again, got)
	}
	l.payloads.keeper.mu.Unlock()
	l.payloads.saves.most = fakenode.Patience
	if got, again := l.api.eventOf(update); again {
		t.Errorf("when the disk has gone on: %+v", got)
	}
}

func TestACheckpointThatWasJustWrittenIsNotCollected(t *testing.T) {
	s, err := store.Open(filepath.Join(t.TempDir(), "state"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	source := func(version string) corev1.ConfigMapNodeConfigSource {
		return corev1.ConfigMapNodeConfigSource{Namespace: "kube-system", Name: "a", UID: "uid", ResourceVersion: version, KubeletConfigKey: "kubelet"}
	}
	var k keeper
	for _, version := range []string{"1", "2", "3"} {
		if err := k.checkpoint(s, source(version), map[string]string{"kubelet": version}); err != nil {
			t.Fatal(err)
		}
	}
	if err := k.base(s, source("3"), kubeletconfig.Base{Digest: "sha256:none", Document: []byte("own")}); err != nil {
		t.Fatal(err)
	}
	k.collect(s, []core.Version{{Source: source("1")}})
	if _, err := s.LoadBase(source("3"), "sha256:none"); err != nil {
		t.Error(err)
	}
	for version, kept := range map[string]bool{"1": true, "2": false, "3": true} {
		if _, err := s.LoadCheckpoint(source(version)); (err == nil) != kept {
			t.Errorf("checkpoint %s: %v", version, err)
		}
	}
}

func TestReplace(t *testing.T) {
	box := make(chan int, 1)
	for i := range 4 {
		replace(box, i)
	}
	if got := <-box; got != 3 || len(box) != 0 {
		t.Errorf("the newest is %d", got)
	}
}

// What is received comes through the session, and goes to the loop.
func TestReceive(t *testing.T) {
	l := wire(Options{})
	l.payloads.unusable = errors.New("no state folder")
	updates := make(chan configsync.Update)
	ctx, stop := context.WithCancel(t.Context())
	over := make(chan struct{})
	recreated := 0
	go func() {
		defer close(over)
		l.api.receive(ctx, updates, func() { recreated++ })
	}()
	defer stop()
	for _, update := range []configsync.Update{
		{Local: true, NodeUID: "one", Retry: "please"},
		{Local: true, NodeUID: "one", Retry: "please", Text: "local"},
		{NodeGone: true},
		{Local: true, NodeUID: "two"},
		{Problem: &configsync.Problem{Words: "the Node cannot be read"}},
		{Local: true, NodeUID: "two"},
		{Local: true, NodeUID: "three"},
		{Local: true, NodeUID: "three", Consent: "0123456789ab"},
		{NodeGone: true},
	} {
		updates <- update
	}
	var got []any
	for range 12 {
		got = append(got, <-l.events)
	}
	want := []any{core.Retry{Value: "please"}, core.Consented{}, core.Cleared{NodeUID: "one"}, core.Cleared{Text: "local", NodeUID: "one"}, core.NodeGone{}, core.Cleared{NodeUID: "two"},
		core.SyncFailed{Problem: core.Problem{Words: "the Node cannot be read"}}, core.Cleared{NodeUID: "two"}, core.Cleared{NodeUID: "three"},
		core.Consented{Value: "0123456789ab"}, core.Cleared{NodeUID: "three"}, core.NodeGone{}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the loop heard (-want +got):\n%s", diff)
	}
	stop()
	<-over
	if recreated != 2 {
		t.Errorf("the Node was taken for another one %d times, and was so twice", recreated)
	}
}

// Edits without end are written once a second, the newest in the end; whatever else comes is not kept waiting.
func TestReceiveEdits(t *testing.T) {
	s, err := store.Open(filepath.Join(t.TempDir(), "state"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	for name, c := range map[string]struct {
		spread  time.Duration
		last    configsync.Update
		written int // of 50 edits in 4.5 s
	}{
		"then nothing":                  {time.Minute, configsync.Update{}, 6},
		"then another assignment":       {time.Minute, updateOf("b", 1), 6},
		"then a removal":                {time.Minute, configsync.Update{Local: true, NodeUID: "node"}, 5},
		"with --edit-spread=0, at once": {0, configsync.Update{}, 50},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := wire(Options{})
				l.payloads.store = s
				l.EditSpread = c.spread
				updates := make(chan configsync.Update)
				ctx, stop := context.WithCancel(t.Context())
				over := make(chan struct{})
				go func() {
					defer close(over)
					l.api.receive(ctx, updates, func() {})
				}()
				for version := range 50 {
					updates <- updateOf("a", version)
					time.Sleep(90 * time.Millisecond)
				}
				want := "49"
				if c.last.NodeUID != "" {
					updates <- c.last
					synctest.Wait()
				} else {
					time.Sleep(editPause)
				}
				stop()
				<-over
				close(l.events)
				written, newest := 0, ""
				var last core.Event
				for last = range l.events {
					if a, is := last.(core.Assigned); is {
						written, newest = written+1, a.Version.Source.ResourceVersion
					}
				}
				switch _, cleared := last.(core.Cleared); {
				case c.last.Local && !cleared, c.last.Source != nil && newest != "1", c.last.NodeUID == "" && newest != want:
					t.Errorf("the last that was heard is %+v", last)
				}
				if written != c.written {
					t.Errorf("%d were written, expected %d", written, c.written)
				}
			})
		})
	}
}

func updateOf(name string, version int) configsync.Update {
	return configsync.Update{Text: "kube-system/" + name + "/kubelet", NodeUID: "node", Payload: map[string]string{"kubelet": fmt.Sprint(version)},
		Source: &corev1.ConfigMapNodeConfigSource{Namespace: "kube-system", Name: name, UID: "uid", ResourceVersion: fmt.Sprint(version), KubeletConfigKey: "kubelet"}}
}

// Only an edit of the same assignment waits for a quiet moment: what says anything else, such as an approval, is heard at once.
func TestWhatWaitsForAQuietMoment(t *testing.T) {
	first := configsync.Update{Text: "kube-system/a/kubelet", NodeUID: "n", Retry: "1", Consent: "c", Source: &corev1.ConfigMapNodeConfigSource{ResourceVersion: "1"}}
	for name, row := range map[string]struct {
		change func(u *configsync.Update)
		waits  bool
	}{
		"an edit":            {func(u *configsync.Update) { u.Source = &corev1.ConfigMapNodeConfigSource{ResourceVersion: "2"} }, true},
		"the same":           {func(*configsync.Update) {}, true},
		"another assignment": {func(u *configsync.Update) { u.Text = "kube-system/b/kubelet" }, false},
		"another Node":       {func(u *configsync.Update) { u.NodeUID = "m" }, false},
		"a retry":            {func(u *configsync.Update) { u.Retry = "2" }, false},
		"an approval":        {func(u *configsync.Update) { u.Consent = "d" }, false},
		"none is assigned":   {func(u *configsync.Update) { u.Source = nil }, false},
	} {
		next := first
		row.change(&next)
		if wait := (received{first, time.Now()}).pause(next); wait > 0 != row.waits || wait > editPause {
			t.Errorf("%s: it waits %s", name, wait)
		}
		if wait := (received{configsync.Update{Text: first.Text, NodeUID: "n", Retry: "1", Consent: "c"}, time.Now()}).pause(next); wait > 0 {
			t.Errorf("%s, and none was assigned: it waits %s", name, wait)
		}
		if wait := (received{first, time.Now().Add(-editPause)}).pause(next); wait > 0 {
			t.Errorf("%s, long after: it waits %s", name, wait)
		}
	}
}
