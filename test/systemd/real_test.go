//go:build systemd

package systemd

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/cluster"
)

// The real kubelet, without a cluster: it is ready and feeds its watchdog, goes on through a reload and an upgrade of the supervisor,
// is replaced by a restart, and also when it hangs.
func TestTheRealKubelet(t *testing.T) {
	onEachSystemd(t, func(t *testing.T, m *machine) {
		m.joinedForReal("")
		m.must("dpkg -i %s", m.deb("old"))
		m.must("kubelet-supervisor enable --now")
		before := m.healthy("kubelet")
		main := m.property("kubelet", "MainPID")

		m.must("systemctl reload kubelet")
		m.must("dpkg -i %s", m.deb("new"))
		m.isUpgraded(main, before)

		m.write("/etc/systemd/system/kubelet.service.d/zzz-impatient.conf", "[Service]\nWatchdogSec=3s\n")
		m.must("systemctl daemon-reload && systemctl restart kubelet")
		hangs := m.healthy("kubelet")
		if hangs == before {
			t.Errorf("still %s", before)
		}
		main = m.property("kubelet", "MainPID")
		await(t, "a kubelet that has said that it is alive", func() error {
			if ran := m.property("kubelet", "ActiveEnterTimestampMonotonic"); !m.olderThan(ran, 3*time.Second) {
				return errors.New("too young")
			}
			return nil
		})
		m.must("kill -STOP %s", hangs)
		await(t, "another kubelet", func() error {
			if pids := m.pids(m.kubelet); len(pids) != 1 || pids[0] == hangs {
				return fmt.Errorf("kubelets %v", pids)
			}
			return nil
		})
		m.healthy("kubelet")
		if now := m.property("kubelet", "MainPID"); now != main || m.property("kubelet", "NRestarts") != "0" {
			t.Errorf("the supervisor is %s and not %s", now, main)
		}
	})
}

// joinedForReal is a node with a real kubelet that runs alone, and more in its configuration.
func (m *machine) joinedForReal(more string) {
	m.Helper()
	m.must("install /shared/containerd /usr/bin/containerd && touch /dev/kmsg") // the kubelet reads the kernel's log
	m.ownSysctls()
	m.must("systemd-run --unit=containerd %s /usr/bin/containerd", m.controllers("--property=BindPaths=%s"))
	await(m.T, "containerd", func() error {
		if !m.has("/run/containerd/containerd.sock") {
			return errors.New("no socket")
		}
		return nil
	})
	m.kubeadm("real")
	m.join()
	m.write("/usr/lib/systemd/system/kubelet.service.d/10-kubeadm.conf", strings.ReplaceAll(kubeadmDropIn, "$KUBELET_KUBECONFIG_ARGS ", ""))
	m.write("/etc/systemd/system/kubelet.service.d/20-controllers.conf", "[Service]\n"+m.controllers("BindPaths=%s")+"\n")
	m.write("/var/lib/kubelet/config.yaml", m.realConfiguration()+more)
	m.must("systemctl daemon-reload && systemctl start kubelet")
}

// ownSysctls are files for the machine's kubelet to write, for the host's are not its own.
func (m *machine) ownSysctls() {
	m.Helper()
	for _, name := range []string{"vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops", "kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes"} {
		m.must("mkdir -p $(dirname /run/sysctl/%[1]s) && echo 0 >/run/sysctl/%[1]s && mount --bind /run/sysctl/%[1]s /proc/sys/%[1]s", name)
	}
}

// olderThan tells whether a monotonic time of systemd's, in microseconds, is as long ago as that.
func (m *machine) olderThan(since string, age time.Duration) bool {
	m.Helper()
	then, err := strconv.ParseInt(since, 10, 64)
	if err != nil {
		m.Fatal(err)
	}
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		m.Fatal(err)
	}
	return time.Duration(now.Nano())-time.Duration(then)*time.Microsecond > age
}

// controllers is the line that gives a unit the host's controllers, where the machine has none of its own.
func (m *machine) controllers(format string) string {
	if m.has("/sys/fs/cgroup/cgroup.controllers") && m.has("/run/cgroup/cgroup.controllers") {
		return ""
	}
	return strings.ReplaceAll(format, "%s", "/run/cgroup:/sys/fs/cgroup")
}

// realConfiguration is what a real kubelet needs to run on such a machine.
func (m *machine) realConfiguration() string {
	root := ""
	if m.controllers("x") != "" {
		root = "cgroupRoot: /" + m.name() + "\n"
	}
	return configuration + root + `authentication: {anonymous: {enabled: false}, webhook: {enabled: false}}
authorization: {mode: AlwaysAllow}
cgroupDriver: cgroupfs
failCgroupV1: false
failSwapOn: false
makeIPTablesUtilChains: false
resolvConf: ""
localStorageCapacityIsolation: false
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
imageGCHighThresholdPercent: 100
evictionHard: {memory.available: 50Mi}
featureGates: {KubeletInUserNamespace: true}
` + cluster.KubeletOOMScore().Lines()
}
