//go:build linux

package supervisor

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
	"github.com/kubelet-supervisor/kubelet-supervisor/store"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/core"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/kubelet"
	"github.com/kubelet-supervisor/kubelet-supervisor/test/fakenode"
)

func TestAConfigurationThatCannotBeLoaded(t *testing.T) {
	for name, test := range map[string]struct {
		payload string
		spoil   string // written over the checkpoint
		reason  string
		message string
	}{
		"empty":                     {"", "", "Refused", "is refused: "},
		"of another kind":           {"apiVersion: v1\nkind: Pod\n", "", "Refused", "is refused: "},
		"of a wrong type":           {fakenode.Configuration("mode: ok") + "maxPods: many\n", "", "Refused", "is refused: failed to load kubelet config file"},
		"its checkpoint is corrupt": {fakenode.Configuration("mode: ok"), fakenode.Configuration("mode: hang"), "InternalError", "its checkpoint cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNode(t)
			source := n.seed(store.Assigned, "a", test.payload)
			if test.spoil != "" {
				folder := filepath.Join(n.options.StateDir, "checkpoints", string(source.UID), source.ResourceVersion)
				if err := os.WriteFile(filepath.Join(folder, source.KubeletConfigKey), []byte(test.spoil), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			r := n.run()
			record := r.await("the verdict", func(record Record) bool { return record.Healthy && record.Condition.Reason == test.reason })
			if record.Runs != nil || record.Config.Error != core.LoadError || !strings.Contains(record.Condition.Message, test.message) {
				t.Errorf("recorded %+v", record)
			}
			if got := n.entries("start"); len(got) != 1 || got[0].Config != n.local {
				t.Errorf("the kubelets were started with %+v", got)
			}
		})
	}
}

// With lastKnownGood broken as well, local is left.
func TestNothingOnDiskKeepsAKubeletFromStarting(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.seed(store.Assigned, "a", fakenode.Configuration("mode: ok"))
	n.seed(store.LastKnownGood, "b", fakenode.Configuration("mode: ok"))
	for _, file := range []string{"meta/assigned", "meta/last-known-good", "meta/trial", "meta/rejected", "meta/preflight"} {
		written(t, n.options.StateDir, file, "\x00 no YAML: [")
	}
	r := n.run()
	record := r.awaitHealthy()
	if record.Runs != nil || !strings.Contains(record.StateProblems, "assigned") || !strings.Contains(record.Condition.Message, ".corrupt-") {
		t.Errorf("recorded %+v", record)
	}
	aside, err := filepath.Glob(filepath.Join(n.options.StateDir, "meta", "*.corrupt-*"))
	if err != nil || len(aside) != 5 {
		t.Errorf("set aside: %q, %v", aside, err)
	}
}

// How many layers a configuration has is told of a refusal alone: it is what asks which of them is refused.
func TestLayersOfARefusal(t *testing.T) {
	for script, want := range map[string]struct {
		outcome kubeletconfig.Outcome
		layers  int
	}{
		"echo 'panic: no'; exit 2": {kubeletconfig.Refused, 1},
		"echo 'Error: failed to run Kubelet: cannot exit on lock file contention: no lock file specified'; exit 1": {kubeletconfig.Accepted, 0},
		"kill -9 $$": {kubeletconfig.Unknown, 0},
	} {
		l, _, v := layeredLoop(t)
		l.RunDir = t.TempDir()
		if err := os.Chmod(l.RunDir, 0o700); err != nil {
			t.Fatal(err)
		}
		written(t, l.RunDir, "kubelet", "#!/bin/sh\n"+script+"\n")
		l.Kubelet = filepath.Join(l.RunDir, "kubelet")
		if err := os.Chmod(l.Kubelet, 0o700); err != nil {
			t.Fatal(err)
		}
		l.prover.preflight = &kubelet.Preflight{Kubelet: l.Kubelet, Mode: kubelet.PreflightAlways, TempFolder: t.TempDir()}
		now, err := l.lookLocal()
		if err != nil {
			t.Fatal(err)
		}
		proved := l.prover.prove(t.Context(), core.Prove{Version: &v, Alone: true, Kubelet: now.Kubelet, Local: now.Local})
		if proved.Outcome != want.outcome || proved.Layers != want.layers || proved.Content != v.Content || proved.Nonce == "" {
			t.Errorf("%s: %+v", script, proved)
		}
	}
}

// A save leaves the checkpoints of nothing but what is in use, and the state files set aside of nothing that is.
func TestCollect(t *testing.T) {
	l, _, v := layeredLoop(t)
	root := t.TempDir()
	l.Arguments = []string{"--root-dir=" + root}
	other := v.Source
	other.ResourceVersion = "2"
	kept := v
	l.payloads.keeper.newest = nil
	if err := l.payloads.store.SaveCheckpoint(other, map[string]string{"kubelet": "x"}); err != nil {
		t.Fatal(err)
	}
	l.payloads.collect(core.Durable{}, []core.Version{kept})
	if _, err := l.payloads.store.LoadCheckpoint(kept.Source); err != nil {
		t.Errorf("what is in use is gone: %v", err)
	}
	if _, err := l.payloads.store.LoadCheckpoint(other); err == nil {
		t.Error("what nobody uses is left")
	}
}

// What the supervisor before said last is known from the boot on.
func TestBootKnowsTheChangeBefore(t *testing.T) {
	l, _, _ := layeredLoop(t)
	l.RunDir = t.TempDir()
	record := goldenRecord()
	record.LastChange = &RecordedChange{aChange()}
	record.Status.Reason, record.Status.Since = "InTrial", aChange().Began
	data, err := encodeRecord(record)
	if err != nil {
		t.Fatal(err)
	}
	written(t, l.RunDir, recordFile, string(data))
	l.foundWaiting = true
	booted := l.boot()
	if diff := cmp.Diff(aChange(), booted.LastChange); diff != "" || booted.Said != (core.Said{Reason: "InTrial", Since: aChange().Began}) || !booted.Waited || booted.BootID == "" {
		t.Errorf("%+v (-want +got):\n%s", booted, diff)
	}
	l.payloads.store, l.payloads.unusable = nil, errNoStore
	if booted := l.boot(); booted.Useless != errNoStore.Error() {
		t.Errorf("without a state folder: %+v", booted)
	}
}

func TestWhatTheLauncherIsGiven(t *testing.T) {
	o := Options{Kubelet: "/kubelet", Arguments: []string{"--v=2"}, RunDir: "/run/x", StateDir: "/state", Journal: "/journal", Output: os.Stderr}
	o.StartTimeout = time.Hour
	got := newLauncher(o, time.Minute).Settings
	if got.AskRuntime == nil {
		t.Error("nobody asks the container runtime")
	}
	got.AskRuntime = nil
	want := kubelet.Settings{Path: "/kubelet", Arguments: o.Arguments, RunDir: "/run/x", Journal: "/journal", Output: os.Stderr, StartTimeout: time.Hour, Watchdog: time.Minute, LockFile: "/state/kubelet.lock"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("it is given %+v, want %+v", got, want)
	}
	o.Preflight = kubelet.PreflightNever
	if path := newLauncher(o, 0).LockFile; path != "" {
		t.Errorf("one that must not be asked is given the lock %s", path)
	}
}

// All of a verdict is passed on. That there is no room for a process may be the limit that a kubelet has set.
func TestAllOfAVerdictIsPassedOn(t *testing.T) {
	var got core.Proved
	take(&got, kubelet.Verdict{Outcome: kubeletconfig.Environment, Load: true, Words: "no room", NoMorePreflight: true, Unanswered: true, NoRoom: true})
	want := core.Proved{Proof: core.Proof{Outcome: kubeletconfig.Environment, Load: true, Words: "no room"}, NoMorePreflight: true, Unanswered: true, NoRoom: true}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// What a start came to is answered so; only one that failed waits before the next.
func TestAnswersToAStart(t *testing.T) {
	n := newNode(t)
	n.options.Logger = zap.NewNop()
	l, err := newLoop(n.options)
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	files, seen := []kubeletconfig.StateFile{{Name: cpuState}}, []core.LimitSeen{{}}
	unrenderable, noRoom := fmt.Errorf("%w: no", errRender), &os.PathError{Op: "fork/exec", Path: "kubelet", Err: syscall.EAGAIN}
	for name, row := range map[string]struct {
		result startResult
		want   core.Started
	}{
		"files are in the way":      {startResult{files: files}, core.Started{InTheWay: files}},
		"limits come first":         {startResult{limits: seen}, core.Started{Limits: seen}},
		"what waited is gone":       {startResult{gone: true}, core.Started{Gone: true}},
		"there is nothing to start": {startResult{err: unrenderable}, core.Started{Err: unrenderable, Unrenderable: true, Delay: 250 * time.Millisecond}},
		"there is no room":          {startResult{err: noRoom}, core.Started{Err: noRoom, NoRoom: true, Delay: 250 * time.Millisecond}},
	} {
		l.runner.kubelets.ResetDelay()
		l.runner.parked = new(kubelet.Child)
		if got := l.onStarted(t.Context(), row.result); !reflect.DeepEqual(got, row.want) {
			t.Errorf("%s: %+v, want %+v", name, got, row.want)
		}
		if l.runner.parked == nil != row.result.gone {
			t.Errorf("%s: something waits: %t", name, l.runner.parked != nil)
		}
	}
	l.runner.parked = nil
	do := core.Start{Version: nil, OnTrial: true}
	if result := l.runner.launch(do, func(string) []core.LimitSeen { return seen }); result.child != nil || !reflect.DeepEqual(result, startResult{do: do, limits: seen}) {
		t.Errorf("with limits to be cared for: %+v", result)
	}
}

// Whatever is remembered of the kubelet before is no part of the one that was started.
func TestTheStartIsNoted(t *testing.T) {
	n := newNode(t)
	n.options.Logger = zap.NewNop()
	l, err := newLoop(n.options)
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	l.api.node.pods = podStarts{Of: "before"}
	child, err := l.runner.kubelets.Start(kubelet.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	child.FallBackTo("")
	l.runner.parked = child
	started := l.onStarted(t.Context(), startResult{child: child, lease: time.Minute, do: core.Start{Local: "now", Waits: true}})
	defer l.tasks.Wait()
	defer child.Stop(time.Minute)
	if !reflect.DeepEqual(started, core.Started{}) || l.runner.child != child || l.runner.parked != nil || l.api.node.pods.Of != "now" || l.api.lease.seen.Lasts != time.Minute {
		t.Errorf("%+v; pods of %q, a Lease of %s, waiting %v", started, l.api.node.pods.Of, l.api.lease.seen.Lasts, l.runner.parked)
	}
	if record, _, err := ReadRecord(l.RunDir); err != nil || record.Child == nil || record.Child.PID != child.Process().PID {
		t.Errorf("recorded %+v, %v", record.Child, err)
	}
}

// All that the core says goes to the Node.
func TestNodeReport(t *testing.T) {
	observed, at := "a/b/c", time.Unix(7, 0)
	r := core.Statement{Config: corev1.NodeConfigStatus{Error: "e"}, Observed: &observed, Details: nodev1.Status{Reason: "r"}, Status: corev1.ConditionTrue,
		Reason: nodev1.ReasonApplying, Parts: []string{"first", "last"}, Gist: "g", ChangeToReport: at}
	got := nodeReport(r)
	if got.Config.Error != "e" || got.Observed != &observed || got.Status.Reason != "r" || got.Condition.Status != corev1.ConditionTrue || got.Condition.Reason != nodev1.ReasonApplying ||
		got.Condition.Message != "first; last" || got.Gist != "g" || got.ChangeToReport != at || !got.Passing {
		t.Errorf("%+v", got)
	}
	if r.Reason = nodev1.ReasonLocal; nodeReport(r).Passing {
		t.Error("what came of a change is taken for what goes on")
	}
}

// What is seen of a kubelet is told to the core as it is.
func TestWhatIsSeenOfAKubelet(t *testing.T) {
	for _, row := range []struct {
		seen kubelet.Event
		want core.Event
	}{
		{kubelet.Healthy{}, core.Healthy{}},
		{kubelet.Unhealthy{Words: "w"}, core.Unhealthy{Words: "w"}},
		{kubelet.NotInUse{Words: "w"}, core.NotInUse{Words: "w"}},
		{kubelet.PortSeen{HeldBy: "h", Shared: true}, core.PortSeen{HeldBy: "h", Shared: true}},
		{kubelet.Hung{Words: "w"}, core.Hung{Words: "w"}},
		{kubelet.Exited{Asked: true, Code: 3, Words: "w", Delay: time.Second}, core.ChildExited{Asked: true, Code: 3, Words: "w", Delay: time.Second}},
	} {
		if got := eventOf(row.seen); got != row.want {
			t.Errorf("%#v becomes %#v, want %#v", row.seen, got, row.want)
		}
	}
}
