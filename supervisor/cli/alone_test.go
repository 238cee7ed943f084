//go:build linux

package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor"
	"github.com/kubelet-supervisor/kubelet-supervisor/test/fakenode"
)

// wrongWords are flags of run with something wrong in them, and what is said of it. FOLDER is the node's.
var wrongWords = map[string]struct {
	flags []string
	want  string
}{
	"an unknown flag":               {[]string{"--trial-perid=5m"}, "unknown flag: --trial-perid"},
	"an unknown short flag":         {[]string{"-x"}, "unknown shorthand flag"},
	"a flag of the kubelet":         {[]string{"--config=/etc/kubelet.yaml"}, "unknown flag: --config"},
	"a word":                        {[]string{"start"}, `"start" before --`},
	"a -- too many":                 {[]string{"--"}, "the kubelet -- cannot be run"},
	"a word that is no flag":        {[]string{"--", "--trial-period=5m"}, "the kubelet --trial-period=5m cannot be run"},
	"a time without its value":      {[]string{"--trial-period"}, `invalid argument "--"`},
	"a name without its value":      {[]string{"--node-name"}, "unknown flag: --config"},
	"a time without a unit":         {[]string{"--trial-period=10"}, `invalid argument "10" for "--trial-period"`},
	"a line break":                  {[]string{"--trial-period=10\nREADY=0"}, `invalid argument "10\nREADY=0"`},
	"a relative state folder":       {[]string{"--state-dir=state"}, `--state-dir="state" is not an absolute path`},
	"an empty state folder":         {[]string{"--state-dir="}, `--state-dir="" is not an absolute path`},
	"a relative run folder":         {[]string{"--run-dir=run"}, `--run-dir="run" is not an absolute path; give one such as `},
	"the same folder twice":         {[]string{"--run-dir=FOLDER/./state"}, "are the same folder"},
	"a run folder that is a file":   {[]string{"--run-dir=FOLDER/etc/kubelet.yaml"}, "the run folder cannot be used"},
	"a run folder below a file":     {[]string{"--run-dir", "FOLDER/etc/kubelet.yaml/run"}, "the run folder cannot be used"},
	"a run folder of others":        {[]string{"--run-dir=FOLDER/open"}, "the run folder cannot be used"},
	"an invalid --disruption":       {[]string{"--disruption=maybe"}, `--disruption="maybe" is not one of hold, allow`},
	"an invalid --preflight":        {[]string{"--preflight=maybe"}, `--preflight="maybe" is not one of auto, always, never`},
	"an invalid --log-format":       {[]string{"--log-format=xml"}, `--log-format="xml" is not one of journald, text, json`},
	"no time of trial":              {[]string{"--trial-period=0s"}, "--trial-period=0s is not a time to wait"},
	"a negative start timeout":      {[]string{"--start-timeout=-1s"}, "--start-timeout=-1s is not a time to wait"},
	"no time to stop":               {[]string{"--stop-timeout=0"}, "--stop-timeout=0s is not a time to wait"},
	"a negative spread":             {[]string{"--edit-spread=-1s"}, "--edit-spread=-1s is negative"},
	"no failures allowed":           {[]string{"--trial-failures=0"}, "--trial-failures=0 leaves no try"},
	"no namespaces":                 {[]string{"--config-namespaces="}, "--config-namespaces names no namespace"},
	"an empty namespace":            {[]string{"--config-namespaces=a,,b"}, "--config-namespaces names no namespace"},
	"metrics for everybody":         {[]string{"--metrics-address=0.0.0.0:1"}, `--metrics-address: "0.0.0.0:1" is neither unix:///PATH nor an address of loopback`},
	"metrics for all of IPv6":       {[]string{"--metrics-address=[::]:1"}, `--metrics-address: "[::]:1" is neither unix:///PATH nor an address of loopback`},
	"metrics at a name":             {[]string{"--metrics-address=localhost:10247"}, `--metrics-address: "localhost:10247" is neither unix:///PATH nor an address of loopback`},
	"a socket without a path":       {[]string{"--metrics-address=unix://"}, `--metrics-address: "unix://" is not the absolute path of a socket`},
	"a file that nobody looks for":  {[]string{"--metrics-file=/run/metrics.txt"}, `--metrics-file="/run/metrics.txt" is not an absolute path that ends with .prom`},
	"a relative file of metrics":    {[]string{"--metrics-file=kubelet.prom"}, `--metrics-file="kubelet.prom" is not an absolute path that ends with .prom`},
	"help":                          {[]string{"--help"}, "asks for help"},
	"a wrong word and a log format": {[]string{"--log-format=json", "--verbose"}, "unknown flag: --verbose"},
}

