//go:build machine

package machine

import (
	"archive/tar"
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubelet-supervisor/kubelet-supervisor/store"
)

// What is looked for after a power cut is found where it is.
func TestCheck(t *testing.T) {
	step := func(name string, good bool) assigned {
		return assigned{good: good, payload: "of " + name, source: &corev1.ConfigMapNodeConfigSource{
			Namespace: namespace, Name: name, UID: types.UID(name), ResourceVersion: "1", KubeletConfigKey: "kubelet"}}
	}
	steps := []assigned{{good: true}, step("old", true), step("bad", false), step("new", true)}
	const whole = ""
	for name, test := range map[string]struct {
		told                    int
		assigned, lastKnownGood int // indices of steps
		harm                    func(folder string) error
		words                   string
	}{
		"as it should be":                       {told: 1, assigned: 3, lastKnownGood: 1, words: whole},
		"what was assigned last did not arrive": {told: 1, assigned: 1, lastKnownGood: 0, words: whole},
		"older than what was told":              {told: 3, assigned: 1, lastKnownGood: 1, words: "has already told of step 3"},
		"local, after more was told":            {told: 1, assigned: 0, lastKnownGood: 0, words: "has already told of step 1"},
		"a bad one is last known good":          {told: 1, assigned: 3, lastKnownGood: 2, words: "runs nowhere"},
		"a pointer that is cut short": {told: 1, assigned: 3, lastKnownGood: 1, words: "assigned: ",
			harm: func(folder string) error { return os.Truncate(filepath.Join(folder, "meta/assigned"), 30) }},
		"a pointer that is empty reads as local": {told: 1, assigned: 3, lastKnownGood: 1, words: "has already told of step 1",
			harm: func(folder string) error { return os.Truncate(filepath.Join(folder, "meta/assigned"), 0) }},
		"a payload that is cut short": {told: 1, assigned: 3, lastKnownGood: 1, words: "the checkpoint of assigned",
			harm: func(folder string) error { return os.Truncate(filepath.Join(folder, "checkpoints/new/1/kubelet"), 1) }},
		"a checkpoint that is not whole": {told: 1, assigned: 3, lastKnownGood: 1, words: "the checkpoint of last-known-good",
			harm: func(folder string) error { return os.Remove(filepath.Join(folder, "checkpoints/old/1.sha256")) }},
		"something that was set aside": {told: 1, assigned: 3, lastKnownGood: 1, words: "was set aside",
			harm: func(folder string) error {
				return os.WriteFile(filepath.Join(folder, "meta/trial.corrupt-1"), nil, 0o600)
			}},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			s, err := store.Open(filepath.Join(folder, "state"))
			if err != nil {
				t.Fatal(err)
			}
			for _, step := range steps[1:] {
				if err := s.SaveCheckpoint(*step.source, map[string]string{"kubelet": step.payload}); err != nil {
					t.Fatal(err)
				}
			}
			for pointer, i := range map[store.Pointer]int{store.Assigned: test.assigned, store.LastKnownGood: test.lastKnownGood} {
				if err := s.SaveSource(pointer, steps[i].source); err != nil {
					t.Fatal(err)
				}
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if test.harm != nil {
				if err := test.harm(filepath.Join(folder, "state")); err != nil {
					t.Fatal(err)
				}
			}
			h := &history{steps: steps, told: test.told}
			var archive bytes.Buffer
			writer := tar.NewWriter(&archive)
			if err := writer.AddFS(os.DirFS(filepath.Join(folder, "state"))); err != nil {
				t.Fatal(err)
			}
			if err := writer.Close(); err != nil {
				t.Fatal(err)
			}
			p, err := h.check(archive.Bytes())
			switch {
			case test.words == whole && err != nil:
				t.Error(err)
			case test.words != whole && (err == nil || !strings.Contains(err.Error(), test.words)):
				t.Errorf("found %v, want %q", err, test.words)
			case err == nil && (!p.may(nil) || !p.may(steps[test.assigned].source) || p.may(steps[2].source)):
				t.Errorf("it may run what it may not, or not what it may: %+v", p)
			}
		})
	}
}
