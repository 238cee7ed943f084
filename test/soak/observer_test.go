//go:build linux

package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
)

// Only a process that runs as this node's kubelet is one.
func TestKubeletsInTheProcessTable(t *testing.T) {
	const kubelet, root = "/bin/kubelet", "/node/kubelet"
	for name, test := range map[string]struct {
		line string
		is   bool
	}{
		"a kubelet":           {kubelet + " --root-dir=" + root + " --v=2", true},
		"a pre-flight":        {kubelet + " --root-dir=" + root + " --lock-file= --exit-on-lock-contention=true", false},
		"another node's":      {kubelet + " --root-dir=/other/kubelet", false},
		"the supervisor":      {"/bin/kubelet-supervisor run -- " + kubelet + " --root-dir=" + root, false},
		"nsenter, before it":  {"nsenter -- /bin/kubelet-supervisor run -- " + kubelet + " --root-dir=" + root, false},
		"one that has ended":  {"", false},
		"a similar root":      {kubelet + " --root-dir=" + root + "2", false},
		"a lock file as well": {kubelet + " --root-dir=" + root + " --exit-on-lock-contention=false", true},
	} {
		table := newProcessTable(kubelet, root)
		table.proc = processes(t, map[int]string{7: test.line, 8: "/sbin/init"})
		if got := table.kubelets(); slices.Equal(got, []int{7}) != test.is {
			t.Errorf("%s: %v", name, got)
		}
	}
	table := newProcessTable(kubelet, root)
	one := kubelet + " --root-dir=" + root
	table.proc = processes(t, map[int]string{7: one, 9: one})
	if got := table.kubelets(); len(got) != 2 {
		t.Errorf("two kubelets, seen: %v", got)
	}
	if err := os.WriteFile(filepath.Join(table.proc, "9", "status"), []byte("Name:\tkubelet\nPPid:\t7\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := table.kubelets(); !slices.Equal(got, []int{7}) {
		t.Errorf("a kubelet and what it forks, seen: %v", got)
	}
}

// One that waits at the lock of another is no second kubelet.
func TestAKubeletThatWaits(t *testing.T) {
	const kubelet, root, lock = "/bin/kubelet", "/node/kubelet", "/node/state/kubelet.lock"
	locked := kubelet + " --root-dir=" + root + " --lock-file=" + lock
	for name, test := range map[string]struct {
		line          string
		opened, info  string // of the other one, which is found as well
		runs, waiting []int
	}{
		"it waits":                 {locked, lock, "flags:\t02100002\n", []int{7}, []int{9}},
		"it has not opened it yet": {locked, "", "", []int{7}, []int{9}},
		"it holds it too":          {locked, lock + " (deleted)", "lock:\t1: FLOCK  ADVISORY  WRITE 9 00:24:1 0 EOF\n", []int{7, 9}, nil},
		"it has no lock":           {kubelet + " --root-dir=" + root, "", "", []int{7, 9}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			table := newProcessTable(kubelet, root)
			table.proc = processes(t, map[int]string{7: locked, 9: test.line})
			opens(t, filepath.Join(table.proc, "7"), lock, "lock:\t1: FLOCK  ADVISORY  WRITE 7 00:24:1 0 EOF\n")
			if test.opened != "" {
				opens(t, filepath.Join(table.proc, "9"), test.opened, test.info)
			}
			got := table.kubelets()
			if slices.Sort(got); !slices.Equal(got, test.runs) || !slices.Equal(table.waiting, test.waiting) {
				t.Errorf("%v run, and %v wait", got, table.waiting)
			}
		})
	}
	since := map[int]time.Time{}
	if pid := forgotten(since, []int{9}); pid != 0 {
		t.Error("it has only just begun to wait")
	}
	since[9] = time.Now().Add(-2 * mostWaiting)
	if pid := forgotten(since, []int{9}); pid != 9 {
		t.Errorf("it waits for too long: %d", pid)
	}
	if pid := forgotten(since, nil); pid != 0 || len(since) != 0 {
		t.Errorf("it is gone: %d, %v", pid, since)
	}
}

// opens gives a process an open file.
func opens(t *testing.T, process, file, info string) {
	t.Helper()
	for _, folder := range []string{"fd", "fdinfo"} {
		if err := os.Mkdir(filepath.Join(process, folder), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Symlink(file, filepath.Join(process, "fd/5")), os.WriteFile(filepath.Join(process, "fdinfo/5"), []byte(info), 0o600)); err != nil {
		t.Fatal(err)
	}
}

func processes(t *testing.T, lines map[int]string) string {
	t.Helper()
	folder := t.TempDir()
	for pid, line := range lines {
		process := filepath.Join(folder, strconv.Itoa(pid))
		if err := os.Mkdir(process, 0o700); err != nil {
			t.Fatal(err)
		}
		words := strings.ReplaceAll(line, " ", "\x00")
		if line != "" {
			words += "\x00"
		}
		if err := os.WriteFile(filepath.Join(process, "cmdline"), []byte(words), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

func TestWhatTheNodeMustNeverSay(t *testing.T) {
	said := func(t truth, status corev1.ConditionStatus, reason, message, statusError string) view {
		return view{truth: t, config: corev1.NodeConfigStatus{Error: statusError}, condition: corev1.NodeCondition{Status: status, Reason: reason, Message: message},
			status: nodev1.Status{Reason: reason}}
	}
	otherwise, unapproved := said(running, "True", "Active", "x", ""), said(running, "False", "WouldDisrupt", "x", "")
	otherwise.status.Reason = "Rejected"
	approved := unapproved
	approved.status.Hold = &nodev1.Hold{Approval: "0123456789ab"}
	for name, test := range map[string]struct {
		v      view
		broken bool
	}{
		"programs are told otherwise":     {otherwise, true},
		"held, and nothing lets it by":    {unapproved, true},
		"held":                            {approved, false},
		"active":                          {said(running, "True", "Active", "x", ""), false},
		"in trial":                        {said(truth{fresh, fresh, old}, "True", "InTrial", "x", ""), false},
		"applying, with the old active":   {said(truth{fresh, fatal, old}, "Unknown", "Applying", "x", ""), false},
		"a deadly lastKnownGood":          {said(truth{fatal, fatal, fatal}, "True", "Active", "x", ""), true},
		"a refused lastKnownGood":         {said(truth{bad, old, bad}, "False", "Refused", "x", validateError), true},
		"a refused one active":            {said(truth{bad, bad, old}, "Unknown", "Applying", "x", ""), true},
		"active, and an error":            {said(running, "True", "Active", "x", runError), true},
		"local, and an error":             {said(truth{}, "True", "Local", "x", downloadError), true},
		"rejected, with the error before": {said(truth{fatal, old, old}, "False", "Rejected", "x", downloadError), true},
		"active, and not lastKnownGood":   {said(truth{fresh, fresh, old}, "True", "Active", "x", ""), true},
		"in trial, and not active":        {said(truth{fresh, old, old}, "True", "InTrial", "x", ""), true},
		"false, and active":               {said(running, "False", "Active", "x", ""), true},
		"true, and rejected":              {said(truth{fatal, fatal, old}, "True", "Rejected", "x", runError), true},
		"two lines":                       {said(running, "True", "Active", "x\ny", ""), true},
		"too long":                        {said(running, "True", "Active", strings.Repeat("x", 1025), ""), true},
	} {
		if broken := test.v.broken(); (broken != "") != test.broken {
			t.Errorf("%s: %q", name, broken)
		}
	}
}
