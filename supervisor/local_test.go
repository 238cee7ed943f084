//go:build linux

package supervisor

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/core"
	"github.com/kubelet-supervisor/kubelet-supervisor/test/fakenode"
)

// watched is a loop of which only the watch of the local files is at work.
func watched(t *testing.T, n *node) *loop {
	t.Helper()
	l := wire(n.options)
	l.Logger = zap.NewNop()
	seen, err := l.lookLocal()
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	over := make(chan struct{})
	go func() {
		defer close(over)
		l.watches.watchLocal(ctx, seen)
	}()
	t.Cleanup(func() { stop(); <-over })
	return l
}

func TestWatchLocal(t *testing.T) {
	for name, test := range map[string]struct {
		change  func(t *testing.T, n *node)
		content bool // of the local file; else the kubelet, its flags or drop-ins
	}{
		"the file is replaced": {func(_ *testing.T, n *node) { n.write("etc/kubelet.yaml", fakenode.Configuration("mode: slow")) }, true},
		"the file is written over": {func(t *testing.T, n *node) {
			written(t, n.path("etc"), "kubelet.yaml", fakenode.Configuration("mode: slow"))
		}, true},
		"the file that a link leads to": {func(t *testing.T, n *node) {
			written(t, n.path("data"), "kubelet.yaml", fakenode.Configuration("mode: slow"))
		}, true},
		"the link leads elsewhere": {func(t *testing.T, n *node) {
			written(t, n.path("data2"), "kubelet.yaml", fakenode.Configuration("mode: slow"))
			link(t, n.path("data2/kubelet.yaml"), n.path("etc/link.yaml"))
		}, true},
		"a drop-in file":                 {func(_ *testing.T, n *node) { n.write("etc/kubelet.conf.d/10.conf", "{}") }, false},
		"a drop-in file in a new folder": {func(t *testing.T, n *node) { written(t, n.path("etc/kubelet.conf.d/deep"), "10.conf", "{}") }, false},
		"the kubelet":                    {func(_ *testing.T, n *node) { n.write("bin/kubelet", "#!/bin/sh\n# a newer one\n") }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNode(t)
			n.write("etc/kubelet.conf.d/00.conf", "{}")
			n.options.Arguments = append(n.options.Arguments, "--config-dir="+n.path("etc/kubelet.conf.d"))
			if strings.Contains(name, "link") {
				written(t, n.path("data"), "kubelet.yaml", fakenode.Configuration("mode: ok"))
				link(t, n.path("data/kubelet.yaml"), n.path("etc/link.yaml"))
				n.options.Arguments = append(n.options.Arguments, "--config="+n.path("etc/link.yaml"))
			}
			l := watched(t, n)
			before, err := l.lookLocal()
			if err != nil {
				t.Fatal(err)
			}
			test.change(t, n)
			select {
			case event := <-l.events:
				now := event.(core.LocalChanged)
				if changed := now.Local != before.Local; changed != test.content {
					t.Errorf("the content changed: %t", changed)
				}
				if changed := now.Kubelet != before.Kubelet; changed == test.content {
					t.Errorf("the kubelet changed: %t", changed)
				}
			case <-time.After(fakenode.Patience):
				t.Error("it was not seen")
			}
		})
	}
}

// In /var/lib/kubelet, where kubeadm keeps the file, the kubelet and others write too.
func TestARestlessFolder(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	l := watched(t, n)
	n.write("etc/kubelet.yaml", fakenode.Configuration("mode: slow"))
	ticker := time.NewTicker(localQuiet / 10)
	defer ticker.Stop()
	deadline := time.After(fakenode.Patience)
	for {
		select {
		case <-l.events:
			return
		case <-ticker.C:
			written(t, n.path("etc"), "other", time.Now().String())
		case <-deadline:
			t.Fatal("it was not seen")
		}
	}
}

func TestALocalChangeIsReported(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	r := n.run()
	r.awaitHealthy()
	n.write("etc/kubelet.yaml", fakenode.Configuration("mode: refuse, words: maxPods must not be -1"))
	record := r.await("the report", func(record Record) bool { return record.LocalPending })
	if !strings.Contains(record.Condition.Message, "LocalChangePending") {
		t.Errorf("condition %+v", record.Condition)
	}
	r.await("its verdict", func(record Record) bool { return strings.Contains(record.Condition.Message, "maxPods must not be -1") })
	n.write("etc/kubelet.yaml", fakenode.Configuration("mode: ok"))
	r.await("the change taken back", func(record Record) bool { return !record.LocalPending && record.Condition.Reason == "Local" })
	if got := n.events("start"); got != "start" {
		t.Errorf("the kubelets saw %q", got)
	}
}

func TestFollowLocalRestarts(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.options.FollowLocal = true
	r := n.run()
	first := r.awaitHealthy().Child.PID
	n.write("etc/kubelet.yaml", fakenode.Configuration("mode: refuse, words: maxPods must not be -1"))
	r.await("its verdict", func(record Record) bool { return strings.Contains(record.Condition.Message, "maxPods must not be -1") })
	n.write("etc/kubelet.yaml", fakenode.Configuration("mode: ok")+"maxPods: 10\n")
	record := r.awaitAnother(first)
	if len(record.Exits) != 1 || !record.Exits[0].Asked {
		t.Errorf("exits %+v", record.Exits)
	}
	r.await("rest", func(record Record) bool { return !record.LocalPending && record.Condition.Reason == "Local" })
}

// link makes a link, or lets it lead elsewhere in one step.
func link(t *testing.T, to, from string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(from), 0o700), os.Symlink(to, from+".new"), os.Rename(from+".new", from)); err != nil {
		t.Fatal(err)
	}
}
