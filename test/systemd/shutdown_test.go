//go:build systemd

package systemd

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A kubelet that gives its pods time when the host shuts down delays that by a lock of logind's. It is left alone until it has given the
// lock back, and stopped only when systemd stops the unit, as it would be without the supervisor.
func TestAGracefulNodeShutdown(t *testing.T) {
	onEachSystemd(t, func(t *testing.T, m *machine) {
		m.joinedForReal("shutdownGracePeriod: 10m\nshutdownGracePeriodCriticalPods: 1m\n")
		m.write("/etc/default/kubelet", "KUBELET_EXTRA_ARGS=--v=2\n") // to hear it say when it is done
		m.must("dpkg -i %s", m.deb("old"))
		m.must("kubelet-supervisor enable --now")
		kubeletPID := m.healthy("kubelet")
		await(t, "the kubelet's lock", func() error { return m.locked("kubelet") })
		release := m.delayShutdown()
		m.must("systemctl poweroff")
		m.frozen()
		await(t, "the kubelet to be done", func() error {
			if m.locked("kubelet") == nil {
				return errors.New("it holds its lock")
			}
			return nil
		})
		if err := m.only(kubeletPID); err != nil || m.property("kubelet", "ActiveState") != "active" {
			t.Errorf("%v; the unit is %s", err, m.property("kubelet", "ActiveState"))
		}
		m.must("systemctl disable kubelet") // its containerd is not there at the next boot
		release()
		m.gone()

		m.off()
		m.on()
		before := m.entriesOf("--boot=-1", "kubelet", "kubelet")
		done := said(t, before, "completed processing shutdown event, node will shutdown shortly")
		if stopped := said(t, m.entriesOf("--boot=-1", "kubelet", "kubelet-supervisor"), "stopping the kubelet"); stopped < done {
			t.Errorf("the kubelet was done at %d, and stopped at %d", done, stopped)
		}
		if pids := pidsOf(before); pids[len(pids)-1] != kubeletPID {
			t.Errorf("of the kubelets %v the one with pid %s was not the last", pids, kubeletPID)
		}
	})
}

// While a shutdown is under way nothing takes the place of a kubelet that ends, whatever it ran with; afterwards the trial goes on as if
// nothing had been.
func TestAKubeletThatEndsDuringTheShutdown(t *testing.T) {
	onEachSystemd(t, func(t *testing.T, m *machine) {
		kubeletPID := m.onTrial()
		before, err := m.status()
		if err != nil {
			t.Fatal(err)
		}
		starts := len(m.starts())
		release := m.delayShutdown()
		m.must("systemctl reboot")
		m.frozen()
		m.must("kill -KILL %s", kubeletPID)
		await(t, "the supervisor to see it", func() error {
			if s, err := m.status(); err != nil || s.Child != nil {
				return fmt.Errorf("%v %s", err, s.text)
			}
			return nil
		})
		m.must("kubelet-supervisor retry")
		if now := len(m.starts()); now != starts {
			t.Errorf("%d kubelets were started", now-starts)
		}
		release()
		m.gone()

		m.off()
		m.on()
		m.healthy("kubelet")
		after, err := m.status()
		if err != nil || after.Trial == nil || after.Trial.Failures != 0 || after.Trial.Healthy.Duration < before.Trial.Healthy.Duration {
			t.Errorf("%v, the trial was %+v and is %+v", err, before.Trial, after.Trial)
		}
	})
}

// delayShutdown holds a lock of logind's until release is called, so that there is time to look: more than logind's usual five seconds.
func (m *machine) delayShutdown() (release func()) {
	m.Helper()
	m.write("/etc/systemd/logind.conf.d/50-patient.conf", "[Login]\nInhibitDelayMaxSec=10min\n")
	m.must("systemctl kill --signal=HUP systemd-logind")
	await(m.T, "a patient logind", func() error {
		if said := m.must("busctl get-property org.freedesktop.login1 /org/freedesktop/login1 org.freedesktop.login1.Manager InhibitDelayMaxUSec"); said != "t 600000000" {
			return errors.New(said)
		}
		return nil
	})
	m.must("mkfifo /run/released && systemd-run --unit=holds systemd-inhibit --what=shutdown --mode=delay --who=test cat /run/released")
	await(m.T, "the test's lock", func() error { return m.locked("test") })
	return func() { m.must("echo >/run/released") }
}

// locked is nil while somebody delays the host's shutdown.
func (m *machine) locked(who string) error {
	m.Helper()
	said := m.must("busctl call org.freedesktop.login1 /org/freedesktop/login1 org.freedesktop.login1.Manager ListInhibitors")
	if !strings.Contains(said, fmt.Sprintf("\"shutdown\" %q", who)) {
		return errors.New(said)
	}
	return nil
}

// frozen waits until the supervisor has heard of the shutdown.
func (m *machine) frozen() {
	m.Helper()
	await(m.T, "hands off", func() error {
		if record := m.read("/run/kubelet-supervisor/state.json"); !strings.Contains(record, `"Frozen"`) {
			return errors.New(record)
		}
		return nil
	})
}

// gone waits until the machine has shut itself down.
func (m *machine) gone() {
	m.Helper()
	pid, err := strconv.Atoi(m.pid)
	if err != nil {
		m.Fatal(err)
	}
	await(m.T, "the machine's end", func() error {
		if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("pid %d: %v", pid, err)
		}
		return nil
	})
}

// pidsOf are the processes that the entries came from, in the order of their first.
func pidsOf(entries []map[string]any) (pids []string) {
	for _, entry := range entries {
		if pid := entry["_PID"].(string); !slices.Contains(pids, pid) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// onTrial is a node whose kubelet has been two seconds on trial with an assigned configuration, and will be for some minutes.
func (m *machine) onTrial() (kubeletPID string) {
	m.Helper()
	m.kubelet = "/disk/kubelet" // the trial is one of this very file, which another device number would make another one
	m.kubeadm("fake")
	m.join()
	m.must("dpkg -i %s", m.deb("old"))
	m.must("kubelet-supervisor enable")
	m.assign("maxPods: 99\n")
	m.must("systemctl start kubelet")
	kubeletPID = m.healthy("kubelet")
	await(m.T, "two seconds of trial", func() error {
		s, err := m.status()
		if err != nil || s.Trial == nil || s.Trial.Healthy.Duration < 2*time.Second {
			return fmt.Errorf("%v %s", err, s.text)
		}
		return nil
	})
	return kubeletPID
}