func (n *node) wrong(flags []string) (with []string) {
	for _, flag := range flags {
		with = append(with, strings.ReplaceAll(flag, "FOLDER", n.folder))
	}
	return with
}

// A wrong word never costs the node its kubelet (rule 20): it is started alone, as it is written, and that is said everywhere.
func TestAWrongWordStartsTheKubeletAlone(t *testing.T) {
	for name, row := range wrongWords {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			systemd := n.listenAsSystemd("60000000")
			recorded := filepath.Join(n.folder, "record")
			t.Setenv("FAKE_KUBELET_RECORD", recorded)
			if err := os.Mkdir(filepath.Join(n.folder, "open"), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(filepath.Join(n.folder, "open"), 0o777); err != nil {
				t.Fatal(err)
			}
			p := n.run(n.wrong(row.flags)...)
			n.awaitAlone(p, recorded)
			want := row.want
			systemd.await("READY=1")
			if told := systemd.heard(); len(told) != 1 || !strings.HasPrefix(told[0], "READY=1\nWATCHDOG_USEC=0\nSTATUS=The kubelet runs without the supervisor: ") ||
				!strings.Contains(told[0], want) || strings.Count(told[0], "\n") != 2 {
				t.Errorf("systemd heard %q", told)
			}
			runDir := n.runDir
			if strings.Contains(strings.Join(row.flags, " "), "--run-dir") {
				runDir = defaultFolders + "/run"
			}
			if name == "the same folder twice" {
				runDir = n.stateDir
			}
			record, running, err := supervisor.ReadRecord(runDir)
			if err != nil || !running || record.Child == nil || record.Child.PID != p.Process.Pid || !strings.Contains(record.Alone, want) {
				t.Errorf("state.json: %+v, running %t, %v", record, running, err)
			}
			code, said, _ := does("status", "--run-dir="+runDir)
			if code != exitNotRunning || !strings.Contains(said, "none: ") || !strings.Contains(said, want) || !strings.Contains(said, fmt.Sprintf("pid %d, started alone", p.Process.Pid)) {
				t.Errorf("status: code %d, %s", code, said)
			}
			for _, ask := range []string{"reload", "retry"} { // their signals would end the kubelet
				if code, _, said := does(ask, "--run-dir="+runDir); code != exitNotRunning || !strings.Contains(said, want) {
					t.Errorf("%s: code %d, %s", ask, code, said)
				}
			}
			p.term()
			ours := 0
			for line := range strings.Lines(p.stderr.String()) {
				if strings.Contains(line, "fake.go:1] ") {
					continue
				}
				ours++
				if !strings.Contains(line, "withoutSupervisor") || !strings.Contains(strings.ReplaceAll(line, `\`, ""), strings.ReplaceAll(want, `\`, "")) {
					t.Errorf("a line of the log does not say why: %s", line)
				}
			}
			if ours == 0 {
				t.Error("nothing is said in the log")
			}
		})
	}
}

// awaitAlone waits until p is the kubelet, with the unit's own arguments and nothing of the supervisor's.
func (n *node) awaitAlone(p *supervisorProcess, recorded string) {
	n.t.Helper()
	fakenode.Await(n.t, "the kubelet", func() bool {
		if p.ended() {
			n.t.Fatalf("code %d: %s", p.code, p.stderr.String())
		}
		data, _ := os.ReadFile(recorded)
		return strings.Contains(string(data), fmt.Sprintf(`"event":"start","code":0,"pid":%d,`, p.Process.Pid))
	})
	var last struct {
		Argv        []string
		Environment map[string]string
	}
	lines := strings.Split(strings.TrimSpace(mustRead(n.t, recorded)), "\n")
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil {
		n.t.Fatal(err)
	}
	if !slices.Equal(last.Argv, n.kubelet[1:]) || len(last.Environment) != 0 {
		n.t.Errorf("the kubelet was %+v", last)
	}
}

// A program that finds anything wrong with its flags is no successor: a reload refuses it, and starts nothing.
func TestSelfCheckRefusesWrongWords(t *testing.T) {
	n := newNode(t)
	t.Setenv("FAKE_KUBELET_RECORD", filepath.Join(n.folder, "record"))
	for name, row := range wrongWords {
		if strings.Contains(row.want, "run folder cannot be used") || name == "help" {
			continue // what is not found by the words alone; help is shown
		}
		flags := append([]string{"--" + selfCheckFlag + "=" + supervisor.HandoverVersion}, n.wrong(row.flags)...)
		if code, stdout, stderr := does(n.runArguments(flags...)...); code != exitUsage || stdout != "" || !strings.Contains(stderr, row.want) {
			t.Errorf("%s: code %d, said %q and %q", name, code, stdout, stderr)
		}
	}
	if _, err := os.Stat(filepath.Join(n.folder, "record")); err == nil {
		t.Error("a kubelet was started")
	}
}

// The kubelet that runs alone is the one kubelet: neither a supervisor nor another lone kubelet starts a second one beside it, and one
// that a supervisor left behind ends first.
func TestAKubeletAloneIsTheOnlyOne(t *testing.T) {
	n := newNode(t)
	recorded := filepath.Join(n.folder, "record")
	t.Setenv("FAKE_KUBELET_RECORD", recorded)
	left := n.run()
	left.awaitHealthy()
	code, _, stderr := does(n.runArguments("--verbose")...)
	if code != exitUsage || !strings.Contains(stderr, "another supervisor") || !strings.Contains(stderr, "unknown flag: --verbose") {
		t.Errorf("beside a supervisor: code %d, %s", code, stderr)
	}
	if err := left.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	left.end()
	alone := n.run("--verbose")
	n.awaitAlone(alone, recorded)
	for _, more := range [][]string{nil, {"--verbose"}} {
		if code, _, stderr := does(n.runArguments(more...)...); code != exitUsage || !strings.Contains(stderr, "another supervisor") {
			t.Errorf("%q beside a kubelet alone: code %d, %s", more, code, stderr)
		}
	}
	alone.term()
	after := n.run()
	after.awaitHealthy()
	if got := events(t, recorded); got != "start term exit start term exit start" {
		t.Errorf("the kubelets saw %s", got)
	}
}

// A run folder that cannot be used any more hides no kubelet that an earlier supervisor left.
func TestALeftOverBehindABrokenRunFolder(t *testing.T) {
	n := newNode(t)
	recorded := filepath.Join(n.folder, "record")
	t.Setenv("FAKE_KUBELET_RECORD", recorded)
	left := n.run()
	left.awaitHealthy()
	if err := left.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	left.end()
	if err := os.Chmod(n.runDir, 0o777); err != nil {
		t.Fatal(err)
	}
	n.awaitAlone(n.run(), recorded)
	if got := events(t, recorded); got != "start term exit start" {
		t.Errorf("the kubelets saw %s", got)
	}
}

// events are what the fake kubelets recorded of their lives.
func events(t *testing.T, recorded string) string {
	t.Helper()
	var list []string
	for _, line := range fakes(t, recorded, "start beside term exit") {
		list = append(list, strings.Fields(line)[0])
	}
	return strings.Join(list, " ")
}
