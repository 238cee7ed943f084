//go:build systemd && kubeadm

package systemd

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// steps are the rows of docs/operate/kubeadm.md, in their order: what a person does, and what has to be true then.
var steps = []struct {
	row string
	do  func(c *kubeadmCluster)
}{
	{"`kubelet-supervisor enable`, before `kubeadm init`", enabledBeforeInit},
	{"`kubeadm init`", initialized},
	{"a configuration is assigned to the control-plane node", assignedToControlPlane},
	{"`local` is assigned to it", localToControlPlane},
	{"`kubelet-supervisor enable`, before `kubeadm join`", enabledBeforeJoin},
	{"`kubeadm join`", joinedByKubeadm},
	{"a configuration is assigned to the worker", assignedToWorker},
	{"`kubeadm upgrade apply`", upgradeApplied},
	{"`kubeadm upgrade node`", upgradedNode},
	{"`apt install kubelet`: it would refuse the configuration", aptRefused},
	{"`apt install kubelet`: it accepts the configuration", aptAccepted},
	{"`systemctl restart kubelet`", restartedForNewKubelet},
	{"`kubeadm reset`", resetWorker},
	{"`kubectl delete node`, and `kubeadm join` of the same cluster", joinedAgain},
	{"`kubeadm reset` and `kubeadm init`", initializedAgain},
	{"`kubeadm reset` and `kubeadm join` of another cluster", joinedAnother},
	{"`dpkg --purge kubelet-supervisor`", purged},
	{"`kubelet-supervisor enable --now`, after `kubeadm join`", enabledAfterJoin},
}

// A cluster as people have it, through the steps of its life. Each step goes on where the one before ended.
func TestKubeadm(t *testing.T) {
	c := newKubeadmCluster(t)
	for _, step := range steps {
		t.Logf("step: %s", step.row)
		manyWatches(t)
		step.do(c)
		if t.Failed() {
			t.Fatalf("%s: not as the page says", step.row)
		}
	}
}

// The page tells of these steps and of no others.
func TestKubeadmPage(t *testing.T) {
	text, err := os.ReadFile("../../docs/operate/kubeadm.md")
	if err != nil {
		t.Fatal(err)
	}
	var told, done []string
	for _, row := range regexp.MustCompile(`(?m)^\| \d+\. (.*?) \|`).FindAllStringSubmatch(string(text), -1) {
		told = append(told, row[1])
	}
	for _, step := range steps {
		done = append(done, step.row)
	}
	if difference := cmp.Diff(done, told); difference != "" {
		t.Errorf("- what the test does, + what the page tells:\n%s", difference)
	}
}

func enabledBeforeInit(c *kubeadmCluster) { c.enabledBefore(c.controlPlane) }
func enabledBeforeJoin(c *kubeadmCluster) { c.enabledBefore(c.worker) }

// enabledBefore: without a configuration no kubelet stays, and nobody is held up.
func (c *kubeadmCluster) enabledBefore(m *kubeadmMachine) {
	m.must("dpkg -i %s %s", m.deb("old"), m.packaged("old", "kubelet-supervisor-apt_*.deb"))
	m.write(flagsFile, "KUBELET_SUPERVISOR_ARGS=--trial-period=3s\n")
	m.must("kubelet-supervisor enable --now")
	m.supervises()
	if pods := m.containers(); len(pods) > 0 {
		m.Errorf("containers %v", pods)
	}
}

func initialized(c *kubeadmCluster) {
	m := c.controlPlane
	supervisor := m.property("kubelet", "MainPID")
	m.init("v1.36.2")
	m.hasNew(running{supervisor: supervisor}, "supervisor", "kubelet")
	c.says(m, "", "Local")
	c.staticPods(m, "v1.36.2")
	m.local()
	c.kubectl("apply -k /shared/manifests")
}

func assignedToControlPlane(c *kubeadmCluster) {
	m := c.controlPlane
	before := m.running()
	c.assign(m, "control-plane", "maxPods: 60\n")
	c.runsWith(m, 60)
	m.hasNew(before, "kubelet")
}

