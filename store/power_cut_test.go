//go:build linux

package store

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// A seen is what a supervisor finds when it starts.
type seen struct {
	Assigned, LastKnownGood *corev1.ConfigMapNodeConfigSource
	Trial                   trial
	Checkpoints             map[string]map[string]string // by resourceVersion; those that exist
}

// look fails for anything that had to be set aside: no power cut may corrupt.
func look(s *Store) (seen, error) {
	found := seen{Checkpoints: map[string]map[string]string{}}
	var err error
	if found.Assigned, err = s.LoadSource(Assigned); err != nil {
		return found, err
	}
	if found.LastKnownGood, err = s.LoadSource(LastKnownGood); err != nil {
		return found, err
	}
	if err = s.LoadDocument("trial", "Trial", &found.Trial); err != nil {
		return found, err
	}
	for _, version := range []string{"1", "2", "3"} {
		payload, err := s.LoadCheckpoint(*source(version))
		switch {
		case err == nil:
			found.Checkpoints[version] = payload
		case err.Error() != "no checkpoint for source /api/v1/namespaces/namespace/configmaps/name":
			return found, err
		}
	}
	return found, nil
}

var changes = []struct {
	name string
	do   func(s *Store) error
	// loses is the checkpoint that may be gone when the change was cut off, though there was one before and would be one after.
	loses string
}{
	{"assign for the first time", func(s *Store) error { return s.SaveSource(LastKnownGood, source("2")) }, ""},
	{"assign another", func(s *Store) error { return s.SaveSource(Assigned, source("2")) }, ""},
	{"go back to local", func(s *Store) error { return s.SaveSource(Assigned, nil) }, ""},
	{"save a document", func(s *Store) error { return s.SaveDocument("trial", "Trial", trial{Of: "new", Failures: 2}) }, ""},
	{"save a checkpoint", func(s *Store) error {
		return s.SaveCheckpoint(*source("3"), map[string]string{"kubelet": "3", "ca.crt": "three"})
	}, ""},
	{"save a checkpoint of a new uid", func(s *Store) error {
		return s.SaveCheckpoint(*sourceOf("other", "1"), map[string]string{"kubelet": "1"})
	}, ""},
	{"save the same checkpoint", func(s *Store) error { return s.SaveCheckpoint(*source("1"), payloadOf("1")) }, ""},
	{"save other contents", func(s *Store) error {
		return s.SaveCheckpoint(*source("1"), map[string]string{"kubelet": "other"})
	}, "1"},
	{"change the assignment, as a supervisor does", func(s *Store) error {
		for _, step := range []func() error{
			func() error {
				return s.SaveCheckpoint(*source("3"), map[string]string{"kubelet": "3", "ca.crt": "three"})
			},
			func() error { return s.SaveSource(Assigned, source("3")) },
			func() error { return s.SaveDocument("trial", "Trial", trial{Of: "3"}) },
			func() error { return s.Collect([]corev1.ConfigMapNodeConfigSource{*source("3"), *source("2")}) },
			func() error { return s.SaveSource(LastKnownGood, source("3")) },
			func() error { return s.Collect([]corev1.ConfigMapNodeConfigSource{*source("3")}) },
		} {
			if err := step(); err != nil {
				return err
			}
		}
		return nil
	}, ""},
	{"collect", func(s *Store) error { return s.Collect([]corev1.ConfigMapNodeConfigSource{*source("1")}) }, ""},
	{"go back to local, and collect all", func(s *Store) error {
		return errors.Join(s.SaveSource(LastKnownGood, nil), s.SaveSource(Assigned, nil), s.Collect(nil))
	}, ""},
}

// After each power cut, in every state that the disk can then be in, the store opens, nothing has to be set aside, each part is that of
// before or after the change, and what the pointers name is whole.
func TestPowerCutAtEveryStep(t *testing.T) {
	for _, change := range changes {
		t.Run(change.name, func(t *testing.T) {
			before, after := ends(t, change.do)
			steps, reached := 0, map[string]bool{}
			for failed := true; failed; steps++ {
				for choice := (&choices{}); ; {
					disk := populated(t)
					disk.cut, disk.left = true, steps
					err := change.do(disk.store())
					if failed = disk.left < 0; failed == (err == nil) {
						t.Fatalf("step %d: fails %v, but the error is %v", steps, failed, err)
					}
					disk.restore(choice.pick)
					at := fmt.Sprintf("step %d, choices %v", steps, choice.answers)
					state := disk.String()
					if !reached[state] {
						reached[state] = true
						openForReal(t, at, disk)
					}
					allowed := []seen{after}
					if failed {
						allowed = []seen{before, after, lost(before, change.loses)}
					}
					compare(t, at, disk, allowed...)
					if change.loses == "" {
						wantWhole(t, at, disk)
					}
					for _, kept := range []int{0, 1} {
						again := disk.copy()
						if err := change.do(again.store()); err != nil {
							t.Fatalf("%s: another try: %v", at, err)
						}
						again.restore(func(int) int { return kept })
						compare(t, at+", another try and a power cut", again, after)
					}
					if t.Failed() {
						return
					}
					if !choice.next() {
						break
					}
				}
			}
			t.Logf("%d steps, %d states", steps, len(reached))
		})
	}
}

