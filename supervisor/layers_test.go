//go:build linux

package supervisor

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"

	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/core"
	configsync "github.com/kubelet-supervisor/kubelet-supervisor/sync"
)

const layersPayload = `{"kind":"KubeletConfigurationLayers","apiVersion":"kubelet-supervisor.io/v1alpha1","layers":[{"name":"a","patch":{"maxPods":60}}]}`

// layeredLoop has a state folder and a node's own file, with which a configuration of layers was kept.
func layeredLoop(t *testing.T) (l *loop, ownFile string, v core.Version) {
	t.Helper()
	stateDir := t.TempDir()
	if err := os.Chmod(stateDir, 0o700); err != nil {
		t.Fatal(err)
	}
	ownFile = filepath.Join(t.TempDir(), "kubelet.yaml")
	l = wire(Options{Logger: zap.NewNop(), Arguments: []string{"--config=" + ownFile, "--root-dir=" + t.TempDir()}})
	l.payloads.store = openStore(t, stateDir)
	l.payloads.read = l.payloads.store.LoadCheckpoint
	write(t, ownFile, own("podPidsLimit: 1"))
	v, err := l.payloads.keep(corev1.ConfigMapNodeConfigSource{Namespace: "kube-system", Name: "a", UID: "uid", ResourceVersion: "1", KubeletConfigKey: "kubelet"}, map[string]string{"kubelet": layersPayload})
	if err != nil || v.Base != kubeletconfig.LocalContent(l.Arguments) || v.Content == "" {
		t.Fatalf("%+v, %v", v, err)
	}
	return l, ownFile, v
}

func own(fields string) string {
	return "kind: KubeletConfiguration\napiVersion: kubelet.config.k8s.io/v1beta1\n" + fields + "\n"
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (l *loop) rendered(t *testing.T, v core.Version) string {
	t.Helper()
	composed, err := l.payloads.compose(v)
	if err != nil {
		t.Fatal(err)
	}
	text, err := l.payloads.renderComposed(v.Source, composed)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(strings.Fields(string(text)), "")
}

// A version is rendered over the file that it was made over, whatever has become of that since, and lastKnownGood is loaded so.
func TestVersionsKeepTheirBase(t *testing.T) {
	l, ownFile, v := layeredLoop(t)
	write(t, ownFile, own("podPidsLimit: 2"))
	merged := l.payloads.merge(core.Merge{Version: v, Local: kubeletconfig.LocalContent(l.Arguments)})
	if merged.Version == nil || merged.Version.Base == v.Base || merged.Version.Content == v.Content {
		t.Fatalf("%+v", merged)
	}
	if err := os.Remove(ownFile); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		core.Version
		want string
	}{{v, `"podPidsLimit":1`}, {*merged.Version, `"podPidsLimit":2`}} {
		if got := l.rendered(t, row.Version); !strings.Contains(got, row.want) || !strings.Contains(got, `"maxPods":60`) {
			t.Errorf("%s, want %s", got, row.want)
		}
	}
	write(t, ownFile, own("podPidsLimit: 3"))
	d := core.Durable{Assigned: merged.Version, LastKnownGood: &v}
	if err := l.payloads.saves.doThen(func() error { return l.payloads.save(d) }, func() { l.payloads.collect(d, versionsInUse(&l.state, d)) }); err != nil {
		t.Fatal(err)
	}
	var loaded core.Durable
	l.payloads.load(&loaded, func(err error) {
		if err != nil {
			t.Error(err)
		}
	})
	if *loaded.LastKnownGood != v {
		t.Errorf("lastKnownGood is %+v, was %+v", *loaded.LastKnownGood, v)
	}
	if a := loaded.Assigned; a.Base != kubeletconfig.LocalContent(l.Arguments) || a.Content == v.Content || a.Content == merged.Version.Content {
		t.Errorf("assigned is %+v", *a)
	}
}

// A supervisor that comes up after the file has changed, and hears of no API server, starts the layers over it; and a copy that is lost does not
// matter as long as the file is the same.
func TestLayersAreLoadedOverAFileThatIsNew(t *testing.T) {
	l, ownFile, v := layeredLoop(t)
	d := core.Durable{Assigned: &v}
	if err := l.payloads.saves.doThen(func() error { return l.payloads.save(d) }, func() { l.payloads.collect(d, versionsInUse(&l.state, d)) }); err != nil {
		t.Fatal(err)
	}
	write(t, ownFile, own("podPidsLimit: 2"))
	var loaded core.Durable
	l.payloads.load(&loaded, func(err error) {
		if err != nil {
			t.Error(err)
		}
	})
	lost := *loaded.Assigned
	write(t, ownFile, own("podPidsLimit: 3"))
	if got := l.rendered(t, *loaded.Assigned); !strings.Contains(got, `"podPidsLimit":2`) {
		t.Errorf("it is started with %s", got)
	}
	lost.Base = kubeletconfig.LocalContent(l.Arguments) // of which there is no copy
	if got := l.rendered(t, lost); !strings.Contains(got, `"podPidsLimit":3`) {
		t.Errorf("without a copy it is started with %s", got)
	}
	write(t, ownFile, own("podPidsLimit: 4"))
	if _, err := l.payloads.compose(lost); err == nil || !strings.Contains(err.Error(), "there is none") {
		t.Errorf("without a copy of a file that has changed: %v", err)
	}
}

// Without a file to lie over the fault is the node's, told and kept apart from that of a disk.
func TestLayersWithoutABase(t *testing.T) {
	l, ownFile, v := layeredLoop(t)
	d := core.Durable{Assigned: &v, LastKnownGood: &v}
	if err := l.payloads.saves.doThen(func() error { return l.payloads.save(d) }, func() { l.payloads.collect(d, versionsInUse(&l.state, d)) }); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(ownFile); err != nil {
		t.Fatal(err)
	}
	var fault *kubeletconfig.BaseError
	if _, err := l.payloads.keep(v.Source, map[string]string{"kubelet": layersPayload}); !errors.As(err, &fault) {
		t.Errorf("%v", err)
	}
	event, again := l.api.eventOf(configsync.Update{Text: "kube-system/a/kubelet", NodeUID: "n", Source: &v.Source, Payload: map[string]string{"kubelet": layersPayload}})
	if failed, is := event.(core.SyncFailed); !is || !again || !failed.Problem.OfNode || !strings.HasPrefix(failed.Problem.Words, "the layers cannot be laid over the local configuration: ") {
		t.Errorf("%+v, again %t", event, again)
	}
	if merged := l.payloads.merge(core.Merge{Version: v}); merged.Version != nil || !strings.Contains(merged.Fault, "cannot be read") {
		t.Errorf("%+v", merged)
	}
	var loaded core.Durable
	var troubles []string
	l.payloads.load(&loaded, func(err error) {
		if err != nil {
			troubles = append(troubles, err.Error())
		}
	})
	if a := loaded.Assigned; a.Content != "" || a.Base != unusableBase || *loaded.LastKnownGood != v || len(troubles) != 0 {
		t.Errorf("assigned %+v, lastKnownGood %+v, %q", *a, *loaded.LastKnownGood, troubles)
	}
}