func localToControlPlane(c *kubeadmCluster) {
	m := c.controlPlane
	before := m.running()
	c.kubectl("annotate --overwrite node %s kubelet-supervisor.io/config-source=local", m.name)
	c.says(m, "local", "Local")
	c.runsWith(m, 110)
	m.local()
	m.hasNew(before, "kubelet")
}

func joinedByKubeadm(c *kubeadmCluster) {
	m := c.worker
	supervisor := m.property("kubelet", "MainPID")
	c.join(m)
	c.says(m, "", "Local")
	m.local()
	if m.has("/etc/kubernetes/bootstrap-kubelet.conf") {
		m.Error("the bootstrap credentials are still there")
	}
	c.pod(m)
	m.hasNew(running{supervisor: supervisor}, "supervisor", "kubelet")
}

// oldGate is a feature gate that kubelet 1.35 has, and 1.36 has not.
const oldGate = "featureGates: {KubeletInUserNamespace: true, MemoryManager: true}\n"

func assignedToWorker(c *kubeadmCluster) {
	m := c.worker
	before := m.running()
	c.assign(m, "worker", "maxPods: 50\n"+oldGate)
	c.runsWith(m, 50)
	m.hasNew(before, "kubelet")
}

// upgradeApplied: the static pods become those of the new version, and the file of the node is written anew. Its kubelet runs with it at
// its next start; nothing restarts it.
func upgradeApplied(c *kubeadmCluster) {
	m := c.controlPlane
	before, beside := m.running(), c.worker.running()
	before.containers = nil // kubeadm replaces them
	c.setKubeadmsConfig("maxPods: 90")
	m.kubeadmDoes("upgrade apply", upgradeConfiguration)
	if !strings.Contains(m.read("/var/lib/kubelet/config.yaml"), "maxPods: 90") {
		m.Error("kubeadm has not written the file anew")
	}
	c.staticPods(m, "v1.36.3")
	c.runsWith(m, 110)
	c.localChangeIsPending(m)
	m.hasNew(before)
	c.worker.hasNew(beside)
}

// upgradedNode: the file that kubeadm writes anew is not what an assigned configuration runs with, nor will be.
func upgradedNode(c *kubeadmCluster) {
	m := c.worker
	before := m.running()
	m.kubeadmDoes("upgrade node", upgradeConfiguration)
	if !strings.Contains(m.read("/var/lib/kubelet/config.yaml"), "maxPods: 90") {
		m.Error("kubeadm has not written the file anew")
	}
	c.runsWith(m, 50)
	c.says(m, c.assigned[m.name], "Active")
	m.hasNew(before)
}

func aptRefused(c *kubeadmCluster) {
	m := c.worker
	before := m.running()
	said, err := m.try("apt-get install -q -y /shared/kubelet_%s.deb", newKubelet)
	if err == nil || !strings.Contains(said, "unrecognized feature gate: MemoryManager") || !strings.Contains(said, "kubelet-supervisor: nothing is installed") {
		m.Errorf("%v: %s", err, said)
	}
	m.hasPackage(oldKubelet)
	m.hasNew(before)
}

func aptAccepted(c *kubeadmCluster) {
	m := c.worker
	c.assign(m, "worker-without-gate", "maxPods: 50\n")
	before := m.running()
	m.must("apt-get install -q -y /shared/kubelet_%s.deb", newKubelet)
	m.hasPackage(newKubelet)
	c.localChangeIsPending(m)
	c.hasVersion(m, oldKubelet)
	m.hasNew(before)
}

func restartedForNewKubelet(c *kubeadmCluster) {
	m := c.worker
	before := m.running()
	m.must("systemctl restart kubelet")
	c.hasVersion(m, newKubelet)
	c.says(m, c.assigned[m.name], "Active")
	c.runsWith(m, 50)
	m.hasNew(before, "supervisor", "kubelet")
}

func resetWorker(c *kubeadmCluster) { c.worker.reset() }

// joinedAgain: the Node is new and has no assignment, and the kubelet goes on with what it had.
func joinedAgain(c *kubeadmCluster) {
	m := c.worker
	c.kubectl("delete node %s", m.name)
	c.join(m)
	m.healthy("kubelet")
	c.says(m, "", "AssignmentLost")
	c.runsWith(m, 50)
	c.kubectl("annotate node %s kubelet-supervisor.io/config-source=local", m.name)
	c.says(m, "local", "Local")
	c.assign(m, "worker-again", "maxPods: 51\n")
	c.runsWith(m, 51)
	c.pod(m)
}

