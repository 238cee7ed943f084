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
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/kubelet-supervisor/kubelet-supervisor/deploy"
	configsync "github.com/kubelet-supervisor/kubelet-supervisor/sync"
	"github.com/kubelet-supervisor/kubelet-supervisor/test/cluster"
	"github.com/kubelet-supervisor/kubelet-supervisor/test/fakeruntime"
	"github.com/kubelet-supervisor/kubelet-supervisor/test/watch/dashboard"
)

const (
	patience    = 5 * time.Minute // far more than any step takes
	stopWithin  = 30 * time.Second
	trial       = 20 * time.Second // long enough to be seen between two readings
	readEvery   = 2 * time.Second
	controllers = 2
)

// fakeNodes have fake kubelets, and are the members of the pool. n1 has a real one.
var fakeNodes = []string{"n2", "n3", "n4", "n5"}

// A stage is all that runs.
type stage struct {
	options
	cluster   *cluster.Cluster
	dashboard *dashboard.Dashboard
	admin     *rest.RESTClient
	programs  []*cluster.Program
	nodes     map[string]*cluster.Program // supervisors
	leaders   []*cluster.Program          // controllers
	beside    sync.WaitGroup
	end       context.CancelFunc
	steps     []happened
}

// stop returns when all have ended. How they end is not what is looked at here.
func (s *stage) stop() {
	if s.end != nil {
		s.end()
	}
	s.beside.Wait()
	s.dashboard.Stop()
	for _, p := range s.programs {
		_ = p.Stop(stopWithin)
	}
}

func (s *stage) path(words ...string) string {
	return filepath.Join(append([]string{s.cluster.Folder}, words...)...)
}

func (s *stage) launch(name string, words ...string) (*cluster.Program, error) {
	p, err := s.cluster.Launch(s.path("log", name+".log"), words...)
	if err == nil {
		s.programs = append(s.programs, p)
	}
	return p, err
}

// build brings up nodes, controllers and Prometheus.
func (s *stage) build(ctx context.Context) (err error) {
	if s.admin, err = configsync.NewClient(s.cluster.AdminConfig()); err != nil {
		return err
	}
	for _, words := range [][]string{
		{"apply", "--server-side", "-k", "deploy/manifests"}, {"apply", "--server-side", "-k", "deploy/manifests/external"},
		{"wait", "--for=condition=Established", "crd/kubeletpools.kubelet-supervisor.io", "--timeout=60s"},
	} {
		if _, err := s.cluster.Kubectl(ctx, words...); err != nil {
			return err
		}
	}
	beside, end := context.WithCancel(context.Background())
	s.end = end
	s.nodes = map[string]*cluster.Program{}
	if err := s.realNode(); err != nil {
		return err
	}
	if err := s.awaitNode(ctx, cluster.NodeName, "Local"); err != nil {
		return err
	}
	for i, name := range fakeNodes {
		if err := s.fakeNode(ctx, beside, name, 10258+10*i); err != nil {
			return fmt.Errorf("node %s: %w", name, err)
		}
	}
	for i := range controllers {
		if err := s.controller(i); err != nil {
			return err
		}
	}
	return s.startDashboard(ctx)
}

// startDashboard has Prometheus read everybody.
func (s *stage) startDashboard(ctx context.Context) error {
	if err := s.dashboard.States(func(ctx context.Context) ([]corev1.Node, error) {
		var nodes corev1.NodeList
		err := s.admin.Get().Resource("nodes").Do(ctx).Into(&nodes)
		return nodes.Items, err
	}); err != nil {
		return err
	}
	for _, name := range append([]string{cluster.NodeName}, fakeNodes...) {
		if err := s.dashboard.Textfiles(name, s.textfiles(name)); err != nil {
			return err
		}
	}
	for i := range controllers {
		s.dashboard.Controller(controllerAddress(i))
	}
	return s.dashboard.Start(ctx)
}

func controllerAddress(i int) string { return fmt.Sprintf("127.0.0.1:%d", 8443+i) }

// textfiles is the folder of a node's metrics.
func (s *stage) textfiles(node string) string { return s.path("textfile-" + node) }

// supervise starts a supervisor above a kubelet.
func (s *stage) supervise(name string, kubelet ...string) (err error) {
	own, err := os.Executable()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(s.textfiles(name), 0o700); err != nil {
		return err
	}
	words := append([]string{filepath.Join(filepath.Dir(own), "kubelet-supervisor"), "run", "--state-dir=" + s.path("state-"+name), "--run-dir=" + s.path("run-"+name),
		"--trial-period=" + trial.String(), "--edit-spread=0s", "--stop-timeout=10s", "--metrics-file=" + filepath.Join(s.textfiles(name), "kubelet_supervisor.prom"), "--"}, kubelet...)
	s.nodes[name], err = s.launch(name, words...)
	return err
}

