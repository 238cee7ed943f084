//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	configsync "github.com/kubelet-supervisor/kubelet-supervisor/sync"
	"github.com/kubelet-supervisor/kubelet-supervisor/test/cluster"
	"github.com/kubelet-supervisor/kubelet-supervisor/test/fakeruntime"
)

// renewEvery is more often than a kubelet renews its Lease, so that short trials see it.
const renewEvery = 2 * time.Second

// A fleet is what runs beside n1: the controller, and nodes with fake kubelets.
type fleet struct {
	programs []*cluster.Program
	fakes    []*fake

	renewing sync.WaitGroup
	end      []context.CancelFunc
}

// A fake is a node whose kubelet is the fake one, below a real kubelet-supervisor. What else a kubelet says the demo says with that node's
// identity: that the node is Ready, and its Lease.
type fake struct {
	name, folder string
	healthz      int // port
	client       *rest.RESTClient
	kubelet      string // program
	supervisor   *cluster.Program
}

// stop returns when all have ended; a second call does nothing. The error tells which of them did not end as it was asked to.
func (f *fleet) stop() (err error) {
	for _, end := range f.end {
		end()
	}
	f.renewing.Wait()
	for _, program := range f.programs {
		program.Signal(syscall.SIGTERM)
	}
	for _, program := range f.programs {
		if err = errors.Join(err, program.Stop(stopPatience)); program.Err != nil {
			err = errors.Join(err, fmt.Errorf("expected: exit code 0 after SIGTERM; seen: %w%s", program.Err, program.LastWords()))
		}
	}
	f.programs, f.end = nil, nil
	return err
}

// startController starts the controller in the folder of the commands, with the kubeconfig that they have made.
func (d *demo) startController() error {
	program, err := beside("kubelet-supervisor-controller")
	if err != nil {
		return err
	}
	d.command(controllerCommand + " &")
	command := d.cluster.Command(program, strings.Fields(controllerCommand)[1:]...)
	command.Dir = d.folder
	return d.launched(cluster.Start(command, filepath.Join(d.cluster.Folder, "log", "kubelet-supervisor-controller.log")))
}

func (d *demo) launched(program *cluster.Program, err error) error {
	if err == nil {
		d.fleet.programs = append(d.fleet.programs, program)
	}
	return err
}

// addFake makes a node with a fake kubelet. Its Node says that it is of the same kind as n1.
func (d *demo) addFake(ctx context.Context, name string, healthz int) error {
	f := &fake{name: name, folder: filepath.Join(d.cluster.Folder, name), healthz: healthz}
	identity, err := d.cluster.IdentityConfig("system:node:"+name, "system:nodes")
	if err != nil {
		return err
	}
	if f.client, err = configsync.NewClient(identity); err != nil {
		return err
	}
	if f.kubelet, err = beside("fakekubelet"); err != nil {
		return err
	}
	if err := f.write(d.cluster, identity); err != nil {
		return fmt.Errorf("making node %s: %w", name, err)
	}
	end, err := fakeruntime.Serve(f.path("runtime.sock")) // n1's has the pods of n1
	if err != nil {
		return err
	}
	d.fleet.end = append(d.fleet.end, end)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{NodeInfo: d.last.info, Conditions: []corev1.NodeCondition{
		{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", Message: "so says the demo"}}}}
	if err := f.client.Post().Resource("nodes").Body(node).Do(ctx).Error(); err != nil {
		return fmt.Errorf("making Node %s: %w", name, err)
	}
	renewing, end := context.WithCancel(context.Background())
	d.fleet.end = append(d.fleet.end, end)
	d.fleet.renewing.Go(func() { f.renew(renewing) })
	supervisor, err := beside("kubelet-supervisor")
	if err != nil {
		return err
	}
	words := append([]string{supervisor, "run", "--state-dir=" + f.path("state"), "--run-dir=" + f.path("run")}, supervisorFlags...)
	words = append(words, "--", f.kubelet, "--config="+f.path("kubelet.yaml"), "--kubeconfig="+f.path("kubeconfig"), "--hostname-override="+name,
		"--root-dir="+f.path("kubelet"), "--container-runtime-endpoint=unix://"+f.path("runtime.sock"), fmt.Sprintf("--healthz-port=%d", healthz))
	f.supervisor, err = d.cluster.Launch(filepath.Join(d.cluster.Folder, "log", name+".log"), words...)
	d.fleet.fakes = append(d.fleet.fakes, f)
	return d.launched(f.supervisor, err)
}

func (f *fake) path(name string) string { return filepath.Join(f.folder, name) }

// write writes the node's files: its identity, and n1's own configuration.
func (f *fake) write(c *cluster.Cluster, identity *rest.Config) error {
	if err := os.Mkdir(f.folder, 0o700); err != nil {
		return err
	}
	of, err := os.ReadFile(c.KubeletKubeconfig())
	if err != nil {
		return err
	}
	pki := filepath.Join(c.Folder, "pki") + "/"
	kubeconfig := strings.NewReplacer(pki+"node.crt", f.path("node.crt"), pki+"node.key", f.path("node.key")).Replace(string(of))
	return errors.Join(
		os.WriteFile(f.path("node.crt"), identity.CertData, 0o600),
		os.WriteFile(f.path("node.key"), identity.KeyData, 0o600),
		os.WriteFile(f.path("kubeconfig"), []byte(kubeconfig), 0o600),
		os.WriteFile(f.path("kubelet.yaml"), []byte(c.KubeletConfig()), 0o600))
}

// renew renews the node's Lease, and posts that it is Ready, until ctx ends. What fails is tried again when the next one is due.
func (f *fake) renew(ctx context.Context) {
	ticker := time.NewTicker(renewEvery)
	defer ticker.Stop()
	for {
		lease := fmt.Appendf(nil, `{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":%q},"spec":{"holderIdentity":%[1]q,`+
			`"leaseDurationSeconds":40,"renewTime":%[2]q}}`, f.name, time.Now().UTC().Format(metav1.RFC3339Micro))
		_ = f.client.Patch(types.ApplyPatchType).AbsPath("/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases", f.name).
			Param("fieldManager", "demo").Param("force", "true").Body(lease).Do(ctx).Error()
		status := fmt.Appendf(nil, `{"status":{"conditions":[{"type":"Ready","status":"True","reason":"KubeletReady","lastHeartbeatTime":%q}]}}`, time.Now().UTC().Format(time.RFC3339))
		_ = f.client.Patch(types.StrategicMergePatchType).Resource("nodes").Name(f.name).SubResource("status").Body(status).Do(ctx).Error()
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}
