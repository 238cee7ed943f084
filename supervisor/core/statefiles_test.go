package core

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
)

// managers plays the CPU manager of a node: its state file, which every kubelet that lives long enough writes, and which one of another
// policy dies of.
type managers struct {
	*drive
	policy map[string]string // by content ("" = local); absent = none
	file   string            // the policy in cpu_manager_state; empty = there is no file
	broken bool              // renaming fails
}

const stateFileName = "cpu_manager_state"

func newManagers(t *testing.T) *managers {
	m := &managers{drive: newDrive(t), policy: map[string]string{}, file: "none"}
	m.starts = func(do Start) (Event, bool) {
		if m.file != "" && m.file != m.of(do.Version) && !do.Unchecked {
			return Started{InTheWay: []kubeletconfig.StateFile{{Name: stateFileName, Policy: m.file}}}, true
		}
		return nil, false
	}
	m.sets = func(do SetAside) FilesSetAside {
		if m.broken {
			return FilesSetAside{Err: errors.New("read-only file system")}
		}
		if !slices.ContainsFunc(m.disk.Asides, func(a Aside) bool { return a.StateFile == do.Files[0] && a.BootID == m.bootID }) {
			t.Errorf("%+v is set aside, on the disk is %+v", do.Files, m.disk.Asides)
		}
		m.file = ""
		return FilesSetAside{}
	}
	m.begins = func(do Start) {
		if m.file == "" {
			m.file = m.of(do.Version)
		}
		delete(m.deadly, contentOf(do.Version))
		if m.file != m.of(do.Version) {
			m.deadly[contentOf(do.Version)] = 350 * time.Millisecond // after healthz was ok
		}
	}
	return m
}

func (m *managers) of(v *Version) string {
	if policy := m.policy[contentOf(v)]; policy != "" {
		return policy
	}
	return "none"
}

// A policy is taken, passes its trial and can be left again, in all four directions, by itself (rule 17).
func TestAStaticPolicyComesAndGoes(t *testing.T) {
	begin := func(t *testing.T) *managers {
		m := newManagers(t)
		m.policy["static"] = "static"
		m.boot().pass(time.Minute)
		return m
	}
	t.Run("assigned", func(t *testing.T) {
		m := begin(t)
		m.fresh().assign("static").pass(time.Minute).expectDone("prove static", "stop", "start static", "set aside", "start static", "prove local")
		m.expectEvents("KubeletConfigChanged", "KubeletStateFileSetAside")
		m.pass(10 * time.Minute).expect("assigned=static@1 active=static@1 lkg=static@1 True Active")
	})
	t.Run("removed", func(t *testing.T) {
		m := begin(t)
		m.good("static").fresh().hear(Cleared{NodeUID: "node-uid"}).pass(time.Minute).expect(nothing)
		m.expectDone("stop", "start local", "set aside", "start local")
	})
	t.Run("followed by another", func(t *testing.T) {
		m := begin(t)
		m.good("static").fresh().assign("good").pass(11 * time.Minute).expect("assigned=good@1 active=good@1 lkg=good@1 True Active")
	})
	t.Run("rolled back, for it dies of something else", func(t *testing.T) {
		m := begin(t)
		m.begins = func(do Start) {
			m.file = m.of(do.Version)
			if do.Version != nil {
				m.deadly["static"] = 400 * time.Millisecond
			}
		}
		m.assign("static").pass(5 * time.Second).expect("assigned=static@1 active=- lkg=- False RolledBack run config")
		m.pass(time.Minute).expect("assigned=static@1 active=- lkg=- False Rejected run config")
	})
	t.Run("a last known good one of a static policy is fallen back to", func(t *testing.T) {
		m := begin(t)
		m.good("static").fresh()
		m.begins = func(do Start) {
			m.file = m.of(do.Version)
			if contentOf(do.Version) == "bad" {
				m.deadly["bad"] = 400 * time.Millisecond
			}
		}
		m.assign("bad").pass(time.Minute).expect("assigned=bad@1 active=static@1 lkg=static@1 False Rejected run config")
	})
}

