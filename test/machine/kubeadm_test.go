//go:build machine

package machine

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/cluster"
)

// workersLife are rows of docs/operate/kubeadm.md, and what a virtual machine alone can show: what is done to a worker, and what has to be
// true then. Each step goes on where the one before ended.
var workersLife = []struct {
	row string // "" for what is no row of the table
	do  func(n *worker)
}{
	{"5. `kubelet-supervisor enable`, before `kubeadm join`", (*worker).enabledBeforeJoin},
	{"6. `kubeadm join`", (*worker).joined},
	{"7. a configuration is assigned to the worker", (*worker).assigned},
	{"", (*worker).rebooted},
	{"9. `kubeadm upgrade node`", (*worker).upgraded},
	{"10. `apt install kubelet`: it would refuse the configuration", (*worker).aptRefused},
	{"11. `apt install kubelet`: it accepts the configuration", (*worker).aptAccepted},
	{"12. `systemctl restart kubelet`", (*worker).restartedForNewKubelet},
	{"13. `kubeadm reset`", (*worker).resetByKubeadm},
	{"14. `kubectl delete node`, and `kubeadm join` of the same cluster", (*worker).joinedAgain},
	{"17. `dpkg --purge kubelet-supervisor`", (*worker).purged},
}

// kubeadm makes a virtual machine a node: one with a kernel and a cgroup v2 of its own, which kubeadm's checks look at, and which boots.
func TestAWorkerThatKubeadmMakes(t *testing.T) {
	page, err := os.ReadFile("../../docs/operate/kubeadm.md")
	if err != nil {
		t.Fatal(err)
	}
	o := newCluster(t, cluster.Options{Name: "kubeadm", Join: true})
	t.Cleanup(func() {
		if err := o.Down(); err != nil {
			t.Error(err)
		}
	})
	o.kubeadmsPhases(t)
	n := &worker{node: newMachineOf(t, o, nodeDisk(t), packagesDisk()...)}
	n.on()
	if mounts := n.must("grep cgroup /proc/mounts"); !strings.HasPrefix(mounts, "cgroup2 ") || strings.Contains(mounts, "\n") {
		t.Errorf("cgroups: %s", mounts)
	}
	n.must("systemctl start containerd && ctr --namespace=k8s.io images import /usr/share/pause.tar")
	n.prepare()
	n.installOldKubelet()
	for _, step := range workersLife {
		if !strings.Contains(string(page), "\n| "+step.row) {
			t.Fatalf("docs/operate/kubeadm.md has no step %s", step.row)
		}
		begin := time.Now()
		step.do(n)
		t.Logf("step %q: %.0f s", step.row, time.Since(begin).Seconds())
		if t.Failed() {
			t.Fatalf("step %q: not as the page says", step.row)
		}
	}
}

// prepare does what Kubernetes' own page asks for before kubeadm: an address for the node's name, and packets that are passed on.
func (n *worker) prepare() {
	n.machine.Helper()
	n.must("echo '%s %s' >>/etc/hosts", address, cluster.NodeName)
	n.write("/etc/sysctl.d/kubernetes.conf", "net.ipv4.ip_forward=1\n")
	n.must("sysctl -p /etc/sysctl.d/kubernetes.conf")
}

