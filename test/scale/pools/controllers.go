//go:build linux

package pools

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/kubelet-supervisor/kubelet-supervisor/deploy"
	"github.com/kubelet-supervisor/kubelet-supervisor/test/cluster"
)

const controllerUser = deploy.ControllerUser

// install applies all manifests as they are shipped. Nobody runs the Deployment here.
func (m *measurement) install(ctx context.Context) (err error) {
	if m.admin, err = newClient(m.cluster); err != nil {
		return err
	}
	for _, part := range []struct {
		from   fs.FS
		folder string
	}{{deploy.Manifests, "manifests"}, {deploy.ControllerManifests, "manifests/controller"}, {deploy.ControllerManifests, "manifests/external"}} {
		below, err := fs.Sub(part.from, part.folder)
		if err != nil {
			return err
		}
		to := filepath.Join(m.folder, filepath.Base(part.folder))
		if err := os.CopyFS(to, below); err != nil {
			return err
		}
		if _, err := m.cluster.Kubectl(ctx, "apply", "--server-side", "-k", to); err != nil {
			return err
		}
	}
	_, err = m.cluster.Kubectl(ctx, "wait", "--for=condition=Established", "crd/kubeletpools.kubelet-supervisor.io", "--timeout=60s")
	return err
}

// launch starts a controller as the user that it is outside of the cluster.
func (m *measurement) launch(name, metrics string) (*cluster.Program, error) {
	identity, err := m.cluster.IdentityConfig(controllerUser)
	if err != nil {
		return nil, err
	}
	kubeconfig := filepath.Join(m.folder, name+".kubeconfig")
	if err := cluster.WriteKubeconfig(kubeconfig, identity.Host, identity); err != nil {
		return nil, err
	}
	return m.cluster.Launch(filepath.Join(m.folder, name+".log"), m.Controller, "--kubeconfig="+kubeconfig, "--health-address=0", "--metrics-address="+metrics, "--metrics-self-signed")
}

func (m *measurement) end() {
	for _, p := range []*cluster.Program{m.first, m.second} {
		if p != nil {
			_ = p.Stop(30 * time.Second)
		}
	}
}

// words are the leader's last ones.
func (m *measurement) words() string {
	if m.first == nil {
		return ""
	}
	return m.first.LastWords()
}
