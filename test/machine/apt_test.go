//go:build machine

package machine

import (
	"errors"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	oldKubelet = "1.35.4" // which kubeadm 1.36 joins, too
	newKubelet = "1.36.3"

	// oldGate is a feature gate that the old kubelet has, and the new one has not.
	oldGate = "featureGates: {MemoryManager: true}\n"
)

// packagesDisk are QEMU's arguments for a second disk: a folder for apt, with both kubelets.
func packagesDisk() []string {
	return []string{"-drive", "if=none,id=packages,format=raw,readonly=on,file=" + filepath.Join(shared, "packages.img"), "-device", "virtio-blk-pci,drive=packages"}
}

// mountPackages has to be done after each boot.
func (n *worker) mountPackages() {
	n.machine.Helper()
	n.must("mkdir -p /srv/packages && mount -o ro /dev/vdb /srv/packages")
}

// installOldKubelet is what comes before kubeadm. From then on the folder is all that apt knows.
func (n *worker) installOldKubelet() {
	n.machine.Helper()
	n.mountPackages()
	n.write("/etc/apt/sources.list", "deb [trusted=yes] file:/srv/packages ./\n")
	n.must("apt-get update -q && apt-get install -q -y kubelet=%s", oldKubelet)
	n.hasPackage(oldKubelet)
}

// hasPackage sees to it that this version of the kubelet is installed, and whole.
func (n *worker) hasPackage(version string) {
	n.machine.Helper()
	if got := n.must("dpkg-query -W -f '${db:Status-Abbrev}${Version}' kubelet && kubelet --version"); got != "ii "+version+"Kubernetes v"+version {
		n.Errorf("installed is %s, want %s", got, version)
	}
}

// aptRefused: the new kubelet is asked before it is unpacked, and says no.
func (n *worker) aptRefused() {
	before := n.alive()
	n.mountPackages()
	said, err := n.try("apt-get install -q -y kubelet")
	if err == nil || !strings.Contains(said, "unrecognized feature gate: MemoryManager") || !strings.Contains(said, "kubelet-supervisor: nothing is installed") {
		n.Errorf("%v: %s", err, said)
	}
	n.hasPackage(oldKubelet)
	n.active()
	n.hasNew(before)
}

// aptAccepted: the configuration is corrected as an administrator does it. Then the new kubelet is installed, and the old one runs on.
func (n *worker) aptAccepted() {
	config := n.configMapNamed("worker")
	config.ObjectMeta = metav1.ObjectMeta{Name: "worker-without-gate"}
	config.Data["kubelet"] = strings.Replace(config.Data["kubelet"], oldGate, "", 1)
	n.assigns(config)
	before := n.alive()
	n.Logf("apt-get install: %s", n.must("apt-get install -q -y kubelet"))
	n.hasPackage(newKubelet)
	n.localChangeIsPending()
	n.hasVersion(oldKubelet)
	n.hasNew(before)
}

// restartedForNewKubelet: what passed its trial under the old one has to pass another.
func (n *worker) restartedForNewKubelet() {
	before := n.alive()
	n.must("systemctl restart kubelet")
	n.says(n.T, n.assignment, "InTrial")
	n.hasVersion(newKubelet)
	n.active()
	n.hasNew(before, "supervisor", "kubelet")
}

// configMapNamed is one of those that nodes are assigned.
func (n *worker) configMapNamed(name string) *corev1.ConfigMap {
	n.machine.Helper()
	found, err := n.client.CoreV1().ConfigMaps("kubelet-config").Get(n.Context(), name, metav1.GetOptions{})
	if err != nil {
		n.Fatal(err)
	}
	return found
}

// localChangeIsPending waits until the Node says that files have changed, none of which the kubelet would refuse.
func (n *worker) localChangeIsPending() {
	n.machine.Helper()
	await(n.T, "the Node says that files have changed", func() error {
		v, err := n.view(n.T)
		if err == nil && (!strings.Contains(v.Condition.Message, "LocalChangePending: ") || strings.Contains(v.Condition.Message, "refused")) {
			err = errors.New(v.Condition.Message)
		}
		return err
	})
}

// hasVersion waits until the Node says that its kubelet is of this version.
func (n *worker) hasVersion(version string) {
	n.machine.Helper()
	await(n.T, "a kubelet of "+version, func() error {
		info, err := n.nodeInfo()
		if err == nil && info.KubeletVersion != "v"+version {
			err = errors.New(info.KubeletVersion)
		}
		return err
	})
}
