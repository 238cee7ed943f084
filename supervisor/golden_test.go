//go:build linux

package supervisor

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"

	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
	"github.com/kubelet-supervisor/kubelet-supervisor/store"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/core"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/kubelet"
)

// The files below testdata/state/VERSION are what a supervisor of that version wrote. They are never changed. A test that fails here
// says that the next release would not read, or not write, what nodes have on their disks: take the change back, or raise the version
// (in store and record.go), add a folder, and read the older one too.

var goldenPayload = map[string]string{
	"kubelet": "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nmaxPods: 110 # as measured\nstaticPodPath: pods\n",
	"ca.crt":  "-----BEGIN CERTIFICATE-----\n",
}

var goldenArguments = []string{"--config=testdata/state/v1/etc/kubelet.yaml", "--config-dir", "testdata/state/v1/etc/kubelet.conf.d", "--v=2"}

// golden is what every version of the files means. Its digests are literal: a promotion or a rejection holds for a digest, so another
// way of computing one would put every node on trial, and forget every rejection, at the upgrade.
func golden() core.Durable {
	source := func(name, resourceVersion string) corev1.ConfigMapNodeConfigSource {
		return corev1.ConfigMapNodeConfigSource{Namespace: "kube-system", Name: name, KubeletConfigKey: "kubelet",
			UID: "8b1c7e0e-6f5f-4f0e-9d6c-3b6f0f8a2c11", ResourceVersion: resourceVersion}
	}
	good := &core.Version{Source: source("workers", "4711"), Content: "sha256:191f7ed349086d190ea8adf29207a4e649b4f0e1c0fa16f36f3f88340df94246"}
	kubelet := kubeletconfig.Identity{
		Binary:    "device 2049, inode 131, size 84000000, mtime 1767225600.000000001, ctime 1767225600.000000002",
		Arguments: "sha256:1a1ee3be9f54eb487662bf9202510fd1c3b417f12e3381756d584ced2da86458",
		Local:     "sha256:baeb1488f1ab2441da15d9ec5bae3562dcb26f1922768479f71ba069c08abb74",
	}
	another := kubelet
	another.Binary = "device 2049, inode 132, size 84000001, mtime 1769904000.000000000, ctime 1769904000.000000000"
	const deadly = "sha256:00000000000000000000000000000000000000000000000000000000000000dd"
	return core.Durable{
		Assigned: good, LastKnownGood: good,
		Account: core.Account{Active: good, Text: "kube-system/workers/kubelet", NodeUID: "5d0b7d8a-0c1c-4f0b-8f38-8a9a4b1b0c55", Retry: "2026-01-01",
			Trial: core.Trial{Content: good.Content, Kubelet: another, Healthy: core.Span(90*time.Second + 5*time.Millisecond), Unhealthy: 1, Tries: 2, Open: true, HadHealth: true,
				Longest: core.Span(time.Hour), Baseline: true, Renewed: true},
			Promoted: core.Promotion{Content: good.Content, Kubelet: kubelet},
			Suspects: []core.Suspect{{Version: core.Version{Source: source("deadly", "5000"), Content: deadly}, Kubelet: another, Cause: core.Exited, Words: "exited 3 times in its trial", Life: core.Span(250 * time.Millisecond), Excused: true}}},
		Rejected: []core.Rejection{
			{Content: deadly, Binary: kubelet.Binary, Arguments: kubelet.Arguments, Cause: core.StartTimeout, Words: "not healthy within 2m0s of its start"},
			{Content: deadly, Binary: another.Binary, Arguments: another.Arguments, Cause: core.LeaseLost},
		},
		Proofs: []core.Proof{
			{Content: good.Content, Kubelet: kubelet, Outcome: kubeletconfig.Accepted, Warnings: []string{`field "futureField" is unknown to v0.37`}},
			{Content: deadly, Kubelet: kubelet, Outcome: kubeletconfig.Refused, Load: true, Words: "failed to decode: \"\u009f\""},
			{Content: core.AnyContent, Kubelet: another, Outcome: kubeletconfig.Unknown, Words: "it did not stop at the check"},
		},
	}
}

func goldenRecord() Record {
	d := golden()
	at := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	source := &corev1.NodeConfigSource{ConfigMap: &d.Assigned.Source}
	return Record{
		APIVersion: "kubelet-supervisor.io/v1", Supervisor: kubelet.Process{PID: 700, StartTime: 12345}, BootID: "b0071d00-0000-4000-8000-000000000000",
		Generation: 3, Phase: "Running", Child: &kubelet.Process{PID: 701, StartTime: 12346, Executable: "/usr/bin/kubelet"}, Runs: d.Assigned, Healthy: true, Written: at,
		Assignment: d.Text, Config: corev1.NodeConfigStatus{Assigned: source, Active: source, LastKnownGood: source, Error: "failed to run config, see Kubelet log for details"},
		Condition: RecordedCondition{Status: "True", Reason: "InTrial", Message: "using current (UID: \"8b1c7e0e-6f5f-4f0e-9d6c-3b6f0f8a2c11\")"},
		Trial:     &RecordedTrial{Of: *d.Assigned, Healthy: core.Span(90 * time.Second), Left: core.Span(510 * time.Second), Failures: 1},
		Rejected:  d.Rejected, Exits: []RecordedExit{{Time: at, Ran: "local", Asked: true, Words: "exit code 0"}},
		LocalPending: true, StateProblems: "loading trial: it does not decode",
	}
}

