//go:build linux

package scale

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/cluster"
)

const firstPort = 20000 // of healthz; the node's number is added

// A node is one of many: its folder has all that its supervisor and kubelet need.
type node struct {
	Name   string
	Folder string
	Port   int // of healthz
}

func (n node) path(name string) string { return filepath.Join(n.Folder, name) }
func (n node) log() string             { return n.path("log") }

// kubelet is the kubelet's command line without the program.
func (n node) kubelet() []string {
	return []string{"--config=" + n.path("kubelet.yaml"), "--root-dir=" + n.path("kubelet"), "--kubeconfig=" + n.path("kubeconfig"), "--hostname-override=" + n.Name,
		fmt.Sprintf("--healthz-port=%d", n.Port)}
}

// makeNodes makes the folders, the identities and the Nodes.
func makeNodes(ctx context.Context, c *cluster.Cluster, admin rest.Interface, disk string, count int) (nodes []node, err error) {
	for i := range count {
		n := node{Name: fmt.Sprintf("scale-%04d", i+1), Port: firstPort + i}
		n.Folder = filepath.Join(disk, n.Name)
		nodes = append(nodes, n)
		if err := n.write(c); err != nil {
			return nil, fmt.Errorf("making node %s: %w", n.Name, err)
		}
	}
	return nodes, each(ctx, nodes, func(ctx context.Context, n node) error {
		object := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.Name}}
		return admin.Post().Resource("nodes").Body(object).Do(ctx).Error()
	})
}

func (n node) write(c *cluster.Cluster) error {
	if err := os.Mkdir(n.Folder, 0o700); err != nil {
		return err
	}
	identity, err := c.IdentityConfig("system:node:"+n.Name, "system:nodes")
	if err != nil {
		return err
	}
	own, err := os.ReadFile(c.KubeletKubeconfig())
	if err != nil {
		return err
	}
	pki := filepath.Join(c.Folder, "pki") + "/"
	kubeconfig := strings.NewReplacer(pki+"node.crt", n.path("node.crt"), pki+"node.key", n.path("node.key")).Replace(string(own))
	return errors.Join(
		os.WriteFile(n.path("node.crt"), identity.CertData, 0o600),
		os.WriteFile(n.path("node.key"), identity.KeyData, 0o600),
		os.WriteFile(n.path("kubeconfig"), []byte(kubeconfig), 0o600),
		os.WriteFile(n.path("kubelet.yaml"), []byte(c.KubeletConfig()), 0o600))
}

// atOnce is how many requests the measurement has under way.
const atOnce = 16

// each does something for every node, many at a time, and gives the first error.
func each(ctx context.Context, nodes []node, do func(context.Context, node) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	work, done := make(chan node), make(chan struct{})
	for range atOnce {
		go func() {
			defer func() { done <- struct{}{} }()
			for n := range work {
				if err := do(ctx, n); err != nil {
					cancel(fmt.Errorf("node %s: %w", n.Name, err))
				}
			}
		}()
	}
	for _, n := range nodes {
		work <- n
	}
	close(work)
	for range atOnce {
		<-done
	}
	return context.Cause(ctx)
}
