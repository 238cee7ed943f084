//go:build linux

package host

import (
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/kubelet-supervisor/kubelet-supervisor/forecast"
)

// aSandbox is a PodSandbox as a runtime sends it, of a pod of a kubelet.
func aSandbox(id, name, state string, annotations map[string]string) string {
	text := message(1, id) + message(2, message(1, name)+"\x20\x01") + state + "\x20\x80\x01"
	labels := map[string]string{nameLabel: name, namespaceLabel: "default", uidLabel: "uid-" + name, "app": "a"}
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		text += message(5, message(1, key)+message(2, labels[key]))
	}
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		text += message(6, message(1, key)+message(2, annotations[key]))
	}
	return text
}

func TestSandboxes(t *testing.T) {
	fromAPI := map[string]string{"kubernetes.io/config.source": "api", "kubernetes.io/config.seen": "x", "mine": "1"}
	fromFile := map[string]string{"kubernetes.io/config.source": "file", "kubernetes.io/config.hash": "uid-s", "mine": "1"}
	r := aRuntime(t, map[string]string{listPodSandbox: message(1, aSandbox("1", "a", "", fromAPI)) + message(1, aSandbox("2", "s", "", fromFile)) +
		message(1, aSandbox("3", "ended", "\x18\x01", fromAPI)) + message(1, message(1, "of somebody else")) + message(2, "a field of a later version")}, nil)
	got, err := r.sandboxes(t.Context())
	want := []forecast.Sandbox{{ID: "1", Namespace: "default", Name: "a", UID: "uid-a", Source: "api"},
		{ID: "2", Namespace: "default", Name: "s", UID: "uid-s", Source: "file", Annotations: fromFile,
			Labels: map[string]string{nameLabel: "s", namespaceLabel: "default", uidLabel: "uid-s", "app": "a"}}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}

	r = aRuntime(t, map[string]string{listPodSandbox: ""}, nil)
	if got, err := r.sandboxes(t.Context()); got == nil || len(got) > 0 || err != nil {
		t.Errorf("without sandboxes: %v, %v", got, err)
	}
	for status, never := range map[string]bool{unimplemented: true, "14": false, "4": false} {
		r := aRuntime(t, nil, map[string]string{listPodSandbox: status})
		if got, err := r.sandboxes(t.Context()); got != nil || err == nil || errors.Is(err, ErrNoCRI) != never {
			t.Errorf("status %s: %v, %v", status, got, err)
		}
	}
	if got, err := Sandboxes(t.Context(), "unix://"+t.TempDir()+"/none.sock"); got != nil || err == nil || errors.Is(err, ErrNoCRI) {
		t.Errorf("a runtime that is not there: %v, %v", got, err)
	}
}

// A list that cannot be read to its end is none.
func TestBrokenSandboxes(t *testing.T) {
	whole := message(1, aSandbox("1", "a", "", map[string]string{"k": "v"}))
	for _, broken := range []string{whole[:len(whole)-1], "\x80", message(1, "\x0a\x05a"), message(1, message(5, "\x0a\x05a")), strings.Repeat(whole, mostSandboxes+1)} {
		if got, err := decodeSandboxes([]byte(broken)); err == nil || got != nil {
			t.Errorf("%.60q is read as %d sandboxes", broken, len(got))
		}
	}
}

func FuzzSandboxes(f *testing.F) {
	f.Add([]byte(message(1, aSandbox("1", "s", "", map[string]string{"kubernetes.io/config.source": "file"}))))
	f.Fuzz(func(t *testing.T, answer []byte) {
		list, err := decodeSandboxes(answer)
		if err != nil && list != nil || err == nil && list == nil {
			t.Errorf("%v, %v", list, err)
		}
		for _, s := range list {
			if s.UID == "" || !s.Static() && s.Labels != nil {
				t.Errorf("%+v", s)
			}
		}
	})
}