func TestStateOfEveryVersionIsRead(t *testing.T) {
	folders, err := os.ReadDir("testdata/state")
	if err != nil || len(folders) == 0 {
		t.Fatal(folders, err)
	}
	for _, folder := range folders {
		t.Run(folder.Name(), func(t *testing.T) {
			stateDir := copied(t, filepath.Join("testdata/state", folder.Name(), "state"))
			l := wire(Options{})
			l.payloads.store = openStore(t, stateDir)
			var loaded core.Durable
			l.payloads.load(&loaded, func(err error) {
				if err != nil {
					t.Error(err)
				}
			})
			if diff := cmp.Diff(golden(), loaded); diff != "" {
				t.Errorf("what was loaded (-want +got):\n%s", diff)
			}
			payload, err := l.payloads.store.LoadCheckpoint(golden().Assigned.Source)
			if diff := cmp.Diff(goldenPayload, payload); diff != "" || err != nil {
				t.Errorf("%v, the checkpoint (-want +got):\n%s", err, diff)
			}
			record, _, err := ReadRecord(filepath.Join("testdata/state", folder.Name(), "run"))
			if diff := cmp.Diff(goldenRecord(), record); diff != "" || err != nil {
				t.Errorf("%v, state.json (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestStateIsWrittenAsThisVersionSays(t *testing.T) {
	stateDir, runDir := t.TempDir(), t.TempDir()
	if err := os.Chmod(stateDir, 0o700); err != nil {
		t.Fatal(err)
	}
	l := wire(Options{Arguments: []string{"--root-dir=" + t.TempDir()}})
	l.payloads.store = openStore(t, stateDir)
	d := golden()
	if err := errors.Join(l.payloads.store.SaveCheckpoint(d.Assigned.Source, goldenPayload), l.payloads.save(d)); err != nil {
		t.Fatal(err)
	}
	data, err := encodeRecord(goldenRecord())
	if err == nil {
		err = os.WriteFile(filepath.Join(runDir, recordFile), data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	const newest = "testdata/state/v1"
	for folder, written := range map[string]string{"state": stateDir, "run": runDir} {
		got := filesIn(t, written)
		delete(got, "lock") // it says nothing
		if diff := cmp.Diff(filesIn(t, filepath.Join(newest, folder)), got); diff != "" {
			t.Errorf("%s (-golden +written):\n%s", folder, diff)
		}
	}
}

// What verdicts are kept for is computed as it was.
func TestIdentitiesStayWhatTheyWere(t *testing.T) {
	identity, err := kubeletconfig.Identify("/proc/self/exe", goldenArguments)
	if diff := cmp.Diff(golden().Promoted.Kubelet, identity, cmpopts.IgnoreFields(kubeletconfig.Identity{}, "Binary")); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if content := kubeletconfig.Content(goldenPayload, "kubelet"); content != golden().Assigned.Content {
		t.Errorf("the content is %s", content)
	}
}

func TestNonsenseIsNotRead(t *testing.T) {
	for text, into := range map[string]any{
		`{"healthy": 90000000000}`:           &core.Trial{},
		`{"healthy": "90"}`:                  &core.Trial{},
		`{"unhealthy": "-1s"}`:               &core.Trial{},
		`{"longest": "for ever"}`:            &core.Trial{},
		`{"tries": -1}`:                      &core.Trial{},
		`{"tries": 1.5}`:                     &core.Trial{},
		`{"open": "yes"}`:                    &core.Trial{},
		`{"kubelet": "a kubelet"}`:           &core.Trial{},
		`{"life": "1"}`:                      &core.Suspect{},
		`{"cause": "Weather"}`:               &core.Suspect{},
		`{"version": []}`:                    &core.Suspect{},
		`{"cause": 1}`:                       &core.Rejection{},
		`{"cause": ""}`:                      &core.Rejection{},
		`{"outcome": 1}`:                     &core.Proof{},
		`{"outcome": "Accepted"}`:            &core.Proof{},
		`{"outcome": ""}`:                    &core.Proof{},
		`{"healthy": "1s", "left": "-1s"}`:   &RecordedTrial{},
		`{"proofs": [{"outcome": "maybe"}]}`: &proofs{},
	} {
		if err := json.Unmarshal([]byte(text), into); err == nil {
			t.Errorf("%s was read as %+v", text, into)
		}
	}
	if data, err := json.Marshal(core.Proof{Content: "a"}); err == nil {
		t.Errorf("a proof without an outcome was written as %s", data)
	}
}

func openStore(t *testing.T, folder string) *store.Store {
	t.Helper()
	s, err := store.Open(folder)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// copied gives a copy of a folder with the modes that a state folder has.
func copied(t *testing.T, folder string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "copy")
	if err := os.Mkdir(to, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, content := range filesIn(t, folder) {
		written(t, to, name, content)
	}
	return to
}

// filesIn reads all files of a folder, by their paths in it.
func filesIn(t *testing.T, folder string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		name, _ := filepath.Rel(folder, path)
		files[name] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
