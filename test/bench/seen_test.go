//go:build linux

package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/cluster"
)

func TestHealthSumsTheTimesInWhichItWasDown(t *testing.T) {
	at := func(ms int) time.Time { return time.UnixMilli(int64(ms)) }
	h := &health{changes: []healthChange{{at(0), false}}}
	for _, poll := range []struct {
		begin, end int
		healthy    bool
	}{{5, 6, false}, {10, 11, true}, {15, 16, true}, {20, 21, false}, {25, 26, false}, {30, 31, true}, {40, 41, false}, {50, 52, true}} {
		h.saw(at(poll.begin), at(poll.end), poll.healthy)
	}
	for begin, expected := range map[int]int{0: 11 + 11 + 12, 11: 11 + 12, 25: 6 + 12, 52: 0} {
		if down := h.down(at(begin)); down != time.Duration(expected)*time.Millisecond {
			t.Errorf("down since %d is %s, expected was %d ms", begin, down, expected)
		}
	}
	if since := h.changesSince(at(31)); len(since) != 2 || since[0].healthy || !since[1].healthy {
		t.Errorf("the changes since 31 are %v", since)
	}
}

func TestBytesAreThoseOfAllConnectionsOfAProcess(t *testing.T) {
	seen := kilobytesIn(`ESTAB 0 0 127.0.0.1:40000 127.0.0.1:6443 users:(("kubelet",pid=12,fd=9)) timer:(keepalive,1sec,0) ino:1 sk:1 cubic rto:201 bytes_sent:1500 bytes_acked:1501 bytes_received:500 segs_out:9
ESTAB 0 0 127.0.0.1:40002 127.0.0.1:6443 users:(("kubelet",pid=12,fd=10)) cubic bytes_sent:1000 bytes_acked:1001 bytes_received:3000
ESTAB 0 0 127.0.0.1:40004 127.0.0.1:6443 users:(("kubelet-supervi",pid=7,fd=10)) cubic bytes_sent:250 bytes_acked:251 bytes_received:250
TIME-WAIT 0 0 127.0.0.1:40006 127.0.0.1:6443
`)
	if !maps.Equal(seen, map[int]float64{12: 6, 7: 0.5}) {
		t.Errorf("seen: %v", seen)
	}
}

func TestTraceIsInTheOrderOfTime(t *testing.T) {
	began := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	at := func(ms int) time.Time { return began.Add(time.Duration(ms) * time.Millisecond) }
	log := `I0101 00:00:00.000000 kubelet's own
{"level":"info","ts":"2026-01-01T00:00:00.090+0000","msg":"pre-flight"}
{"level":"info","ts":"2026-01-01T00:00:00.091+0000","msg":"Kubelet restarting to use kube-system/a"}
{"level":"info","ts":"2026-01-01T00:00:00.091+0000","msg":"stopping the kubelet"}
{"level":"info","ts":"2026-01-01T00:00:00.100+0000","msg":"starting the kubelet with kube-system/a/kubelet (UID 1, resourceVersion 2)"}
{"level":"info","ts":"2026-01-01T00:00:01.000+0000","msg":"after the end"}
`
	trace := trace{began: began, answered: at(5), ended: at(400), end: "the Node names it active", lines: ownLines(log), down: []healthChange{{at(95), false}, {at(380), true}}}
	expected := []Phase{
		{"the API server has answered the PATCH of the Node", 5, 5}, {"log: pre-flight's verdict", 90, 85}, {"log: stopping the kubelet", 91, 1},
		{"healthz, polled: does not answer", 95, 4}, {"log: starting the kubelet with kube-system/a/kubelet", 100, 5}, {"healthz, polled: answers", 380, 280}, {"the Node names it active", 400, 20},
	}
	if seen := trace.phases(); fmt.Sprint(seen) != fmt.Sprint(expected) {
		t.Errorf("seen:\n%v\nexpected was:\n%v", seen, expected)
	}
}

