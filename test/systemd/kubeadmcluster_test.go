//go:build systemd && kubeadm

package systemd

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/cluster"
)

const (
	oldKubelet = "1.35.4" // which kubeadm 1.36 joins, too
	newKubelet = "1.36.3"

	controlPlaneAddress = "10.10.0.1"
	workerAddress       = "10.10.0.2"
)

func init() { patience = 15 * time.Minute } // for a step of kubeadm's, which takes a minute where nobody else is

// kubeadmCluster is what kubeadm makes of two machines: a control-plane node and a worker.
type kubeadmCluster struct {
	*testing.T
	controlPlane, worker *kubeadmMachine
	assigned             map[string]string // what each node is assigned, by its name
}

// kubeadmMachine is one with containerd, kubeadm, and a kubelet from a package.
type kubeadmMachine struct {
	*machine
	name, address string
}

// manyWatches raises the host's limit of inotify instances, of which two systemds, container runtimes and kubelets have many. Other tests
// beside this one may set it back.
func manyWatches(t *testing.T) {
	t.Helper()
	const file, enough = "/proc/sys/fs/inotify/max_user_instances", 1024
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	has, err := strconv.Atoi(strings.TrimSpace(string(content)))
	if err != nil || has >= enough {
		return
	}
	if err := os.WriteFile(file, fmt.Append(nil, enough), 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.WriteFile(file, content, 0) })
}

// newKubeadmCluster gives two machines with a cable between them, as packages leave them: kubeadm has not been run.
func newKubeadmCluster(t *testing.T) *kubeadmCluster {
	t.Helper()
	manyWatches(t)
	if len(roots) != 1 {
		t.Fatalf("roots %v: these machines are of one kind", roots)
	}
	c := &kubeadmCluster{T: t, assigned: map[string]string{},
		controlPlane: &kubeadmMachine{boot(t, roots[0]), "c1", controlPlaneAddress},
		worker:       &kubeadmMachine{boot(t, roots[0]), "w1", workerAddress},
	}
	if said, err := exec.Command("ip", "link", "add", "eth0", "netns", c.controlPlane.pid, "type", "veth", "peer", "name", "eth0", "netns", c.worker.pid).CombinedOutput(); err != nil {
		t.Fatalf("a cable between two machines: %v: %s", err, said)
	}
	c.controlPlane.install(newKubelet)
	c.worker.install(oldKubelet)
	return c
}

const containerdUnit = `[Service]
ExecStart=/usr/bin/containerd
Type=notify
Delegate=yes
KillMode=process
Restart=always
`

const containerdConfiguration = `version = 3
root = "/disk/containerd"
disabled_plugins = [
  "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs",
  "io.containerd.snapshotter.v1.erofs", "io.containerd.nri.v1.nri",
]

[plugins."io.containerd.cri.v1.images"]
  snapshotter = "native" # which works on every file system
  [plugins."io.containerd.cri.v1.images".pinned_images]
    sandbox = "` + cluster.PauseImage + `"

[plugins."io.containerd.cri.v1.runtime"]
  disable_hugetlb_controller = true
  restrict_oom_score_adj = true
  [plugins."io.containerd.cri.v1.runtime".cni]
    bin_dirs = ["/usr/lib/cni"]
    conf_dir = "/etc/cni/net.d"
  [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
`

// install does what comes before kubeadm: network, container runtime with its images, packages.
func (m *kubeadmMachine) install(kubelet string) {
	m.Helper()
	m.must("hostname %[1]s && echo %[1]s >/etc/hostname && echo '%[2]s %[1]s' >>/etc/hosts", m.name, m.address)
	m.must("ip address add %s/24 dev eth0 && ip link set eth0 up && ip route add default dev eth0", m.address)

	m.must("install /shared/{containerd,containerd-shim-runc-v2,ctr,kubeadm,kubectl} /usr/bin/ && touch /dev/kmsg") // the kubelet reads the kernel's log
	m.ownSysctls()
	m.write("/etc/containerd/config.toml", containerdConfiguration)
	m.write("/etc/cni/net.d/10-loopback.conflist", `{"cniVersion": "0.4.0", "name": "loopback", "plugins": [{"type": "loopback"}]}`)
	m.write("/etc/systemd/system/containerd.service", containerdUnit+m.controllers("BindPaths=%s")+"\n")
	m.must("systemctl daemon-reload && systemctl start containerd")
	m.must("ctr --namespace=k8s.io images import --local --snapshotter=native /shared/images.tar")
	m.must("ctr --namespace=k8s.io images import --local --snapshotter=native /shared/pause.tar")

	m.must("apt-get install -q -y /shared/kubelet_%s.deb", kubelet)
	arguments := "--node-ip=" + m.address
	if m.controllers("x") != "" {
		arguments += " --cgroup-root=/" + m.machine.name()
		m.write("/etc/systemd/system/kubelet.service.d/20-controllers.conf", "[Service]\n"+m.controllers("BindPaths=%s")+"\n")
	}
	m.write("/etc/default/kubelet", "KUBELET_EXTRA_ARGS="+arguments+"\n")
	m.must("systemctl daemon-reload && systemctl enable kubelet")
}

