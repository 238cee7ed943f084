//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
)

// waitingKubelet is a node in the middle of a change from one configuration to another: the kubelet that runs was asked to end, and is
// frozen, so that the next one waits until it is thawed.
type waitingKubelet struct {
	*supervised
	t                *testing.T
	parts            localParts
	flags            options
	running, waiting int // pids
	two              *configMap
}

func (n *node) withAKubeletThatWaits(t *testing.T) *waitingKubelet {
	t.Helper()
	w := &waitingKubelet{t: t, parts: n.makeLocalParts(t)}
	w.flags = w.parts.options("--trial-period=1h")
	w.supervised = n.startedLocal(t, w.flags)
	one := n.putConfigMap(t, "one", map[string]string{"kubelet": n.kubeletConfig(with("maxPods", 81))})
	n.assign(t, one.assignment("kubelet"))
	n.awaitReason(t, one.assignment("kubelet"), "InTrial")
	w.running = w.kubelet(t).ID
	w.signal(w.running, syscall.SIGSTOP)
	t.Cleanup(w.thaw)
	w.two = n.putConfigMap(t, "two", map[string]string{"kubelet": n.kubeletConfig(with("maxPods", 82), otherPorts)})
	n.assign(t, w.two.assignment("kubelet"))
	await(t, "a kubelet waits, and the one that runs is being stopped", func() error {
		past, wait := w.locks(t)
		if phase := w.record(t).Phase; len(wait) != 1 || phase != "Stopping" {
			return fmt.Errorf("past the lock are %v, %v wait, phase %s", past, wait, phase)
		}
		w.waiting = wait[0]
		return nil
	})
	return w
}

func (w *waitingKubelet) signal(pid int, signal syscall.Signal) {
	w.t.Helper()
	if err := syscall.Kill(pid, signal); err != nil {
		w.t.Fatal(err)
	}
}

func (w *waitingKubelet) thaw() { _ = syscall.Kill(w.running, syscall.SIGCONT) }

func (w *waitingKubelet) awaitTwo() {
	w.t.Helper()
	v := w.node.awaitReason(w.t, w.two.assignment("kubelet"), "InTrial")
	wantStatus(w.t, v, w.two.source("kubelet"), w.two.source("kubelet"), nil, "")
}

func (w *waitingKubelet) remove(path string) {
	w.t.Helper()
	if err := os.RemoveAll(path); err != nil {
		w.t.Fatal(err)
	}
}

// Whatever happens while a kubelet waits: never are two past the lock, always is there one in the end, and none that waited is forgotten.
func TestLongWhatHappensWhileAKubeletWaits(t *testing.T) {
	n := sharedNode(t)
	const goesOn, ends, mayDoBoth = "goes on", "never comes past the lock", "may have come past the lock, and ends"
	for name, row := range map[string]struct {
		happens func(w *waitingKubelet)
		waiting string // what the one that waited does
	}{
		"nothing":                   {func(w *waitingKubelet) { w.thaw(); w.awaitTwo() }, goesOn},
		"the running one is killed": {func(w *waitingKubelet) { w.signal(w.running, syscall.SIGKILL); w.awaitTwo() }, goesOn},
		"the waiting one is killed": {func(w *waitingKubelet) { w.signal(w.waiting, syscall.SIGKILL); w.thaw(); w.awaitTwo() }, ends},
		"the lock file is removed": {func(w *waitingKubelet) {
			w.remove(filepath.Join(w.StateDir, "kubelet.lock"))
			w.thaw()
			w.awaitTwo()
			three := n.putConfigMap(w.t, "three", map[string]string{"kubelet": n.kubeletConfig(with("maxPods", 83))})
			n.assign(w.t, three.assignment("kubelet"))
			n.awaitReason(w.t, three.assignment("kubelet"), "InTrial")
		}, mayDoBoth},
		"STATE_DIR is removed": {func(w *waitingKubelet) {
			w.remove(w.StateDir)
			w.thaw()
			if now := w.kubelet(w.t); now.ID != w.waiting {
				w.t.Errorf("the kubelet that waited is %d, and %d runs", w.waiting, now.ID)
			}
		}, goesOn},
		"a newer assignment": {func(w *waitingKubelet) {
			three := n.putConfigMap(w.t, "three", map[string]string{"kubelet": n.kubeletConfig(with("maxPods", 83))})
			n.assign(w.t, three.assignment("kubelet"))
			w.thaw()
			n.awaitReason(w.t, three.assignment("kubelet"), "InTrial")
		}, mayDoBoth},
		"a removal": {func(w *waitingKubelet) { n.unassign(w.t); w.thaw(); n.awaitReason(w.t, "", "Local") }, mayDoBoth},
		"a stop": {func(w *waitingKubelet) {
			w.signal(w.pid(), syscall.SIGTERM)
			await(w.t, "the one that waited ends before the one that runs", func() error {
				if past, wait := w.locks(w.t); len(wait) > 0 || !slices.Equal(past, []int{w.running}) {
					return fmt.Errorf("past the lock are %v, %v wait", past, wait)
				}
				return nil
			})
			w.thaw()
			w.stop(w.t)
		}, ends},
		"a reload": {func(w *waitingKubelet) {
			w.signal(w.pid(), syscall.SIGHUP)
			w.thaw()
			w.awaitTwo()
			await(w.t, "the reload is answered", func() error {
				if r := w.record(w.t); r.Reloads != 1 || r.ReloadFailure != "" || r.Supervisor.PID != w.pid() {
					return fmt.Errorf("%+v", r)
				}
				return nil
			})
		}, goesOn},
		"an edited drop-in": {func(w *waitingKubelet) {
			const edited = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\neventRecordQPS: 9\nport: 10250\n" // where configz is asked
			writeFile(w.t, filepath.Join(w.parts.dropIns, "10-more.conf"), edited)
			w.thaw()
			w.awaitTwo()
			if got := w.configz(w.t)["eventRecordQPS"]; got != 9.0 {
				w.t.Errorf("eventRecordQPS is %v", got)
			}
		}, mayDoBoth},
		"the kubelet's program is replaced": {func(w *waitingKubelet) { copyProgram(w.t, n.Kubelet(), w.parts.kubelet); w.thaw(); w.awaitTwo() }, mayDoBoth},
		"the supervisor is killed, and the running one after it": {func(w *waitingKubelet) {
			w.supervised.kill(w.t)
			w.signal(w.running, syscall.SIGKILL)
			await(w.t, "the one that waited is let through", func() error {
				if past, _ := w.locks(w.t); !slices.Equal(past, []int{w.waiting}) {
					return fmt.Errorf("past the lock are %v", past)
				}
				return nil
			})
			after := w.flags
			after.After = w.supervised
			w.supervised = n.startSupervisor(w.t, after)
			w.awaitTwo()
		}, mayDoBoth},
	} {
		t.Run(name, func(t *testing.T) {
			n.reset(t)
			w := n.withAKubeletThatWaits(t)
			saw := w.watchLocks(t)
			row.happens(w)
			if name != "a stop" {
				w.thaw()
				if now := w.kubelet(t).ID; (now == w.waiting) != (row.waiting == goesOn) {
					t.Errorf("the kubelet that waited was %d, and %d runs: it %s", w.waiting, now, row.waiting)
				}
			}
			if past, _ := saw(); row.waiting == ends && slices.Contains(past, w.waiting) {
				t.Errorf("kubelet %d waited, and came past the lock", w.waiting)
			}
		})
	}
}
