//go:build linux

package supervisor

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"

	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/core"
	"github.com/kubelet-supervisor/kubelet-supervisor/test/fakenode"
)

// Pre-flights of several configurations may be under way at once: one that was given up, and one of a forecast, which asks what runs. Each
// verdict is about its own configuration. With one file for all a refused configuration was taken for the one that ran, and became active.
func TestPreflightsAtTheSameTime(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	loops := make(chan *loop, 1)
	r := n.runChanged(func(l *loop) { loops <- l })
	l := <-loops
	r.awaitHealthy()
	now, err := l.lookLocal()
	if err != nil {
		t.Fatal(err)
	}
	version := func(name, mode string) *core.Version {
		files := map[string]string{"kubelet": fakenode.Configuration("mode: " + mode)}
		source := corev1.ConfigMapNodeConfigSource{Namespace: "kube-system", Name: name, UID: "uid-x", ResourceVersion: name, KubeletConfigKey: "kubelet"}
		if err := l.payloads.keeper.checkpoint(l.payloads.store, source, files); err != nil {
			t.Fatal(err)
		}
		return &core.Version{Source: source, Content: kubeletconfig.Content(files, "kubelet")}
	}
	good, bad := version("good", "ok"), version("bad", "refuse")
	var group sync.WaitGroup
	for range 8 {
		for _, c := range []struct {
			prove core.Prove
			want  kubeletconfig.Outcome
		}{
			{core.Prove{Version: good, Alone: true, Kubelet: now.Kubelet, Local: now.Local}, kubeletconfig.Accepted},
			{core.Prove{Version: bad, Control: good, Kubelet: now.Kubelet, Local: now.Local}, kubeletconfig.Refused},
		} {
			group.Go(func() {
				if proved := l.prover.prove(t.Context(), c.prove); proved.Outcome != c.want {
					t.Errorf("%s: %v (%s), want %v", c.prove.Version.Source.Name, proved.Outcome, proved.Words, c.want)
				}
			})
		}
	}
	group.Wait()
	if err := r.end(); err != nil {
		t.Error(err)
	}
	if left, _ := os.ReadDir(filepath.Join(n.options.RunDir, preflightFolder)); len(left) > 0 {
		t.Errorf("%v are left", left)
	}
}

// What is not ours alone is not cleared: a link there leads to somebody else's files.
func TestNothingIsClearedBehindALink(t *testing.T) {
	n := newNode(t)
	n.write("elsewhere/precious", "")
	n.write("run/other", "")
	if err := os.Symlink(n.path("elsewhere"), n.path("run/preflight")); err != nil {
		t.Fatal(err)
	}
	n.options.Logger, n.options.Handover = zap.NewNop(), &Handover{}
	l, err := newLoop(n.options)
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	if l.payloads.store == nil {
		t.Error("the state folder is not ours")
	}
	if _, err := os.Stat(n.path("elsewhere/precious")); err != nil {
		t.Error(err)
	}
}

// What a killed supervisor has left of its pre-flights is removed at the next start.
func TestLeftoversOfPreflights(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.write("run/preflight/candidate-7.yaml", "staticPodURL: https://me:s3cret@host\n")
	n.write("run/preflight/preflight-1/kubelet.crt", "")
	for _, folder := range []string{"run", "run/preflight"} {
		if err := os.Chmod(n.path(folder), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	r := n.run()
	r.awaitHealthy()
	if err := r.end(); err != nil {
		t.Error(err)
	}
	left, err := os.ReadDir(filepath.Join(n.options.RunDir, preflightFolder))
	for _, entry := range left {
		if strings.HasSuffix(entry.Name(), "-7.yaml") || strings.HasPrefix(entry.Name(), "preflight-") {
			t.Errorf("%s is left", entry.Name())
		}
	}
	if err != nil {
		t.Error(err)
	}
}

// A refusal is not kept where the files that it can be about changed while the kubelet was asked.
func TestARefusalOfFilesThatChange(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	dropIns := n.path("etc/kubelet.conf.d")
	n.write("bin/kubelet", fmt.Sprintf("#!/bin/sh\nmkdir -p %s && echo '{}' >%[1]s/10.conf\nexec %s \"$@\"\n", dropIns, fakeKubelet))
	n.options.Arguments = append(n.options.Arguments, "--config-dir="+dropIns)
	n.options.Logger = zap.NewNop()
	l, err := newLoop(n.options)
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	files := map[string]string{"kubelet": fakenode.Configuration("mode: refuse, words: maxPods -1")}
	source := corev1.ConfigMapNodeConfigSource{Namespace: "kube-system", Name: "bad", UID: "uid-x", ResourceVersion: "1", KubeletConfigKey: "kubelet"}
	if err := l.payloads.keeper.checkpoint(l.payloads.store, source, files); err != nil {
		t.Fatal(err)
	}
	for _, want := range []kubeletconfig.Outcome{kubeletconfig.Unknown, kubeletconfig.Refused} { // the second time nothing changes any more
		now, err := l.lookLocal()
		if err != nil {
			t.Fatal(err)
		}
		proved := l.prover.prove(t.Context(), core.Prove{Version: &core.Version{Source: source, Content: kubeletconfig.Content(files, "kubelet")}, Kubelet: now.Kubelet, Local: now.Local})
		if proved.Outcome != want || !strings.Contains(proved.Words, "maxPods -1") {
			t.Errorf("%v: %s, want %v", proved.Outcome, proved.Words, want)
		}
	}
}