const (
	bootstrapToken = "abcdef.0123456789abcdef"
	criSocket      = "unix:///run/containerd/containerd.sock"

	// On an emulated processor, on a machine that is busy.
	kubeadmsTimeouts = "timeouts: {kubeletHealthCheck: 20m, tlsBootstrap: 20m, discovery: 20m, kubernetesAPICall: 10m}\n"

	initConfiguration = `apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
localAPIEndpoint: {advertiseAddress: ` + cluster.HostAddress + `}
nodeRegistration: {name: outside, criSocket: "` + criSocket + `"}
bootstrapTokens: [{token: ` + bootstrapToken + `, ttl: 0s}]
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: v1.36.3
controlPlaneEndpoint: ` + cluster.HostAddress + `:6443
---
` + kubeadmsKubeletConfiguration

	// kubeadm adds its own, and gives it to every node.
	kubeadmsKubeletConfiguration = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
makeIPTablesUtilChains: false
resolvConf: ""
nodeStatusUpdateFrequency: 5s
imageGCHighThresholdPercent: 100
evictionHard: {memory.available: 50Mi}
`
)

// kubeadmsPhases are those of kubeadm init, on this host, that tell the cluster what kubeadm join asks it for; and what an administrator of
// this project's applies.
func (o *outside) kubeadmsPhases(t *testing.T) {
	t.Helper()
	configuration := filepath.Join(t.TempDir(), "kubeadm.yaml")
	if err := os.WriteFile(configuration, []byte(initConfiguration), 0o600); err != nil {
		t.Fatal(err)
	}
	kubeadm := filepath.Join(os.Getenv("KUBELET_SUPERVISOR_PARTS"), "kubeadm-1.36.3")
	for _, phase := range []string{"upload-config all", "bootstrap-token"} {
		arguments := append([]string{"init", "phase"}, strings.Fields(phase)...)
		arguments = append(arguments, "--config="+configuration, "--kubeconfig="+o.JoinKubeconfig())
		if said, err := o.Command(kubeadm, arguments...).CombinedOutput(); err != nil {
			t.Fatalf("kubeadm init phase %s: %v: %s", phase, err, said)
		}
	}
	if _, err := o.Kubectl(t.Context(), "apply", "-k", "../../deploy/manifests"); err != nil {
		t.Fatal(err)
	}
}

// authorityHash is what kubeadm join knows its cluster by.
func (o *outside) authorityHash(t *testing.T) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(o.Folder, "pki", "ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(content)
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("sha256:%x", sha256.Sum256(certificate.RawSubjectPublicKeyInfo))
}

// worker is a node that kubeadm makes.
type worker struct {
	*node
	assignment string
}

func (n *worker) enabledBeforeJoin() {
	n.must("dpkg -i /run/machine/kubelet-supervisor.deb /run/machine/kubelet-supervisor-apt.deb")
	n.setFlags()
	n.must("kubelet-supervisor enable --now")
	await(n.T, "a supervisor without a kubelet that stays", func() error {
		s, err := n.status()
		if main := n.property("kubelet", "MainPID"); err == nil && (!s.Running || fmt.Sprint(s.Supervisor.PID) != main || s.Healthy) {
			err = fmt.Errorf("the unit's main process is %s, the status: %s", main, s.text)
		}
		return err
	})
	if pods := n.containers(); len(pods) > 0 {
		n.Errorf("containers %v", pods)
	}
}

// kubeadm runs it with a configuration of its own. None of its checks of the machine is left out. It gives the container runtime two
// seconds for each answer, and no configuration has more; while it checks it has changed nothing, and can be run again.
func (n *worker) kubeadm(command, configuration string) {
	n.machine.Helper()
	n.write("/root/kubeadm.yaml", configuration)
	await(n.T, "kubeadm "+command, func() error {
		said, err := n.try("kubeadm %s --config=/root/kubeadm.yaml 2>&1", command)
		if err == nil {
			n.Logf("kubeadm %s: %s", command, said)
			return nil
		}
		if !strings.Contains(said, "[preflight] Some fatal errors occurred") || !strings.Contains(said, "eadline") {
			n.Fatalf("kubeadm %s: %v", command, err)
		}
		n.Logf("kubeadm %s is run again: %s", command, said)
		return err
	})
}

func (n *worker) join() {
	n.machine.Helper()
	n.kubeadm("join", `apiVersion: kubeadm.k8s.io/v1beta4
kind: JoinConfiguration
discovery: {bootstrapToken: {token: `+bootstrapToken+`, apiServerEndpoint: "`+cluster.HostAddress+`:6443", caCertHashes: ["`+n.authorityHash(n.T)+`"]}}
nodeRegistration: {name: `+cluster.NodeName+`, criSocket: "`+criSocket+`"}
`+kubeadmsTimeouts)
	await(n.T, "a Node that is Ready", func() error {
		if v, err := n.view(n.T); err != nil || !v.Ready {
			return fmt.Errorf("%v %+v", err, v)
		}
		return nil
	})
}

func (n *worker) joined() {
	supervisor := n.property("kubelet", "MainPID")
	n.join()
	n.says(n.T, "", "Local")
	n.runs(localPods)
	n.local()
	if !n.lacks("/etc/kubernetes/bootstrap-kubelet.conf") {
		n.Error("the bootstrap credentials are still there")
	}
	n.pod("first", 64<<20)
	n.hasNew(alive{supervisor: supervisor}, "supervisor", "kubelet")
}

// assigned: a copy of kubeadm's own configuration with more in it, as docs/howto/kubeadm.md says.
func (n *worker) assigned() {
	before := n.alive()
	copied := n.kubeadmsConfig().Data["kubelet"]
	n.assigns(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "worker"},
		Data: map[string]string{"kubelet": strings.TrimSpace(copied) + "\nmaxPods: 50\n" + oldGate}})
	n.hasNew(before, "kubelet")
}

// assigns makes the ConfigMap, assigns it, and waits for the end of its trial.
func (n *worker) assigns(made *corev1.ConfigMap) {
	n.machine.Helper()
	if _, err := n.client.CoreV1().ConfigMaps("kubelet-config").Create(n.Context(), made, metav1.CreateOptions{}); err != nil {
		n.Fatal(err)
	}
	n.assignment = "kubelet-config/" + made.Name + "/kubelet"
	n.assign(n.T, n.assignment)
	n.says(n.T, n.assignment, "InTrial", "Active")
	n.active()
}

// active: the configuration that was assigned runs, its trial is over, and the Node says so.
func (n *worker) active() {
	n.machine.Helper()
	v := n.says(n.T, n.assignment, "Active")
	name := strings.Split(n.assignment, "/")[1]
	if v.Condition.Status != corev1.ConditionTrue || v.Config.Error != "" || v.Config.LastKnownGood == nil || v.Config.LastKnownGood.ConfigMap.Name != name {
		n.Errorf("%+v", v)
	}
	if s := n.runs(50); s.Trial != nil {
		n.Errorf("a trial goes on: %s", s.text)
	}
}

// rebooted: the node is what it was, without a trial, and its pod is there again.
func (n *worker) rebooted() {
	before, boot := n.container("first"), n.bootID()
	n.reboot()
	n.active()
	await(n.T, "a Node of another boot", func() error {
		if now := n.bootID(); now == boot {
			return errors.New(now)
		}
		return nil
	})
	await(n.T, "the pod's container, again", func() error {
		if now := n.container("first"); !now.Ready || now.ContainerID == before.ContainerID || now.RestartCount == 0 {
			return fmt.Errorf("%+v", now)
		}
		return nil
	})
}

// bootID is that of the machine, as the kubelet has told the Node.
func (n *worker) bootID() string {
	n.machine.Helper()
	info, err := n.nodeInfo()
	if err != nil {
		n.Fatal(err)
	}
	return info.BootID
}

// nodeInfo is what the kubelet has told the Node of the machine and of itself.
func (n *worker) nodeInfo() (corev1.NodeSystemInfo, error) {
	node, err := n.client.CoreV1().Nodes().Get(n.Context(), cluster.NodeName, metav1.GetOptions{})
	if err != nil {
		return corev1.NodeSystemInfo{}, err
	}
	return node.Status.NodeInfo, nil
}

// upgraded: the file that kubeadm writes anew is not what an assigned configuration runs with.
func (n *worker) upgraded() {
	before := n.alive()
	own := n.kubeadmsConfig()
	own.Data["kubelet"] = strings.TrimSpace(own.Data["kubelet"]) + "\nmaxPods: 90\n"
	if _, err := n.client.CoreV1().ConfigMaps(namespace).Update(n.Context(), own, metav1.UpdateOptions{}); err != nil {
		n.Fatal(err)
	}
	n.kubeadm("upgrade node", "apiVersion: kubeadm.k8s.io/v1beta4\nkind: UpgradeConfiguration\n"+kubeadmsTimeouts)
	n.must("grep -q 'maxPods: 90' /var/lib/kubelet/config.yaml")
	n.active()
	n.hasNew(before)
}

func (n *worker) kubeadmsConfig() *corev1.ConfigMap {
	n.machine.Helper()
	own, err := n.client.CoreV1().ConfigMaps(namespace).Get(n.Context(), "kubelet-config", metav1.GetOptions{})
	if err != nil {
		n.Fatal(err)
	}
	return own
}

func (n *worker) resetByKubeadm() {
	// Of a container that took it too long it only warns.
	await(n.T, "kubeadm reset", func() error {
		n.Logf("kubeadm reset: %s", n.must("kubeadm reset --force --cri-socket=%s 2>&1", criSocket))
		if left := n.containers(); len(left) > 0 {
			return fmt.Errorf("containers %v are left", left)
		}
		return nil
	})
	if state := n.property("kubelet", "ActiveState"); state != "inactive" {
		n.Errorf("the unit is %s", state)
	}
	if left, _ := n.try("pgrep -l kubelet"); left != "" {
		n.Errorf("processes are left: %s", left)
	}
	if !n.lacks("/var/lib/kubelet/config.yaml") || !n.lacks("/etc/kubernetes/kubelet.conf") {
		n.Error("kubeadm's configuration is still there")
	}
	if n.lacks("/var/lib/kubelet-supervisor/meta/assigned") || n.lacks("/etc/systemd/system/kubelet.service.d/zz-kubelet-supervisor.conf") {
		n.Error("the supervisor's state or its drop-in is gone")
	}
}

// joinedAgain: the Node is new and has no assignment, and the kubelet goes on with what it had.
func (n *worker) joinedAgain() {
	if err := n.client.CoreV1().Nodes().Delete(n.Context(), cluster.NodeName, metav1.DeleteOptions{}); err != nil {
		n.Fatal(err)
	}
	n.join()
	n.says(n.T, n.assignment, "AssignmentLost") // of what it was assigned before
	n.runs(50)
	n.pod("second", 64<<20)
	n.assign(n.T, "local")
	n.says(n.T, "local", "Local")
	n.runs(90)
	n.local()
}

// purged: a kubelet by itself, with what kubeadm wrote. How often systemd had to start it is not asked: on a slow machine a kubelet may give
// its container runtime up.
func (n *worker) purged() {
	before := n.alive()
	n.must("dpkg --purge kubelet-supervisor-apt kubelet-supervisor")
	await(n.T, "a kubelet by itself", func() error {
		if config, err := n.Configz(n.Context()); err != nil || config["maxPods"] != float64(90) {
			return fmt.Errorf("%v, maxPods %v", err, config["maxPods"])
		}
		kubelet, err := n.try("pgrep -x kubelet")
		if main := n.property("kubelet", "MainPID"); err != nil || kubelet != main || kubelet == before.kubelet {
			return fmt.Errorf("kubelet %q, the unit's main process %s: %v", kubelet, main, err)
		}
		return nil
	})
	if !n.lacks("/usr/bin/kubelet-supervisor") || !n.lacks("/var/lib/kubelet-supervisor") {
		n.Error("program or state are still there")
	}
	n.goOn(before)
}

// alive is what runs on a machine, by pids and ids.
type alive struct {
	supervisor, kubelet string
	containers          []string
}

func (n *worker) alive() alive {
	n.machine.Helper()
	s := n.healthy()
	a := alive{n.property("kubelet", "MainPID"), fmt.Sprint(s.Child.PID), n.containers()}
	if a.supervisor != fmt.Sprint(s.Supervisor.PID) {
		n.Errorf("the unit's main process is %s: %s", a.supervisor, s.text)
	}
	if len(a.containers) == 0 {
		n.Error("no container runs")
	}
	return a
}

// hasNew sees to it that of what ran before these are others now, and that all else goes on.
func (n *worker) hasNew(before alive, others ...string) {
	n.machine.Helper()
	now := n.alive()
	if other := now.supervisor != before.supervisor; other != slices.Contains(others, "supervisor") {
		n.Errorf("another supervisor: %v, want others of %v", other, others)
	}
	if other := now.kubelet != before.kubelet; other != slices.Contains(others, "kubelet") {
		n.Errorf("another kubelet: %v, want others of %v", other, others)
	}
	n.goOn(before)
}

// goOn sees to it that every container that ran still does.
func (n *worker) goOn(before alive) {
	n.machine.Helper()
	now := n.containers()
	for _, one := range before.containers {
		if !slices.Contains(now, one) {
			n.Errorf("container %s is gone: %s", one, n.must("ctr --namespace=k8s.io containers info %s | grep io.kubernetes || true", one))
		}
	}
}

// containers are the running ones of Kubernetes', the pods' sandboxes among them, by their ids.
func (n *worker) containers() (ids []string) {
	n.machine.Helper()
	for line := range strings.Lines(n.must("ctr --namespace=k8s.io tasks list")) {
		if words := strings.Fields(line); len(words) == 3 && words[2] == "RUNNING" {
			ids = append(ids, words[0])
		}
	}
	return ids
}

// local sees to it that the kubelet has no configuration but kubeadm's.
func (n *worker) local() {
	n.machine.Helper()
	if words := n.must("tr '\\0' ' ' </proc/%d/cmdline", n.healthy().Child.PID); !strings.Contains(words, "--config=/var/lib/kubelet/config.yaml") ||
		strings.Contains(words, "/run/kubelet-supervisor") {
		n.Errorf("the kubelet does not run kubeadm's: %s", words)
	}
}

// lacks tells whether nothing has that name, which may be a pattern.
func (n *worker) lacks(path string) bool {
	_, err := n.try("ls -d %s", path)
	return err != nil
}