// A failure of one step, such as a full disk, leaves a store that works. Another try makes durable what the first one has only written.
func TestFailureAtEveryStep(t *testing.T) {
	for _, change := range changes {
		for cut, choose := range map[string]func(int) int{
			"the newest is kept":      func(int) int { return 0 },
			"only the synced is kept": func(int) int { return 1 },
		} {
			t.Run(change.name+", "+cut, func(t *testing.T) {
				before, after := ends(t, change.do)
				for step, failed := 0, true; failed; step++ {
					disk := populated(t)
					disk.left = step
					err := change.do(disk.store())
					if failed = disk.left < 0; failed == (err == nil) {
						t.Fatalf("step %d: fails %v, but the error is %v", step, failed, err)
					}
					at := fmt.Sprintf("step %d", step)
					compare(t, at, disk, before, after, lost(before, change.loses))
					disk.left = -1
					if err := change.do(disk.store()); err != nil {
						t.Fatalf("%s: another try: %v", at, err)
					}
					compare(t, at+", another try", disk, after)
					disk.restore(choose)
					compare(t, at+", another try and a power cut", disk, after)
				}
			})
		}
	}
}

// ends gives what is seen before a change and after it.
func ends(t *testing.T, change func(s *Store) error) (before, after seen) {
	t.Helper()
	whole := populated(t)
	before, err := look(whole.store())
	must(t, err)
	must(t, change(whole.store()))
	after, err = look(whole.store())
	must(t, err)
	return before, after
}

// wantWhole wants what the pointers name to be there.
func wantWhole(t *testing.T, at string, disk *memoryDisk) {
	t.Helper()
	for _, pointer := range []Pointer{Assigned, LastKnownGood} {
		source, err := disk.store().LoadSource(pointer)
		if err == nil && source != nil {
			_, err = disk.store().LoadCheckpoint(*source)
		}
		if err != nil {
			t.Errorf("%s: %s names what is not whole: %v", at, pointer, err)
		}
	}
}

// openForReal puts the state onto a real file system, and wants the same to be seen there.
func openForReal(t *testing.T, at string, disk *memoryDisk) {
	t.Helper()
	root := t.TempDir()
	disk.root.walk(root, func(path string, e *entry) {
		switch {
		case path == root:
		case e.names != nil:
			must(t, os.Mkdir(path, 0o700))
		default:
			must(t, os.WriteFile(path, e.content, 0o600))
		}
	})
	real, err := Open(filepath.Join(root, "state"))
	if err != nil {
		t.Fatalf("%s: %v", at, err)
	}
	defer real.Close()
	inMemory, err := look(disk.store())
	if err != nil {
		t.Fatalf("%s: %v", at, err)
	}
	onDisk, err := look(real)
	if diff := cmp.Diff(inMemory, onDisk); diff != "" || err != nil {
		t.Errorf("%s: %v (-model +real):\n%s", at, err, diff)
	}
}

// compare wants each pointer, document and checkpoint to be that of one of the states.
func compare(t *testing.T, at string, disk *memoryDisk, states ...seen) {
	t.Helper()
	found, err := look(disk.store())
	if err != nil {
		t.Errorf("%s: %v", at, err)
		return
	}
	among := func(what string, part func(seen) any) {
		for _, state := range states {
			if cmp.Equal(part(state), part(found)) {
				return
			}
		}
		t.Errorf("%s: %s is %+v, in none of the states allowed", at, what, part(found))
	}
	among("assigned", func(s seen) any { return s.Assigned })
	among("lastKnownGood", func(s seen) any { return s.LastKnownGood })
	among("the document", func(s seen) any { return s.Trial })
	for _, version := range []string{"1", "2", "3"} {
		among("checkpoint "+version, func(s seen) any { return s.Checkpoints[version] })
	}
}

func lost(state seen, version string) seen {
	state.Checkpoints = maps.Clone(state.Checkpoints)
	delete(state.Checkpoints, version)
	return state
}

func payloadOf(version string) map[string]string {
	return map[string]string{"kubelet": version, "ca.crt": "of " + version}
}

// populated returns a disk with some durable state, and with what an earlier cut left behind.
func populated(t *testing.T) *memoryDisk {
	t.Helper()
	disk := newMemoryDisk()
	s := disk.store()
	must(t, s.SaveSource(Assigned, source("1")))
	must(t, s.SaveDocument("trial", "Trial", trial{Of: "old", Failures: 1}))
	must(t, s.SaveCheckpoint(*source("1"), payloadOf("1")))
	must(t, s.SaveCheckpoint(*source("2"), payloadOf("2")))
	for _, folder := range []string{"/state/checkpoints/uid/3", "/state/checkpoints/uid/tmp_3"} {
		must(t, disk.mkdir(folder))
		must(t, disk.create(folder+"/kubelet", []byte("cut")))
		must(t, disk.sync(folder))
	}
	must(t, disk.create("/state/meta/tmp_assigned", []byte("cut")))
	must(t, disk.sync("/state/meta"))
	must(t, disk.sync("/state/checkpoints/uid"))
	return disk
}