func initializedAgain(c *kubeadmCluster) {
	m := c.controlPlane
	c.assign(m, "control-plane-again", "maxPods: 61\n")
	m.reset()
	m.init("v1.36.3")
	m.healthy("kubelet")
	c.anotherCluster(m)
	c.staticPods(m, "v1.36.3")
	c.kubectl("apply -k /shared/manifests")
}

func joinedAnother(c *kubeadmCluster) {
	c.worker.reset()
	c.join(c.worker)
	c.worker.healthy("kubelet")
	c.anotherCluster(c.worker)
	if said := c.says(c.worker, "", "Local"); !strings.Contains(said, "another cluster") { // kubeadm init starts the kubelet twice, and then it is forgotten
		c.worker.Errorf("the Node does not say why: %s", said)
	}
	c.pod(c.worker)
}

// anotherCluster: nothing of what the old one assigned is run, and it is told why.
func (c *kubeadmCluster) anotherCluster(m *kubeadmMachine) {
	c.says(m, "", "Local")
	if said := m.must("journalctl --boot --unit=kubelet --output=cat"); !strings.Contains(said, "this node's kubeconfig is of another cluster than kubelet-config/") {
		m.Errorf("the journal does not say why")
	}
	m.local()
	c.runsWith(m, 110)
}

func purged(c *kubeadmCluster) {
	m := c.worker
	containers := m.containers()
	m.must("dpkg --purge kubelet-supervisor-apt kubelet-supervisor")
	m.plain()
	c.ready(m)
	if m.has("/var/lib/kubelet-supervisor") {
		m.Error("the state is still there")
	}
	m.goOn(containers)
}

func enabledAfterJoin(c *kubeadmCluster) {
	m := c.worker
	before, containers := m.property("kubelet", "MainPID"), m.containers()
	m.must("dpkg -i %s", m.deb("old"))
	if now := m.property("kubelet", "MainPID"); now != before {
		m.Errorf("installing the package made %s of %s", now, before)
	}
	m.must("kubelet-supervisor enable --now")
	if now := m.healthy("kubelet"); now == before {
		m.Errorf("still kubelet %s", now)
	}
	c.says(m, "", "Local")
	m.local()
	m.goOn(containers)
}

// running is what runs on a machine, by pids and ids.
type running struct {
	supervisor, kubelet string
	containers          []string
}

func (m *kubeadmMachine) running() running {
	m.Helper()
	kubelet := m.healthy("kubelet")
	r := running{m.property("kubelet", "MainPID"), kubelet, m.containers()}
	if len(r.containers) == 0 {
		m.Error("no container runs")
	}
	return r
}

// hasNew sees to it that of what ran before these are others now, and that all else goes on.
func (m *kubeadmMachine) hasNew(before running, others ...string) {
	m.Helper()
	now := m.running()
	if other := now.supervisor != before.supervisor; other != slices.Contains(others, "supervisor") {
		m.Errorf("another supervisor: %v, want others of %v", other, others)
	}
	if other := now.kubelet != before.kubelet; other != slices.Contains(others, "kubelet") {
		m.Errorf("another kubelet: %v, want others of %v", other, others)
	}
	m.goOn(before.containers)
}

// goOn sees to it that every container that ran still does.
func (m *kubeadmMachine) goOn(before []string) {
	m.Helper()
	now := m.containers()
	for _, one := range before {
		if !slices.Contains(now, one) {
			m.Errorf("container %s is gone", one)
		}
	}
}

// local sees to it that the newest kubelet has no configuration but kubeadm's.
func (m *kubeadmMachine) local() {
	m.Helper()
	pids := m.pids(m.kubelet)
	if words := strings.ReplaceAll(m.read(fmt.Sprintf("/proc/%s/cmdline", pids[len(pids)-1])), "\x00", " "); strings.Contains(words, "/run/kubelet-supervisor") {
		m.Errorf("the kubelet does not run kubeadm's: %s", words)
	}
}
