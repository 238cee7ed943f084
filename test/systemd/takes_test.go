//go:build systemd

package systemd

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

const (
	joinFile    = "/etc/kubernetes/bootstrap-kubelet.conf"
	alwaysPlain = "Restart=always\n" + plainStart
)

// enable --now and disable do not stop a healthy kubelet that would not come back.
func TestCommandsThatWouldTakeTheKubelet(t *testing.T) {
	for name, test := range map[string]struct{ service, before, harm, command, says string }{
		"the unit's Environment has KUBELET_ARGS, now with a file that is not there": {
			"Environment=\"KUBELET_ARGS=--config=/var/lib/kubelet/config.yaml\"\nExecStart=/usr/bin/kubelet $KUBELET_ARGS\nRestart=always\n", "true",
			"sed -i s,/config.yaml,/typo.yaml, /usr/lib/systemd/system/kubelet.service && systemctl daemon-reload", "enable --now", "/var/lib/kubelet/typo.yaml"},
		"a condition that no longer holds": {alwaysPlain + "[Unit]\nConditionPathExists=" + joinFile + "\n", "true",
			"rm " + joinFile, "enable --now", "does not hold"},
		"the flags of the next start, in a file that is named after the unit": {
			"EnvironmentFile=-/etc/default/%N\nExecStart=/usr/bin/kubelet --config=/var/lib/kubelet/config.yaml $KUBELET_EXTRA_ARGS\nRestart=always\n",
			"kubelet-supervisor enable --now", "echo KUBELET_EXTRA_ARGS=--config=/typo.yaml >/etc/default/kubelet", "disable", "/typo.yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			onEachSystemd(t, func(t *testing.T, m *machine) {
				m.ownKubelet(test.service)
				m.must("%s", test.before)
				await(t, "a kubelet before", m.oneKubelet)
				before := m.pids(m.kubelet)
				m.must("%s", test.harm)
				if said, err := m.try("kubelet-supervisor %s", test.command); err == nil || !strings.Contains(said, test.says) {
					t.Errorf("%v: %s", err, said)
				}
				if now := m.pids(m.kubelet); strings.Join(now, " ") != strings.Join(before, " ") {
					t.Errorf("the healthy kubelet was %v and is %v", before, now)
				}
			})
		})
	}
}

// What cannot be known before is undone where no kubelet comes back, and said where none does then either.
func TestEnableNowThatBringsNoKubelet(t *testing.T) {
	t.Run("an ExecStartPre fails now", func(t *testing.T) {
		onEachSystemd(t, func(t *testing.T, m *machine) {
			m.ownKubelet(alwaysPlain + "ExecStartPre=/usr/bin/test -e " + joinFile + "\n")
			m.must("rm %s", joinFile)
			said, err := m.try("kubelet-supervisor enable --now")
			if err == nil || !strings.Contains(said, "Not asked: ExecStartPre=/usr/bin/test -e") || !strings.Contains(said, "and no kubelet runs") || strings.Contains(said, "disable gives") {
				t.Errorf("%v: %s", err, said)
			}
		})
	})
	t.Run("it dies under the supervisor", func(t *testing.T) {
		onEachSystemd(t, func(t *testing.T, m *machine) {
			m.joined()
			m.must("mv /usr/bin/kubelet /usr/bin/kubelet.real")
			m.write("/usr/bin/kubelet", "#!/bin/sh\n[ \"$PPID\" = 1 ] || exit 1\nexec /usr/bin/kubelet.real \"$@\"\n")
			m.must("chmod +x /usr/bin/kubelet; systemctl restart kubelet")
			m.kubelet = "/usr/bin/kubelet.real"
			await(t, "the kubelet alone", func() error { return m.only(m.property("kubelet", "MainPID")) })
			m.must("dpkg -i %s", m.deb("old"))
			if said, err := m.try("kubelet-supervisor enable --now"); err == nil || !strings.Contains(said, "no kubelet that lived") {
				t.Errorf("%v: %s", err, said)
			}
			await(t, "the kubelet alone again", func() error { return m.only(m.property("kubelet", "MainPID")) })
		})
	})
}

// check --active asks about the next start, in the unit's own words.
func TestCheckActiveAsksAboutTheNextStart(t *testing.T) {
	const flag = "--pod-infra-container-image=x"
	unit := func(file string) string {
		return "EnvironmentFile=-" + file + "\nExecStart=/usr/bin/kubelet --config=/var/lib/kubelet/config.yaml $KUBELET_EXTRA_ARGS\nRestart=always\n"
	}
	for name, test := range map[string]struct{ service, flags, harm, kubelet string }{
		"the next start is refused, and the present one is not": {unit("/etc/default/kubelet"), "", "echo KUBELET_EXTRA_ARGS=--config=/typo.yaml >/etc/default/kubelet", "/usr/bin/kubelet"},
		"a new kubelet refuses a flag of a file named by %N":    {unit("/etc/default/%N"), flag, "true", "/shared/real"},
		"a new kubelet refuses a flag of the unit's own KUBELET_ARGS": {
			"Environment=\"KUBELET_ARGS=--config=/var/lib/kubelet/config.yaml " + flag + "\"\nExecStart=/usr/bin/kubelet $KUBELET_ARGS\nRestart=always\n", "", "true", "/shared/real"},
	} {
		t.Run(name, func(t *testing.T) {
			onEachSystemd(t, func(t *testing.T, m *machine) {
				m.write("/etc/default/kubelet", "KUBELET_EXTRA_ARGS="+test.flags+"\n")
				m.ownKubelet(test.service)
				m.must("kubelet-supervisor enable --now")
				m.healthy("kubelet")
				m.must("%s", test.harm)
				if said, err := m.try("kubelet-supervisor check --active --kubelet=%s; code=$?; [ $code = 1 ] || { echo rc=$code; false; }", test.kubelet); err != nil {
					t.Error(errors.New(said))
				}
			})
		})
	}
}

// A supervisor that was killed leaves its kubelet in a unit with KillMode=process, as Amazon's have. Where its program is gone, the kubelet that the
// unit starts has nobody beside it (rule 1).
func TestOneKubeletWhereTheSupervisorLeftOne(t *testing.T) {
	onEachSystemd(t, func(t *testing.T, m *machine) {
		m.ownKubelet(alwaysPlain + "KillMode=process\n")
		m.must("kubelet-supervisor enable --now")
		first := m.healthy("kubelet")
		m.must("rm /usr/bin/kubelet-supervisor && kill -KILL %s", m.property("kubelet", "MainPID"))
		var now []string
		await(t, "the unit's own kubelet", func() error {
			if now = m.pids(m.kubelet); len(now) == 1 && now[0] == m.property("kubelet", "MainPID") && now[0] != first {
				return nil
			}
			if len(now) > 1 {
				t.Fatalf("two kubelets: %v", now)
			}
			return fmt.Errorf("kubelets %v", now)
		})
		for end := time.Now().Add(3 * time.Second); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
			if now := m.pids(m.kubelet); len(now) != 1 {
				t.Fatalf("kubelets %v", now)
			}
		}
	})
}
