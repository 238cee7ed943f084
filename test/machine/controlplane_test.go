//go:build machine

package machine

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/cluster"
)

// controlPlanesLife are rows of docs/operate/kubeadm.md, and what a virtual machine alone can show, as workersLife are.
var controlPlanesLife = []struct {
	row string
	do  func(n *controlPlane)
}{
	{"1. `kubelet-supervisor enable`, before `kubeadm init`", (*controlPlane).enabledBeforeInit},
	{"2. `kubeadm init`", (*controlPlane).initialized},
	{"3. a configuration is assigned to the control-plane node", (*controlPlane).assigned},
	{"", (*controlPlane).rebooted},
	{"4. `local` is assigned to it", (*controlPlane).local},
	{"8. `kubeadm upgrade apply`", (*controlPlane).upgraded},
}

// kubeadm makes a virtual machine a cluster of its own. Its API server is a pod of the kubelet that asks it for its configuration.
func TestAControlPlaneThatKubeadmMakes(t *testing.T) {
	page, err := os.ReadFile("../../docs/operate/kubeadm.md")
	if err != nil {
		t.Fatal(err)
	}
	n := newControlPlane(t)
	for _, step := range controlPlanesLife {
		if !strings.Contains(string(page), "\n| "+step.row) {
			t.Fatalf("docs/operate/kubeadm.md has no step %s", step.row)
		}
		begin := time.Now()
		step.do(n)
		t.Logf("step %q: %.0f s", cmp.Or(step.row, "a reboot"), time.Since(begin).Seconds())
		if t.Failed() {
			t.Fatalf("step %q: not as the page says", step.row)
		}
	}
}

// controlPlane is a node that kubeadm makes, with the control plane of its cluster.
type controlPlane struct{ *worker }

const (
	forwarded = "127.0.0.1:16443" // the way from this host to the machine's API server

	oldVersion, newVersion = "v1.36.2", "v1.36.3"

	// On an emulated processor nobody renews a lease in time.
	controlPlanesConfiguration = `apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
localAPIEndpoint: {advertiseAddress: ` + address + `}
nodeRegistration: {name: ` + cluster.NodeName + `, criSocket: "` + criSocket + `", imagePullPolicy: Never}
skipPhases: [addon]
` + controlPlanesTimeouts + `---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: VERSION
controllerManager: {extraArgs: [{name: leader-elect, value: "false"}]}
scheduler: {extraArgs: [{name: leader-elect, value: "false"}]}
---
` + kubeadmsKubeletConfiguration

	controlPlanesTimeouts = "timeouts: {controlPlaneComponentHealthCheck: 30m, upgradeManifests: 30m, kubeletHealthCheck: 20m, kubernetesAPICall: 20m, etcdAPICall: 20m}\n"
)

// newControlPlane gives a machine that is on, as packages leave it. kubeadm asks for 1,700 MB of memory, and for two processors.
func newControlPlane(t *testing.T) *controlPlane {
	t.Helper()
	host := newNode(t) // for its network: the machine is no node of that cluster
	images := filepath.Join(shared, "images.img")
	n := &controlPlane{&worker{node: &node{newMachine(t, "node", nodeDisk(t), host.Command, "-m", "2560",
		"-netdev", fmt.Sprintf("user,id=net,hostfwd=tcp:%s-%s:6443", forwarded, address),
		"-drive", "if=none,id=images,format=raw,snapshot=on,file="+images, "-device", "virtio-blk-pci,drive=images"),
		&outside{Cluster: host.Cluster}}}}
	n.on()
	n.must("systemctl stop containerd && mkdir -p /var/lib/containerd")
	n.write("/etc/systemd/system/containerd.service.d/images.conf", "[Service]\nExecStartPre=sh -c 'mountpoint -q /var/lib/containerd || mount /dev/vdb /var/lib/containerd'\n")
	n.must("systemctl daemon-reload && systemctl start containerd")
	n.prepare()
	return n
}

// enabledBeforeInit is what comes before kubeadm init; without a configuration no kubelet stays.
func (n *controlPlane) enabledBeforeInit() { n.enabledBeforeJoin() }

func (n *controlPlane) initialized() {
	supervisor := n.property("kubelet", "MainPID")
	n.init(oldVersion)
	n.says(n.T, "", "Local")
	n.worker.local()
	n.hasNew(alive{supervisor: supervisor}, "supervisor", "kubelet")
}

// init lets kubeadm make the cluster, and an administrator apply what this project's nodes ask for.
func (n *controlPlane) init(version string) {
	n.machine.Helper()
	n.kubeadm("init", strings.Replace(controlPlanesConfiguration, "VERSION", version, 1))
	n.client = n.administrator()
	n.staticPods(version)
	kubectl := n.KubectlArguments()
	said, err := n.Command(kubectl[slices.Index(kubectl, "--")+1], "--kubeconfig="+n.adminFile(), "apply", "-k", "../../deploy/manifests").CombinedOutput()
	if err != nil {
		n.Fatalf("kubectl apply: %v: %s", err, said)
	}
}