// realNode is n1. Its flag goes before a field of a configuration.
func (s *stage) realNode() error {
	return s.supervise(cluster.NodeName, s.cluster.KubeletArguments("--event-qps=33")...)
}

// fakeNode makes a node with a fake kubelet. What else a kubelet says, that the node is Ready and its Lease, we say for it.
func (s *stage) fakeNode(ctx, beside context.Context, name string, healthz int) error {
	identity, err := s.cluster.IdentityConfig("system:node:"+name, "system:nodes")
	if err != nil {
		return err
	}
	client, err := configsync.NewClient(identity)
	if err != nil {
		return err
	}
	of, err := os.ReadFile(s.cluster.KubeletKubeconfig())
	if err != nil {
		return err
	}
	at := func(file string) string { return s.path("fake-"+name, file) }
	kubeconfig := strings.NewReplacer(s.path("pki", "node.crt"), at("node.crt"), s.path("pki", "node.key"), at("node.key")).Replace(string(of))
	if err := errors.Join(os.Mkdir(at(""), 0o700), os.WriteFile(at("node.crt"), identity.CertData, 0o600), os.WriteFile(at("node.key"), identity.KeyData, 0o600),
		os.WriteFile(at("kubeconfig"), []byte(kubeconfig), 0o600), os.WriteFile(at("kubelet.yaml"), []byte(s.cluster.KubeletConfig()), 0o600)); err != nil {
		return err
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{
		NodeInfo:   corev1.NodeSystemInfo{KubeletVersion: "v1.36.3", Architecture: "amd64", BootID: "boot-" + name},
		Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady"}}}}
	if err := client.Post().Resource("nodes").Body(node).Do(ctx).Error(); err != nil {
		return err
	}
	s.beside.Go(func() { renew(beside, client, name) })
	stop, err := fakeruntime.Serve(at("runtime.sock")) // the real one has the pods of the real node
	if err != nil {
		return err
	}
	s.beside.Go(func() { <-beside.Done(); stop() })
	own, err := os.Executable()
	if err != nil {
		return err
	}
	return s.supervise(name, filepath.Join(filepath.Dir(own), "fakekubelet"), "--config="+at("kubelet.yaml"), "--kubeconfig="+at("kubeconfig"), "--hostname-override="+name,
		"--root-dir="+at("kubelet"), "--container-runtime-endpoint=unix://"+at("runtime.sock"), fmt.Sprintf("--healthz-port=%d", healthz))
}

// renew renews a node's Lease, and posts that it is Ready, until ctx ends. What fails is tried again when the next one is due.
func renew(ctx context.Context, client *rest.RESTClient, name string) {
	every(ctx, func() {
		lease := fmt.Appendf(nil, `{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":%q},"spec":{"holderIdentity":%[1]q,`+
			`"leaseDurationSeconds":40,"renewTime":%[2]q}}`, name, time.Now().UTC().Format(metav1.RFC3339Micro))
		_ = client.Patch(types.ApplyPatchType).AbsPath("/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases", name).
			Param("fieldManager", "watch").Param("force", "true").Body(lease).Do(ctx).Error()
		status := fmt.Appendf(nil, `{"status":{"conditions":[{"type":"Ready","status":"True","reason":"KubeletReady","lastHeartbeatTime":%q}]}}`, time.Now().UTC().Format(time.RFC3339))
		_ = client.Patch(types.StrategicMergePatchType).Resource("nodes").Name(name).SubResource("status").Body(status).Do(ctx).Error()
	})
}

// every does something each time that is read, until ctx ends.
func every(ctx context.Context, do func()) {
	ticker := time.NewTicker(readEvery)
	defer ticker.Stop()
	for {
		do()
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// controller starts one, as the user that it is outside of the cluster.
func (s *stage) controller(i int) error {
	identity, err := s.cluster.IdentityConfig(deploy.ControllerUser)
	if err != nil {
		return err
	}
	of, err := os.ReadFile(s.cluster.KubeletKubeconfig())
	if err != nil {
		return err
	}
	name := fmt.Sprintf("controller-%d", i)
	kubeconfig := strings.NewReplacer(s.path("pki", "node.crt"), s.path("controller.crt"), s.path("pki", "node.key"), s.path("controller.key")).Replace(string(of))
	if err := errors.Join(os.WriteFile(s.path("controller.crt"), identity.CertData, 0o600), os.WriteFile(s.path("controller.key"), identity.KeyData, 0o600),
		os.WriteFile(s.path("controller.kubeconfig"), []byte(kubeconfig), 0o600)); err != nil {
		return err
	}
	own, err := os.Executable()
	if err != nil {
		return err
	}
	p, err := s.launch(name, filepath.Join(filepath.Dir(own), "kubelet-supervisor-controller"), "--kubeconfig="+s.path("controller.kubeconfig"), "--health-address=0",
		"--metrics-address="+controllerAddress(i), "--metrics-self-signed")
	s.leaders = append(s.leaders, p)
	return err
}