// hasPackage sees to it that this version of the package is installed, and whole.
func (m *kubeadmMachine) hasPackage(version string) {
	m.Helper()
	if got := m.must("dpkg-query -W -f '${db:Status-Abbrev}${Version}' kubelet && kubelet --version"); got != "ii "+version+"Kubernetes v"+version {
		m.Errorf("installed is %s, want %s", got, version)
	}
}

// supervises waits until the unit's main process is a supervisor that answers, whatever becomes of its kubelet.
func (m *kubeadmMachine) supervises() {
	m.Helper()
	await(m.T, "a supervisor on "+m.name, func() error {
		s, err := m.status()
		if main := m.property("kubelet", "MainPID"); err == nil && (!s.Running || fmt.Sprint(s.Supervisor.PID) != main) {
			err = fmt.Errorf("the unit's main process is %s, the status: %s", main, s.text)
		}
		return err
	})
}

// containers are the running ones of Kubernetes', the pods' sandboxes among them, by their ids.
func (m *kubeadmMachine) containers() (ids []string) {
	m.Helper()
	for line := range strings.Lines(m.must("ctr --namespace=k8s.io tasks list")) {
		if words := strings.Fields(line); len(words) == 3 && words[2] == "RUNNING" {
			ids = append(ids, words[0])
		}
	}
	slices.Sort(ids)
	return ids
}

// kubeadmDoes runs kubeadm with a configuration of its own.
func (m *kubeadmMachine) kubeadmDoes(command, configuration string, arguments ...string) {
	m.Helper()
	begin := time.Now()
	m.write("/root/kubeadm.yaml", configuration)
	said := m.must("kubeadm %s --config=/root/kubeadm.yaml %s", command, strings.Join(arguments, " "))
	m.Logf("kubeadm %s on %s: %.1f s; it ends with %q", command, m.name, time.Since(begin).Seconds(), said[max(0, len(said)-100):])
}

const (
	token = "abcdef.0123456789abcdef"

	timeouts = `timeouts: {controlPlaneComponentHealthCheck: 10m, kubeletHealthCheck: 10m, tlsBootstrap: 10m, upgradeManifests: 10m, kubernetesAPICall: 5m, discovery: 10m}
`
	// The machines are namespaces, so much of what kubeadm looks for is not theirs. There is no registry to pull from.
	registration = `nodeRegistration: {name: NAME, criSocket: "unix:///run/containerd/containerd.sock", imagePullPolicy: Never, ignorePreflightErrors: [all]}
`
	upgradeConfiguration = `apiVersion: kubeadm.k8s.io/v1beta4
kind: UpgradeConfiguration
apply: {kubernetesVersion: v1.36.3, forceUpgrade: true, imagePullPolicy: Never, ignorePreflightErrors: [all], skipPhases: [addon, preflight]}
node: {imagePullPolicy: Never, ignorePreflightErrors: [all], skipPhases: [addon, preflight]}
` + timeouts
)

// init makes the machine a control-plane node of this version.
func (m *kubeadmMachine) init(version string) {
	m.Helper()
	m.kubeadmDoes("init", `apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
localAPIEndpoint: {advertiseAddress: `+m.address+`}
bootstrapTokens: [{token: `+token+`}]
`+strings.ReplaceAll(registration, "NAME", m.name)+timeouts+`---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: `+version+`
---
`+m.kubeadmsKubeletConfiguration(), "--skip-phases=addon")
}

// kubeadmsKubeletConfiguration has what kubelets need on such machines. kubeadm adds its own, and gives it to every node.
func (m *kubeadmMachine) kubeadmsKubeletConfiguration() string {
	return configuration + `cgroupDriver: cgroupfs
failCgroupV1: false
failSwapOn: false
makeIPTablesUtilChains: false
localStorageCapacityIsolation: false
nodeStatusUpdateFrequency: 2s
imageGCHighThresholdPercent: 100
evictionHard: {memory.available: 50Mi}
featureGates: {KubeletInUserNamespace: true}
` + cluster.KubeletOOMScore().Lines()
}

