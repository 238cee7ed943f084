package main

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
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
		return view{truth: t, config: corev1.NodeConfigStatus{Error: statusError}, condition: corev1.NodeCondition{Status: status, Reason: reason, Message: message}}
	}
	for name, test := range map[string]struct {
		v      view
		broken bool
	}{
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