func TestSymbolsBelongToModules(t *testing.T) {
	modules := []string{"github.com/x/y", "k8s.io/api", "k8s.io/apimachinery", "gopkg.in/yaml.v3"}
	for symbol, expected := range map[string]string{
		"k8s.io/api/core/v1.(*Node).Marshal": "k8s.io/api", "k8s.io/apimachinery/pkg/types.x": "k8s.io/apimachinery",
		"type:*k8s.io/api/core/v1.Node": "k8s.io/api", "github.com/x/y/sub.Do[go.shape.int]": "github.com/x/y", "main.run": "github.com/x/y",
		"runtime.mallocgc": standard, "gopkg.in/yaml%2ev3.table": "gopkg.in/yaml.v3",
	} {
		if seen := moduleOf(symbol, modules); seen != expected {
			t.Errorf("%s is of %s, expected was %s", symbol, seen, expected)
		}
	}
}

func TestGoroutinesAreCountedInADump(t *testing.T) {
	dump := "goroutine 9 is somebody's word\nSIGQUIT: quit\nPC=0x1 m=0\n\ngoroutine 0 gp=0x1 m=0 [idle]:\nx\n\ngoroutine 1 gp=0x2 [select]:\nmain.main()\n\ngoroutine 7 [IO wait]:\n"
	if n := goroutinesIn(dump); n != 2 {
		t.Errorf("%g goroutines, expected were 2", n)
	}
	if n := goroutinesIn("ended without a dump\ngoroutine 1 [x]:\n"); n != 0 {
		t.Errorf("%g goroutines without a dump", n)
	}
}

func TestKubeletsAreFoundInTheOrderOfTheirVersions(t *testing.T) {
	parts := t.TempDir()
	for _, name := range []string{"kubelet-1.36.3", "kubelet-1.9.10", "kubelet-1.9.2", "kube-apiserver-1.36.3", "kubectl-1.36.3", "etcd"} {
		if err := os.WriteFile(filepath.Join(parts, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if seen := versionsAmong(parts, "kubelet"); !slices.Equal(seen, []string{"1.9.2", "1.9.10", "1.36.3"}) {
		t.Errorf("seen: %v", seen)
	}
}

func TestOneLineIsShort(t *testing.T) {
	for text, expected := range map[string]string{" a\n b ": "a b", strings.Repeat("ü", 600): strings.Repeat("ü", 550) + "…"} {
		if seen := oneLine(text); seen != expected {
			t.Errorf("%q became %q", text, seen)
		}
	}
}

// The removed feature's kubelet ends whenever it is to change.
func TestRestartLoopStartsAgainUntilItIsStopped(t *testing.T) {
	folder := t.TempDir()
	words := append(restartLoop(time.Millisecond), "sh", "-c", "echo x >>"+folder+"/starts; [ $(wc -l <"+folder+"/starts) -lt 5 ] || exec sleep 1000")
	p, err := cluster.Start(exec.Command(words[0], words[1:]...), filepath.Join(folder, "log"))
	if err != nil {
		t.Fatal(err)
	}
	err = await(t.Context(), "the fifth start is the last", func() error {
		if words, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", p.PID())); err != nil || len(words) == 0 {
			return errors.Join(err, errors.New("it has no child"))
		}
		if starts, err := os.ReadFile(folder + "/starts"); err != nil || len(starts) < 10 {
			return errors.Join(err, fmt.Errorf("%d starts", len(starts)/2))
		}
		return nil
	})
	if err := errors.Join(err, p.Stop(stopPatience)); err != nil {
		t.Error(err)
	}
	if log, err := p.LogFrom(0); err != nil || strings.Count(log, startingWords) != 5 {
		t.Errorf("the log tells other than 5 starts: %v\n%s", err, log)
	}
	err = await(t.Context(), "nothing of the loop is left", func() error {
		if err := syscall.Kill(-p.PID(), 0); !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("its process group: %v", err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