func (c *kubeadmCluster) join(m *kubeadmMachine) {
	c.Helper()
	m.kubeadmDoes("join", `apiVersion: kubeadm.k8s.io/v1beta4
kind: JoinConfiguration
discovery: {bootstrapToken: {token: `+token+`, apiServerEndpoint: "`+controlPlaneAddress+`:6443", unsafeSkipCAVerification: true}}
`+strings.ReplaceAll(registration, "NAME", m.name)+timeouts)
	c.ready(m)
}

// reset: kubeadm stops kubelet and supervisor, and all containers; the supervisor's state and drop-in stay.
func (m *kubeadmMachine) reset() {
	m.Helper()
	m.must("kubeadm reset --force --cri-socket=unix:///run/containerd/containerd.sock")
	if state := m.property("kubelet", "ActiveState"); state != "inactive" {
		m.Errorf("the unit is %s", state)
	}
	if left := append(m.pids(m.kubelet), m.pids(m.supervisor)...); len(left) > 0 {
		m.Errorf("processes %v are left", left)
	}
	if left := m.containers(); len(left) > 0 {
		m.Errorf("containers %v are left", left)
	}
	if m.has("/var/lib/kubelet/config.yaml") || m.has("/etc/kubernetes/kubelet.conf") {
		m.Error("kubeadm's configuration is still there")
	}
	if !m.has("/var/lib/kubelet-supervisor/meta/assigned") || !m.has(dropIn) {
		m.Error("the supervisor's state or its drop-in is gone")
	}
}

// tryKubectl is kubectl with an administrator's rights.
func (c *kubeadmCluster) tryKubectl(line string, more ...any) (string, error) {
	return c.controlPlane.try("KUBECONFIG=/etc/kubernetes/admin.conf kubectl "+line, more...)
}

// kubectl waits until the API server lets it do that, for its pod may just be replaced.
func (c *kubeadmCluster) kubectl(line string, more ...any) (said string) {
	c.Helper()
	await(c.T, "kubectl "+fmt.Sprintf(line, more...), func() (err error) {
		if said, err = c.tryKubectl(line, more...); err != nil {
			return fmt.Errorf("%w: %s", err, said)
		}
		return nil
	})
	return said
}

// node is what a Node says, as far as it is looked at.
type node struct {
	Metadata struct{ Annotations map[string]string }
	Status   struct {
		Conditions []struct{ Type, Status, Reason, Message string }
		NodeInfo   struct{ KubeletVersion string }
	}
}

func (c *kubeadmCluster) node(m *kubeadmMachine) (n node, err error) {
	said, err := c.tryKubectl("get node %s -o json", m.name)
	if err != nil {
		return n, fmt.Errorf("%w: %s", err, said)
	}
	return n, json.Unmarshal([]byte(said), &n)
}

func (n node) condition(kind string) (status, reason, message string) {
	for _, c := range n.Status.Conditions {
		if c.Type == kind {
			return c.Status, c.Reason, c.Message
		}
	}
	return "", "", ""
}

// ready waits until the Node is.
func (c *kubeadmCluster) ready(m *kubeadmMachine) {
	c.Helper()
	await(c.T, m.name+" is Ready", func() error {
		n, err := c.node(m)
		if err != nil {
			return err
		}
		if status, reason, message := n.condition("Ready"); status != "True" {
			return fmt.Errorf("%s %s %s", status, reason, message)
		}
		return nil
	})
}

// says waits until the Node speaks of this assignment, if any, with this reason, and gives the condition's message.
func (c *kubeadmCluster) says(m *kubeadmMachine, assignment, wanted string) (said string) {
	c.Helper()
	await(c.T, fmt.Sprintf("%s says %s of %q", m.name, wanted, assignment), func() error {
		n, err := c.node(m)
		if err != nil {
			return err
		}
		_, reason, message := n.condition("KubeletConfigOk")
		observed := n.Metadata.Annotations["kubelet-supervisor.io/config-observed"]
		if reason != wanted || assignment != "" && observed != assignment {
			return fmt.Errorf("%s of %q: %s", reason, observed, message)
		}
		said = message
		return nil
	})
	return said
}

func (c *kubeadmCluster) localChangeIsPending(m *kubeadmMachine) {
	c.Helper()
	await(c.T, m.name+" says that files have changed", func() error {
		n, err := c.node(m)
		if err != nil {
			return err
		}
		if _, _, message := n.condition("KubeletConfigOk"); !strings.Contains(message, "LocalChangePending: ") {
			return errors.New(message)
		}
		return nil
	})
}

