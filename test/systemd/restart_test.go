//go:build systemd

package systemd

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubelet-supervisor/kubelet-supervisor/store"
)

func TestARestartOfTheUnitReplacesTheKubeletOnce(t *testing.T) {
	onEachSystemd(t, func(t *testing.T, m *machine) {
		before := m.supervised()
		starts := len(m.starts())
		m.must("systemctl restart kubelet")
		if after := m.healthy("kubelet"); after == before {
			t.Errorf("still %s", before)
		}
		if now := len(m.starts()); now != starts+1 {
			t.Errorf("%d kubelets were started, not 1", now-starts)
		}
	})
}

func TestStopAndStart(t *testing.T) {
	onEachSystemd(t, func(t *testing.T, m *machine) {
		m.supervised()
		m.must("systemctl stop kubelet")
		if left := m.pids(m.kubelet); len(left) > 0 || m.property("kubelet", "ActiveState") != "inactive" {
			t.Errorf("kubelets %v are left, the unit is %s with result %s", left, m.property("kubelet", "ActiveState"), m.property("kubelet", "Result"))
		}
		m.must("systemctl start kubelet")
		m.healthy("kubelet")
	})
}

// However the supervisor is killed, there is one kubelet in the end: with the unit's own way to kill, which takes the kubelet along, and
// with the one that many set so that the mounts of running pods live on, which leaves the kubelet behind.
func TestAKilledSupervisorEndsWithOneKubelet(t *testing.T) {
	for _, mode := range []string{"control-group", "mixed", "process"} {
		t.Run(mode, func(t *testing.T) {
			onEachSystemd(t, func(t *testing.T, m *machine) {
				m.write("/etc/systemd/system/kubelet.service.d/50-kill.conf", "[Service]\nKillMode="+mode+"\n")
				before := m.supervised()
				if now := m.property("kubelet", "KillMode"); now != mode {
					t.Fatalf("KillMode=%s: the drop-in does not keep it", now)
				}
				main := m.property("kubelet", "MainPID")
				m.must("kill -KILL %s", main)
				await(t, "another supervisor", func() error {
					if now := m.property("kubelet", "MainPID"); now == main || now == "0" {
						return fmt.Errorf("MainPID=%s", now)
					}
					return nil
				})
				if after := m.healthy("kubelet"); after == before {
					t.Errorf("still %s", before)
				}
			})
		})
	}
}

// A supervisor that hangs is systemd's to end; the unit must not end as failed.
func TestASupervisorThatHangs(t *testing.T) {
	onEachSystemd(t, func(t *testing.T, m *machine) {
		m.write("/etc/systemd/system/kubelet.service.d/zzz-impatient.conf", "[Service]\nWatchdogSec=2s\nKillMode=process\n")
		before := m.supervised()
		main := m.property("kubelet", "MainPID")
		m.must("kill -STOP %s", main)
		await(t, "systemd to notice", func() error {
			if now := m.property("kubelet", "NRestarts"); now == "0" {
				return errors.New("no restart")
			}
			return nil
		})
		if after := m.healthy("kubelet"); after == before {
			t.Errorf("still %s", before)
		}
	})
}

// A reboot in the middle of a trial goes on with it: the same configuration, no failure counted, the healthy time kept.
func TestARebootInTheMiddleOfATrial(t *testing.T) {
	onEachSystemd(t, func(t *testing.T, m *machine) {
		m.onTrial()
		m.reboot()
		m.healthy("kubelet")
		s, err := m.status()
		if err != nil || s.Trial == nil || s.Trial.Failures != 0 || s.Trial.Healthy.Duration < 2*time.Second || s.Trial.Left.Duration <= 0 {
			t.Errorf("%v, the trial is %+v in %s", err, s.Trial, s.text)
		}
		starts := m.starts()
		if last := strings.Join(starts[len(starts)-1].Argv, " "); !strings.Contains(last, "--config=/run/kubelet-supervisor/effective/kubelet.yaml") {
			t.Errorf("the kubelet was started with %s", last)
		}
	})
}

// assign checkpoints a configuration, as the supervisor would on behalf of the Node.
func (m *machine) assign(more string) {
	m.Helper()
	folder := m.outside("/var/lib/kubelet-supervisor")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		m.Fatal(err)
	}
	s, err := store.Open(folder)
	if err != nil {
		m.Fatal(err)
	}
	source := corev1.ConfigMapNodeConfigSource{Namespace: "kube-system", Name: "a", UID: "u1", ResourceVersion: "1", KubeletConfigKey: "kubelet"}
	err = errors.Join(s.SaveCheckpoint(source, map[string]string{"kubelet": configuration + more}), s.SaveSource(store.Assigned, &source), s.Close())
	if err != nil {
		m.Fatal(err)
	}
}