// The supervisor dies between the record and the rename, or between the rename and the start.
func TestACrashWhileAStateFileIsSetAside(t *testing.T) {
	for _, renamed := range []bool{false, true} {
		m := newManagers(t)
		m.policy["static"] = "static"
		m.boot().pass(time.Minute).good("static")
		m.fresh().decide(Cleared{NodeUID: "node-uid"})
		for range 100 {
			if _, is := m.step.Do.(SetAside); is {
				break
			}
			m.decide(m.answer(m.step.Do))
		}
		if renamed {
			m.file = ""
		}
		m.boot().pass(time.Minute).expect(nothing)
		if len(m.disk.Asides) > 1 {
			t.Errorf("recorded %+v", m.disk.Asides)
		}
	}
}

// What keeps a state file from being set aside keeps no kubelet from being started, and is told.
func TestAStateFileThatStays(t *testing.T) {
	m := newManagers(t)
	m.policy["static"] = "static"
	m.boot().pass(time.Minute).good("static").fresh()
	m.broken = true
	m.hear(Cleared{NodeUID: "node-uid"}).expectDone("stop", "start local", "set aside", "start local").expectEvents("KubeletConfigChanged").
		expectMessage("a state file of another policy cannot be set aside: read-only file system")
	m.pass(30 * time.Second)
	if r, _ := Report(m.s); r.Status == "True" {
		t.Errorf("shows %s", m.shown())
	}
	m.broken = false
	m.pass(time.Minute).expect(nothing)
}

// A file that the kubelet itself refuses, whatever its policy, is set aside once, and counts as nobody's failure.
func TestAStateFileThatTheKubeletRefuses(t *testing.T) {
	refuses := ChildExited{Code: 1, Words: "not all reserved cpus are present", StateFile: stateFileName, Delay: time.Second}
	t.Run("in a trial", func(t *testing.T) {
		m := newManagers(t)
		m.boot().assign("good").pass(5*time.Second).fresh().hear(refuses).expectDone("set aside", "start good").pass(time.Minute).expect(inTrial)
		if m.s.Trial.Tries != 1 {
			t.Errorf("%d tries", m.s.Trial.Tries)
		}
		m.fresh().hear(refuses).expectDone("set aside", "start good") // after health it may be once more
	})
	t.Run("it is told, and of what", func(t *testing.T) {
		m := newManagers(t)
		m.boot().pass(time.Minute).fresh().hangs[""] = true
		m.hear(refuses).pass(time.Second).says("using current (default); not all reserved cpus are present; see the kubelet's log")
		if want := []NodeEvent{{"Normal", "KubeletStateFileSetAside", describeStateFile(kubeletconfig.StateFile{Name: stateFileName})}}; !slices.Equal(m.told, want) {
			t.Errorf("told: %+v\nwant: %+v", m.told, want)
		}
	})
	t.Run("once for each file, configuration and kubelet", func(t *testing.T) {
		another := refuses
		another.StateFile = "memory_manager_state"
		for name, change := range map[string]struct {
			before Event
			exit   ChildExited
			again  bool
		}{
			"the same":          {Ticked{}, refuses, false},
			"another file":      {Ticked{}, another, true},
			"another binary":    {LocalChanged{Kubelet: kubeletconfig.Identity{Binary: "binary-2", Arguments: "arguments-1", Local: "local-1"}, Local: "local"}, refuses, true},
			"other arguments":   {LocalChanged{Kubelet: kubeletconfig.Identity{Binary: "binary-1", Arguments: "arguments-2", Local: "local-1"}, Local: "local"}, refuses, true},
			"other local files": {LocalChanged{Kubelet: kubeletconfig.Identity{Binary: "binary-1", Arguments: "arguments-1", Local: "local-2"}, Local: "local"}, refuses, true},
		} {
			m := newManagers(t)
			m.boot().pass(time.Minute).hear(refuses).hear(change.before).hear(ChildExited{Code: 1, Words: "boom"}).fresh()
			m.hear(change.exit)
			if again := slices.Contains(m.did, "set aside"); again != change.again {
				t.Errorf("%s: set aside again: %t", name, again)
			}
		}
	})
	t.Run("again, where a kubelet ran meanwhile and was ended: the machine has changed twice", func(t *testing.T) {
		m := newManagers(t)
		m.boot().pass(time.Minute).good("good").fresh()
		for range 6 {
			m.hear(refuses).pass(2 * time.Second).hear(ChildExited{Code: 0, Words: "exit code 0"}).pass(time.Minute)
		}
		m.expect("assigned=good@1 active=good@1 lkg=good@1 True Active")
		m.fresh().hear(refuses).pass(2 * time.Second).hear(ChildExited{Code: 0, Words: "exit code 0"}).pass(2 * time.Second)
		m.hear(refuses).expectDone("set aside", "start good", "start good", "set aside", "start good")
	})
	t.Run("again and again", func(t *testing.T) {
		m := newManagers(t)
		m.boot().pass(time.Minute).assign("bad").pass(time.Second).fresh()
		for range 5 {
			m.hear(refuses).pass(2 * time.Second)
		}
		m.pass(time.Minute).expect("assigned=bad@1 active=- lkg=- False Rejected run config")
	})
	t.Run("in the control it blames no environment", func(t *testing.T) {
		m := newManagers(t)
		m.boot().pass(time.Minute)
		m.begins = nil
		m.deadly["bad"] = time.Second
		m.assign("bad").pass(8 * time.Second)
		m.hear(refuses).pass(time.Minute).expect("assigned=bad@1 active=- lkg=- False Rejected run config")
	})
	t.Run("local, with nothing assigned", func(t *testing.T) {
		m := newManagers(t)
		m.boot().fresh().hear(refuses).expectDone("set aside", "start local").pass(time.Minute).expect(nothing)
	})
}