// hasVersion waits until the Node says that its kubelet is of this version.
func (c *kubeadmCluster) hasVersion(m *kubeadmMachine, version string) {
	c.Helper()
	await(c.T, "the kubelet of "+m.name+" is "+version, func() error {
		n, err := c.node(m)
		if err == nil && n.Status.NodeInfo.KubeletVersion != "v"+version {
			err = errors.New(n.Status.NodeInfo.KubeletVersion)
		}
		return err
	})
}

// runsWith waits until the kubelet says that it runs with that many pods at most.
func (c *kubeadmCluster) runsWith(m *kubeadmMachine, maxPods int) {
	c.Helper()
	await(c.T, fmt.Sprintf("the kubelet of %s has maxPods %d", m.name, maxPods), func() error {
		said, err := c.tryKubectl("get --raw /api/v1/nodes/%s/proxy/configz", m.name)
		if err != nil {
			return fmt.Errorf("%w: %s", err, said)
		}
		if has := regexp.MustCompile(`"maxPods":\d+`).FindString(said); has != fmt.Sprintf(`"maxPods":%d`, maxPods) {
			return errors.New(has)
		}
		return nil
	})
}

// assign gives the node a copy of kubeadm's own configuration with more in it, as docs/howto/kubeadm.md says, and waits for the end of its
// trial.
func (c *kubeadmCluster) assign(m *kubeadmMachine, name, more string) {
	c.Helper()
	own := c.kubectl("get configmap kubelet-config -n kube-system -o jsonpath='{.data.kubelet}'")
	for line := range strings.Lines(more) { // instead of what is there
		field, _, _ := strings.Cut(line, ":")
		own = regexp.MustCompile(`(?m)^`+field+`:.*\n([ -].*\n)*`).ReplaceAllString(own+"\n", "")
	}
	c.controlPlane.write("/root/kubelet.yaml", strings.TrimSpace(own)+"\n"+more)
	c.kubectl("create configmap %s -n kubelet-config --from-file=kubelet=/root/kubelet.yaml", name)
	c.assigned[m.name] = "kubelet-config/" + name + "/kubelet"
	c.kubectl("annotate --overwrite node %s kubelet-supervisor.io/config-source=%s", m.name, c.assigned[m.name])
	c.says(m, c.assigned[m.name], "Active")
}

// setKubeadmsConfig is what a person does who changes the cluster's own configuration of kubelets, before an upgrade writes it to the nodes.
func (c *kubeadmCluster) setKubeadmsConfig(line string) {
	c.Helper()
	own := c.kubectl("get configmap kubelet-config -n kube-system -o jsonpath='{.data.kubelet}'")
	c.controlPlane.write("/root/kubelet.yaml", strings.TrimSpace(own)+"\n"+line+"\n")
	c.kubectl("create configmap kubelet-config -n kube-system --from-file=kubelet=/root/kubelet.yaml --dry-run=client -o yaml >/root/kubelet-config.yaml")
	c.kubectl("replace -f /root/kubelet-config.yaml")
}

// staticPods waits until the control plane runs, and is made of this version's images.
func (c *kubeadmCluster) staticPods(m *kubeadmMachine, version string) {
	c.Helper()
	var want []string
	for _, name := range []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler"} {
		want = append(want, fmt.Sprintf("registry.k8s.io/%s:%s true", name, version))
	}
	await(c.T, "the control plane runs "+version, func() error {
		said, err := c.tryKubectl(`get pods -n kube-system -l tier=control-plane -o jsonpath='{range .items[*]}{.spec.containers[0].image} {.status.containerStatuses[0].ready}{"\n"}{end}'`)
		if err != nil {
			return fmt.Errorf("%w: %s", err, said)
		}
		for _, one := range want {
			if !slices.Contains(strings.Split(said, "\n"), one) {
				return errors.New(said)
			}
		}
		return nil
	})
}

// pod sees to it that the node has a running pod of its own.
func (c *kubeadmCluster) pod(m *kubeadmMachine) {
	c.Helper()
	name := fmt.Sprintf("pod-%d", time.Now().UnixNano())
	c.controlPlane.write("/root/pod.yaml", fmt.Sprintf(`apiVersion: v1
kind: Pod
metadata: {name: %s}
spec:
  nodeName: %s
  hostNetwork: true
  automountServiceAccountToken: false
  terminationGracePeriodSeconds: 1
  tolerations: [{operator: Exists}]
  containers: [{name: pause, image: %q, imagePullPolicy: Never}]
`, name, m.name, cluster.PauseImage))
	c.kubectl("create -f /root/pod.yaml")
	await(c.T, name+" runs on "+m.name, func() error {
		said, err := c.tryKubectl("get pod %s -o jsonpath='{.status.phase}'", name)
		if err == nil && said != "Running" {
			err = errors.New(said)
		}
		return err
	})
}
