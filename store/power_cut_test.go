package store

import (
	"fmt"
	"maps"
	"math/rand/v2"
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
	{"collect", func(s *Store) error { return s.Collect([]corev1.ConfigMapNodeConfigSource{*source("1")}) }, ""},
	{"collect all", func(s *Store) error { return s.Collect(nil) }, ""},
}

func TestPowerCutAtEveryStep(t *testing.T) { failAtEveryStep(t, true) }

func TestFailureAtEveryStep(t *testing.T) { failAtEveryStep(t, false) }

func failAtEveryStep(t *testing.T, cut bool) {
	for _, change := range changes {
		t.Run(change.name, func(t *testing.T) {
			whole := populated(t)
			before, err := look(whole.store())
			must(t, err)
			must(t, change.do(whole.store()))
			after, err := look(whole.store())
			must(t, err)
			for step, failed := 0, true; failed; step++ {
				for seed := range uint64(20) {
					chance := rand.New(rand.NewPCG(uint64(step), seed))
					disk := populated(t)
					disk.cut, disk.left = cut, step
					err := change.do(disk.store())
					failed = disk.left < 0
					if failed == (err == nil) {
						t.Fatalf("step %d: fails %v, but the error is %v", step, failed, err)
					}
					if cut {
						disk.restore(chance)
					}
					at := fmt.Sprintf("step %d, seed %d", step, seed)
					if err == nil {
						compare(t, at, disk, after)
					} else {
						compare(t, at, disk, before, after, lost(before, change.loses))
					}
					disk.left = -1
					if err := change.do(disk.store()); err != nil {
						t.Fatalf("%s: another try: %v", at, err)
					}
					disk.restore(chance)
					compare(t, at+", another try and a power cut", disk, after)
					if t.Failed() {
						return
					}
				}
			}
		})
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