// Asides of another boot are worthless, and so are all once the new configuration has passed its trial.
func TestAsidesAreForgotten(t *testing.T) {
	m := newManagers(t)
	m.policy["static"] = "static"
	m.boot().pass(time.Minute).assign("static").pass(time.Minute)
	if len(m.disk.Asides) != 1 || m.disk.Asides[0].Policy != "none" || m.disk.Asides[0].Content != "static" {
		t.Fatalf("recorded %+v", m.disk.Asides)
	}
	other := *m.drive
	other.bootID = "boot-2"
	other.boot().pass(time.Minute)
	if len(other.disk.Asides) != 0 {
		t.Errorf("after a reboot: %+v", other.disk.Asides)
	}
	m.pass(11 * time.Minute)
	if len(m.disk.Asides) != 0 {
		t.Errorf("after the trial: %+v", m.disk.Asides)
	}
}

func TestStateFilesInWords(t *testing.T) {
	for want, file := range map[string]kubeletconfig.StateFile{
		"cpu_manager_state, which the kubelet refused, is set aside; the kubelet makes a new one": {Name: stateFileName},
		"cpu_manager_state of policy static is set aside; the kubelet makes a new one":            {Name: stateFileName, Policy: "static"},
	} {
		if got := describeStateFile(file); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// What was in the way of one configuration need not be in the way of the one that is started in its place.
func TestAnotherConfigurationWhileAFileIsInTheWay(t *testing.T) {
	m := newManagers(t)
	m.policy["static"], m.policy["alike"] = "static", "static"
	m.boot().pass(time.Minute).good("static").fresh()
	m.decide(Cleared{NodeUID: "node-uid"})
	for range 100 { // until the file is found to be in the way of local
		answer := m.answer(m.step.Do)
		m.decide(answer)
		if started, is := answer.(Started); is && len(started.InTheWay) > 0 {
			break
		}
	}
	underWay := m.step.Do
	m.decide(assigned("alike", "1", "alike"))
	m.hear(m.answer(underWay)).pass(time.Minute).expect("assigned=alike@1 active=alike@1 lkg=- True InTrial")
	if m.file != "static" || slices.Contains(m.did, "set aside") {
		t.Errorf("the file is of policy %s; done: %q", m.file, m.did)
	}
}