// adminFile is kubeadm's admin.conf, for the way from this host.
func (n *controlPlane) adminFile() string {
	n.machine.Helper()
	config, err := clientcmd.Load([]byte(n.must("cat /etc/kubernetes/admin.conf")))
	if err != nil {
		n.Fatal(err)
	}
	for _, c := range config.Clusters {
		c.Server, c.TLSServerName = "https://"+forwarded, address
	}
	file := filepath.Join(n.TempDir(), "admin.conf")
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		n.Fatal(err)
	}
	return file
}

func (n *controlPlane) administrator() *kubernetes.Clientset {
	n.machine.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", n.adminFile())
	if err != nil {
		n.Fatal(err)
	}
	config.Dial, config.QPS = n.Dial, -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		n.Fatal(err)
	}
	return client
}

// staticPods waits until the control plane runs, and is made of this version's images. After a boot the pods say for a while what they were
// before it, so their containers have to be there.
func (n *controlPlane) staticPods(version string) {
	n.machine.Helper()
	await(n.T, "a control plane of "+version, func() error {
		pods, err := n.client.CoreV1().Pods(namespace).List(n.Context(), metav1.ListOptions{LabelSelector: "tier=control-plane"})
		if err != nil {
			return err
		}
		ready, running := 0, n.containers()
		for _, pod := range pods.Items {
			image, of := pod.Spec.Containers[0].Image, pod.Status.ContainerStatuses
			if len(of) != 1 || !of[0].Ready || !strings.HasSuffix(image, ":"+version) && pod.Labels["component"] != "etcd" {
				return fmt.Errorf("%s of %s: %+v", pod.Name, image, of)
			}
			if id := strings.TrimPrefix(of[0].ContainerID, "containerd://"); !slices.Contains(running, id) {
				return fmt.Errorf("%s: its container %s does not run", pod.Name, id)
			}
			ready++
		}
		if ready != 4 {
			return fmt.Errorf("%d pods", ready)
		}
		return nil
	})
}

// assigned: a copy of kubeadm's own configuration with more in it. The API server that told of it goes on.
func (n *controlPlane) assigned() {
	before := n.alive()
	made := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "control-plane"},
		Data: map[string]string{"kubelet": strings.TrimSpace(n.kubeadmsConfig().Data["kubelet"]) + "\nmaxPods: 60\n"}}
	if _, err := n.client.CoreV1().ConfigMaps("kubelet-config").Create(n.Context(), made, metav1.CreateOptions{}); err != nil {
		n.Fatal(err)
	}
	n.assignment = "kubelet-config/control-plane/kubelet"
	n.assign(n.T, n.assignment)
	n.says(n.T, n.assignment, "Active")
	n.runsWith(60)
	n.hasNew(before, "kubelet")
}

// runsWith waits until the kubelet says, by the API server, that it has so many pods at most.
func (n *controlPlane) runsWith(pods int) {
	n.machine.Helper()
	await(n.T, fmt.Sprintf("a kubelet with maxPods %d", pods), func() error {
		said, err := n.client.CoreV1().RESTClient().Get().AbsPath("/api/v1/nodes/" + cluster.NodeName + "/proxy/configz").DoRaw(n.Context())
		if err != nil {
			return err
		}
		if has := regexp.MustCompile(`"maxPods":\d+`).FindString(string(said)); has != fmt.Sprintf(`"maxPods":%d`, pods) {
			return errors.New(has)
		}
		return nil
	})
}

// rebooted: the kubelet has to run before there is an API server, for that is its pod. Then the node is what it was, without a trial.
func (n *controlPlane) rebooted() {
	n.reboot()
	n.staticPods(oldVersion)
	if s := n.healthy(); s.Trial != nil || s.Condition.Reason != "Active" || s.Assignment != n.assignment {
		n.Errorf("after the boot: %s", s.text)
	}
	n.says(n.T, n.assignment, "Active")
	n.runsWith(60)
}

func (n *controlPlane) local() {
	before := n.alive()
	n.assign(n.T, "local")
	n.says(n.T, "local", "Local")
	n.runsWith(localPods)
	n.worker.local()
	n.hasNew(before, "kubelet")
}

// upgraded: kubeadm replaces the static pods and writes the file of the node anew; its kubelet goes on with the old one, and says so.
func (n *controlPlane) upgraded() {
	before := n.alive()
	before.containers = nil
	own := n.kubeadmsConfig()
	own.Data["kubelet"] = strings.TrimSpace(own.Data["kubelet"]) + "\nmaxPods: 90\n"
	if _, err := n.client.CoreV1().ConfigMaps(namespace).Update(n.Context(), own, metav1.UpdateOptions{}); err != nil {
		n.Fatal(err)
	}
	// There is no CoreDNS to look at, and its check that a Job runs wants a network of pods.
	n.kubeadm("upgrade apply", `apiVersion: kubeadm.k8s.io/v1beta4
kind: UpgradeConfiguration
apply: {kubernetesVersion: `+newVersion+`, forceUpgrade: true, imagePullPolicy: Never, ignorePreflightErrors: [CreateJob, CoreDNSUnsupportedPlugins, CoreDNSMigration], skipPhases: [addon]}
`+controlPlanesTimeouts)
	n.must("grep -q 'maxPods: 90' /var/lib/kubelet/config.yaml")
	n.staticPods(newVersion)
	n.runsWith(localPods)
	n.localChangeIsPending()
	n.hasNew(before)
}
