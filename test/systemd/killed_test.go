//go:build systemd

package systemd

import (
	"fmt"
	"testing"
)

// killer is a systemctl that kills who has called it, at the call of that number: before it does what it was asked for, or after.
const killer = `#!/bin/sh
calls=$(cat /run/calls 2>/dev/null || echo 0)
calls=$((calls + 1))
echo $calls >/run/calls
[ "$KILL_BEFORE" != $calls ] || { kill -KILL $PPID; exit 1; }
/usr/bin/systemctl "$@"
code=$?
[ "$KILL_AFTER" != $calls ] || kill -KILL $PPID
exit $code
`

// Enable and disable that are killed between any two of their steps leave a kubelet that runs, and can be typed again.
func TestEnableAndDisableKilledAtEachStep(t *testing.T) {
	if testing.Short() {
		t.Skip("NOT TESTED in make test, for it takes minutes: make test-long does")
	}
	for _, when := range []string{"BEFORE", "AFTER"} {
		t.Run(when, func(t *testing.T) {
			onEachSystemd(t, func(t *testing.T, m *machine) {
				m.joined()
				m.must("dpkg -i %s", m.deb("old"))
				m.write("/root/bin/systemctl", killer)
				m.must("chmod +x /root/bin/systemctl")
				killed := func(command string, call int) bool {
					_, err := m.try("rm -f /run/calls; PATH=/root/bin:$PATH KILL_%s=%d kubelet-supervisor %s", when, call, command)
					await(t, fmt.Sprintf("one kubelet after %s was killed %s call %d", command, when, call), func() error {
						if found := m.pids(m.kubelet); len(found) != 1 {
							return fmt.Errorf("kubelets %v", found)
						}
						return nil
					})
					return err != nil
				}
				last := 0
				for call := 1; killed("enable --now", call); call++ {
					m.must("kubelet-supervisor enable --now")
					m.healthy("kubelet")
					m.must("kubelet-supervisor disable")
					m.plain()
					last = call
				}
				if last < 4 {
					t.Errorf("enable was killed at %d calls", last)
				}
				last = 0
				for call := 1; killed("disable", call); call++ {
					m.must("kubelet-supervisor disable")
					m.plain()
					m.must("kubelet-supervisor enable --now")
					m.healthy("kubelet")
					last = call
				}
				if last < 3 {
					t.Errorf("disable was killed at %d calls", last)
				}
				if left := m.must("ls /run/systemd/system | grep probe || true"); left != "" {
					t.Logf("left until the next boot: %s", left)
				}
			})
		})
	}
}
