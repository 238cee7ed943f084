//go:build linux

package cli

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
	"github.com/kubelet-supervisor/kubelet-supervisor/store"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/core"
	"github.com/kubelet-supervisor/kubelet-supervisor/test/fakenode"
)

// checkDisk wants what a killed supervisor left: nothing that has to be set aside, and no half checkpoint named.
func (l *life) checkDisk() {
	l.t.Helper()
	l.store(func(s *store.Store) (failed error) {
		for _, pointer := range []store.Pointer{store.Assigned, store.LastKnownGood} {
			source, err := s.LoadSource(pointer)
			if failed = errors.Join(failed, err); source != nil {
				_, err := s.LoadCheckpoint(*source)
				failed = errors.Join(failed, err)
			}
		}
		var trial core.Account
		failed = errors.Join(failed, s.LoadDocument("trial", "Trial", &trial))
		assigned, err := s.LoadSource(store.Assigned)
		failed = errors.Join(failed, err)
		l.inVain = trial.Hold.Spent && (assigned != nil) == l.base
		for name, kind := range map[string]string{"trial": "Trial", "rejected": "RejectionList", "preflight": "PreflightList"} {
			failed = errors.Join(failed, s.LoadDocument(name, kind, &map[string]any{}))
		}
		return failed
	})
}

// started counts the starts of kubelets by the name of what they were started with. Two at once are an error.
func (l *life) started() map[string]int {
	l.t.Helper()
	names := map[string]string{}
	for name, m := range l.api.maps {
		source := l.source(name)
		folder := filepath.Join(l.stateDir, "checkpoints", string(source.UID), source.ResourceVersion)
		if rendered, err := kubeletconfig.Render(m.Data, "kubelet", folder, nil); err == nil {
			sum := sha256.Sum256(rendered)
			names[hex.EncodeToString(sum[:])] = name
		}
	}
	data, err := os.ReadFile(l.record)
	if err != nil {
		l.t.Fatal(err)
	}
	counts := map[string]int{}
	for line := range strings.Lines(string(data)) {
		var e struct{ Event, Config, SHA256 string }
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			l.t.Fatal(err)
		}
		switch {
		case e.Event == "beside":
			l.t.Error("two kubelets at once")
		case e.Event != "start":
		case e.Config == l.local:
			counts["local"]++
		case names[e.SHA256] != "":
			counts[names[e.SHA256]]++
		default: // base, before it was edited
			counts["older"]++
		}
	}
	return counts
}

func (l *life) stateFile() string { return filepath.Join(l.rootDir(), "cpu_manager_state") }

// awaitPolicy waits until the kubelet that runs has its state file, which comes a moment after its health.
func (l *life) awaitPolicy() {
	l.t.Helper()
	want := l.policy
	if want == "" {
		want = "none"
	}
	fakenode.Await(l.t, "a state file of policy "+want, func() bool {
		var state struct{ PolicyName string }
		content, err := os.ReadFile(l.stateFile())
		return err == nil && json.Unmarshal(content, &state) == nil && state.PolicyName == want
	})
}

// checkAsides wants the files that were set aside, recorded and there, and no others.
func (l *life) checkAsides() {
	l.t.Helper()
	var recorded, found []string
	var d core.Durable
	l.store(func(s *store.Store) error { return s.LoadDocument("trial", "Trial", &d) })
	for _, aside := range d.Asides {
		recorded = append(recorded, aside.Name+".aside-"+aside.Policy)
	}
	paths, err := filepath.Glob(l.stateFile() + ".aside*")
	if err != nil {
		l.t.Fatal(err)
	}
	for _, path := range paths {
		found = append(found, filepath.Base(path))
	}
	slices.Sort(recorded)
	if !slices.Equal(recorded, l.asides) || !slices.Equal(found, l.asides) {
		l.t.Errorf("aside are %q, recorded are %q, want %q", found, recorded, l.asides)
	}
}

// checkApprovals: one approval is one change. One that was spent before anything moved is of no use to the next supervisor.
func (l *life) checkApprovals() {
	l.t.Helper()
	least := 0
	if l.pods > 0 {
		least = 1
	}
	if l.inVain {
		least = 2
	}
	if given := l.api.given; len(given) < least || len(given) > 2 {
		l.t.Errorf("the change was made after the approvals %q; one spent in vain: %v", given, l.inVain)
	}
}

// checkRules is asked at the end, which is that without a crash.
func (l *life) checkRules(p *supervisorProcess) {
	l.t.Helper()
	l.awaitPolicy()
	wrote := l.awaitLimit()
	l.checkApprovals()
	starts := l.started()
	for name, count := range starts {
		if most, allowed := l.starts[name]; !allowed || count > most {
			l.t.Errorf("%s was started %d times, at most %d allowed: %v", name, count, most, starts)
		}
	}
	record, _, err := supervisor.ReadRecord(l.runDir)
	if err != nil {
		l.t.Fatal(err)
	}
	if record.Trial != nil && record.Trial.Failures+1 < starts[l.candidate] {
		l.t.Errorf("tries were given back: %d failures are counted after %d starts", record.Trial.Failures, starts[l.candidate])
	}
	if record.StateProblems != "" {
		l.t.Errorf("the disk: %s", record.StateProblems)
	}
	if err := p.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		l.t.Error(err)
	}
	if code := p.end(); code != exitOK && !killed(p) { // a point that was not met before may come now
		l.t.Errorf("it ended with code %d", code)
	}
	l.checkAsides()
	l.checkLimits(wrote)
}
