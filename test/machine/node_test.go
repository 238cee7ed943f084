//go:build machine

package machine

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/cluster"
	"github.com/kubelet-supervisor/kubelet-supervisor/test/machine/disk"
)

// address is the machine's own, as QEMU's network for users has it.
const address = "10.0.2.15"

// configuration is the node's own, as kubeadm writes it but for what needs a network of pods. It does not say failCgroupV1: a kubelet
// that runs with it has cgroup v2.
const configuration = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication:
  anonymous: {enabled: false}
  webhook: {enabled: false}
  x509: {clientCAFile: /etc/kubernetes/pki/ca.crt}
authorization: {mode: AlwaysAllow}
tlsCertFile: /etc/kubernetes/pki/kubelet-serving.crt
tlsPrivateKeyFile: /etc/kubernetes/pki/kubelet-serving.key
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
cgroupDriver: systemd
makeIPTablesUtilChains: false
resolvConf: ""
nodeStatusUpdateFrequency: 5s
imageGCHighThresholdPercent: 100
evictionHard: {memory.available: 50Mi}
`

// kubeconfig reaches the API server by the host's loopback.
const kubeconfig = `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://10.0.2.2:6443", certificate-authority: %[1]s/ca.crt}}]
users: [{name: u, user: {client-certificate: %[1]s/node.crt, client-key: %[1]s/node.key}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
`

// withPods is a payload that can be told from others by its maxPods.
func withPods(number int, more ...string) string {
	return configuration + fmt.Sprintf("maxPods: %d\n", number) + strings.Join(more, "\n") + "\n"
}

// node is a machine with systemd, in the cluster.
type node struct {
	*machine
	*outside
}

// newNodeMachine gives one that is off, with this disk.
func newNodeMachine(t *testing.T, content *disk.Disk, more ...string) *node {
	t.Helper()
	return newMachineOf(t, newNode(t), content, more...)
}

// newMachineOf gives one that is to be the node of this cluster.
func newMachineOf(t *testing.T, o *outside, content *disk.Disk, more ...string) *node {
	t.Helper()
	network := fmt.Sprintf("user,id=net,hostfwd=tcp:127.0.0.1:10250-%s:10250", address)
	return &node{newMachine(t, "node", content, o.Command, append([]string{"-netdev", network}, more...)...), o}
}

// join makes the machine a node of the cluster, as kubeadm join does.
func (n *node) join() {
	n.machine.Helper()
	n.outside.giveKeys(n.machine, "/etc/kubernetes/pki")
	n.write("/etc/kubernetes/kubelet.conf", fmt.Sprintf(kubeconfig, "/etc/kubernetes/pki"))
	n.write("/var/lib/kubelet/config.yaml", configuration)
	n.write("/var/lib/kubelet/kubeadm-flags.env",
		fmt.Sprintf("KUBELET_KUBEADM_ARGS=\"--hostname-override=%s --node-ip=%s\"\n", cluster.NodeName, address))
}

// flags are the supervisor's on every node here; a test may give others after them. An emulated processor takes its time.
const flags = "--edit-spread=0 --start-timeout=6m --trial-period=30s"

// installed is the disk of a node on which the package is installed and enabled, and that has been switched off in good order.
var installed *disk.Disk

// install does that to a node that was switched on for the first time.
func (n *node) install() {
	n.machine.Helper()
	n.join()
	n.must("dpkg -i /run/machine/kubelet-supervisor.deb")
	n.must("kubelet-supervisor enable")
	n.setFlags()
	n.must("systemctl restart kubelet")
	n.healthy()
}

// setFlags gives the supervisor more flags, from its next start on.
func (n *node) setFlags(more ...string) {
	n.machine.Helper()
	n.write("/etc/kubelet-supervisor/flags.env", "KUBELET_SUPERVISOR_ARGS="+flags+" "+strings.Join(more, " ")+"\n")
}

// runningNode is a machine of its own with the package, switched on, with local active.
func runningNode(t *testing.T, more ...string) *node {
	t.Helper()
	if installed == nil {
		n := newNodeMachine(t, nodeDisk(t))
		n.on()
		n.install()
		n.poweroff()
		installed = n.disk.Clone()
	}
	n := newNodeMachine(t, installed.Clone(), more...)
	n.on()
	n.says(t, "", "Local")
	return n
}

// restartWith restarts the supervisor, and its kubelet, with other flags.
func (n *node) restartWith(flags ...string) {
	n.machine.Helper()
	n.setFlags(flags...)
	n.must("systemctl restart kubelet")
	n.healthy()
}

// status is what kubelet-supervisor status -o json says, as far as it is looked at.
type status struct {
	Running    bool
	Supervisor struct{ PID int }
	Child      *struct{ PID int }
	Healthy    bool
	Assignment string
	Condition  struct{ Reason, Message string }
	Trial      *struct {
		Healthy, Left duration
		Failures      int
	}
	Exits []struct{ Ran, Words string }
	text  string
}

type duration struct{ time.Duration }

func (d *duration) UnmarshalText(text []byte) (err error) {
	d.Duration, err = time.ParseDuration(string(text))
	return err
}

func (n *node) status() (s status, err error) {
	s.text, err = n.try("kubelet-supervisor status -o json 2>&1")
	if err != nil {
		return s, fmt.Errorf("%w: %s", err, s.text)
	}
	return s, json.Unmarshal([]byte(s.text), &s)
}

// healthy waits for a healthy kubelet that is the supervisor's only child and the machine's only kubelet.
func (n *node) healthy() (s status) {
	n.machine.Helper()
	await(n.T, "a healthy kubelet under the supervisor", func() (err error) {
		switch s, err = n.status(); {
		case err != nil:
			return err
		case !s.Healthy || s.Child == nil:
			return fmt.Errorf("not healthy: %s", s.text)
		}
		if kubelets, err := n.try("pgrep -x kubelet"); err != nil || kubelets != fmt.Sprint(s.Child.PID) {
			return fmt.Errorf("kubelets %q (%v), want only %d", kubelets, err, s.Child.PID)
		}
		return nil
	})
	return s
}

// runs waits until a healthy kubelet runs with so many pods at most, and gives what the supervisor says then. The kubelet itself is
// asked, which needs no API server.
func (n *node) runs(pods int) (s status) {
	n.machine.Helper()
	await(n.T, fmt.Sprintf("a kubelet with maxPods %d", pods), func() (err error) {
		config, err := n.Configz(n.Context())
		if err != nil {
			return err
		}
		if config["maxPods"] != float64(pods) {
			return fmt.Errorf("its maxPods is %v", config["maxPods"])
		}
		if s, err = n.status(); err == nil && !s.Healthy {
			err = fmt.Errorf("not healthy: %s", s.text)
		}
		return err
	})
	return s
}

const localPods = 110 // the default
