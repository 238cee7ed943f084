//go:build linux

package cli

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/kubelet"
)

// otherUnits are those of products that run a kubelet in a unit of another name, and what the kubelet is there.
var otherUnits = map[string]string{
	"k3s.service":                           "it is a part of k3s",
	"k3s-agent.service":                     "it is a part of k3s",
	"rke2-server.service":                   "it is a part of RKE2",
	"rke2-agent.service":                    "it is a part of RKE2",
	"k0scontroller.service":                 "it is a part of k0s",
	"k0sworker.service":                     "it is a part of k0s",
	"snap.microk8s.daemon-kubelite.service": "it is a part of MicroK8s",
	"snap.microk8s.daemon-kubelet.service":  "it is a part of MicroK8s",
	"snap.kubelet-eks.daemon.service":       "snap starts it",
	"snap.kubelet.daemon.service":           "snap starts it",
	"snap.k8s.kubelet.service":              "snap starts it",
}

// kubeletPorts are where a kubelet listens by default: healthz, and its API.
var kubeletPorts = []uint16{10248, 10250}

// kubeletNames are in the names of programs that are, or have in them, a kubelet.
var kubeletNames = []string{"kubelet", "kubelite", "k3s", "rke2", "k0s", "hyperkube", "microk8s"}

// runningKubelet is a process that listens where kubelets do.
type runningKubelet struct {
	pid     int
	program string
	unit    string // whose cgroup it is in
}

// processes are those of this machine, unless a test has others.
type processes struct {
	kubelets    func() []runningKubelet
	commandLine func(pid int) []string
}

func (p processes) listening() []runningKubelet {
	if p.kubelets != nil {
		return p.kubelets()
	}
	return runningKubelets()
}

// words are the command line of one.
func (p processes) words(pid int) []string {
	if p.commandLine != nil {
		return p.commandLine(pid)
	}
	return commandLine(pid)
}

// checkNoOther refuses to take over a unit while another one runs the node's kubelet: the two would fight for its ports and its pods.
func (p processes) checkNoOther(ctx context.Context, unit string, state unitState) error {
	if state.ActiveState == "active" {
		return nil // this one runs a kubelet: none is added
	}
	list, err := systemctl(ctx, slices.Concat([]string{"list-units", "--type=service", "--state=active,activating", "--plain", "--no-legend"},
		otherUnitNames())...)
	if err != nil {
		return err
	}
	for line := range strings.Lines(list) {
		other := cmp.Or(strings.Fields(line)...)
		if why := otherUnits[other]; why != "" && other != unit {
			return fmt.Errorf("%s runs this node's kubelet, and %s: enable cannot take it over, and never starts a second kubelet; enable "+
				"--unit=%s says why", other, why, other)
		}
	}
	for _, k := range p.listening() {
		switch {
		case k.unit == "" || k.unit == unit || k.unit == ownUnit: // ours ends when another one starts (Conflicts=)
		case !strings.HasSuffix(k.unit, ".service"):
			return fmt.Errorf("a kubelet runs already: process %d (%s) in %s, which is no service, but a container, say, or a shell; enable "+
				"never starts a second kubelet: stop that one before, or leave the node as it is", k.pid, k.program, k.unit)
		default:
			return fmt.Errorf("a kubelet runs already: process %d (%s) of %s; enable never starts a second one: name that unit, with "+
				"kubelet-supervisor enable --unit=%s", k.pid, k.program, k.unit, k.unit)
		}
	}
	return nil
}

// checkNoOtherSupervisor refuses a second supervisor with the folders of one that runs: its start would fail, and its unit's kubelet would
// be restarted for that. Our own unit's ends when kubelet.service starts (Conflicts=), and for no other.
func (u unitFiles) checkNoOtherSupervisor(ctx context.Context) error {
	record, running, err := supervisor.ReadRecord(u.runDir())
	if err != nil || !running {
		return nil //nolint:nilerror // none runs there
	}
	for _, e := range enabledUnits(u.folder) {
		if e.unit == u.unit || e.unit == ownUnit && u.unit == kubeletUnit {
			continue
		}
		if state, err := showUnit(ctx, e.unit); err == nil && state.MainPID == record.Supervisor.PID {
			return fmt.Errorf("the supervisor of %s runs, process %d, and a node has one: nothing was changed. kubelet-supervisor disable "+
				"--unit=%s gives that unit up; after that, run this again",
				e.unit, state.MainPID, e.unit)
		}
	}
	return nil
}

func otherUnitNames() (names []string) {
	for name := range otherUnits {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// runningKubelets looks for kubelets by where they listen. One of which nothing is known is not among them.
func runningKubelets() (found []runningKubelet) {
	for _, pid := range kubelet.ListeningAt(kubeletPorts...) {
		words := commandLine(pid)
		if len(words) == 0 {
			continue
		}
		program := filepath.Base(words[0])
		isOne := slices.ContainsFunc(kubeletNames, func(name string) bool { return strings.Contains(program, name) })
		if cgroups, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid)); err == nil && isOne {
			found = append(found, runningKubelet{pid: pid, program: program, unit: unitOfCgroup(string(cgroups))})
		}
	}
	return found
}

// unitOfCgroup returns the unit whose cgroup a process is in, from what /proc/PID/cgroup says: the first name in systemd's hierarchy that
// is a service or a scope. "" where none is.
func unitOfCgroup(cgroups string) string {
	for line := range strings.Lines(cgroups) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) != 3 || fields[1] != "" && fields[1] != "name=systemd" {
			continue
		}
		for name := range strings.SplitSeq(fields[2], "/") {
			if strings.HasSuffix(name, ".service") || strings.HasSuffix(name, ".scope") {
				return name
			}
		}
	}
	return ""
}
