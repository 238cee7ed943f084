//go:build linux

package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"

	"k8s.io/client-go/rest"
)

const (
	apiServerAddress = "127.0.0.1:6443"
	etcdURL          = "http://127.0.0.1:2379"
)

// writeFiles writes what the parts, the kubelet and kubectl read.
func (c *Cluster) writeFiles() error {
	if err := c.writePKI(); err != nil {
		return fmt.Errorf("making certificates: %w", err)
	}
	if err := os.MkdirAll(c.path("cni"), 0o755); err != nil {
		return err
	}
	for file, content := range map[string]string{
		"admin.kubeconfig":       c.kubeconfig("admin"),
		NodeName + ".kubeconfig": c.kubeconfig("node"),
		"kubelet.yaml":           c.KubeletConfig(),
		"containerd.toml":        c.containerdConfig(),
		"audit.yaml":             c.auditPolicy(),
		// Enough for the Node to be Ready; pods use the host's network.
		"cni/10-loopback.conflist": `{"cniVersion": "0.4.0", "name": "loopback", "plugins": [{"type": "loopback"}]}` + "\n",
	} {
		if err := os.WriteFile(c.path(file), []byte(content), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// auditPolicy says what the API server notes.
func (c *Cluster) auditPolicy() string {
	if c.auditRules != "" {
		return c.auditRules + "- level: Metadata\n"
	}
	objects := ""
	if c.objects {
		objects = "{level: RequestResponse, verbs: [create, update, patch, delete], resources: [{group: '', resources: [nodes, nodes/status]}, " +
			"{group: kubelet-supervisor.io, resources: [kubeletpools, kubeletpools/status]}]}, "
	}
	return "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules: [" + objects + "{level: Metadata}]\n"
}

// kubeconfig names certificate files, which client-go reads again when they change.
func (c *Cluster) kubeconfig(user string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: Config
clusters:
- name: cluster
  cluster: {server: "https://%s", certificate-authority: %q}
users:
- name: user
  user: {client-certificate: %q, client-key: %q}
contexts:
- name: context
  context: {cluster: cluster, user: user}
current-context: context
`, apiServerAddress, c.path("pki/ca.crt"), c.path("pki", user+".crt"), c.path("pki", user+".key"))
}

// containerdConfig keeps all of containerd's files in the folder. The native snapshotter works on every file system.
func (c *Cluster) containerdConfig() string {
	return strings.NewReplacer("FOLDER", c.Folder, "PAUSE", PauseImage).Replace(`version = 3
root = "FOLDER/containerd/root"
state = "FOLDER/containerd/state"
disabled_plugins = [
  "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs",
  "io.containerd.snapshotter.v1.erofs", "io.containerd.nri.v1.nri",
]

[grpc]
  address = "FOLDER/containerd.sock"

[plugins."io.containerd.internal.v1.opt"]
  path = "FOLDER/containerd/opt"

[plugins."io.containerd.cri.v1.images"]
  snapshotter = "native"
  [plugins."io.containerd.cri.v1.images".pinned_images]
    sandbox = "PAUSE"

[plugins."io.containerd.cri.v1.runtime"]
  disable_hugetlb_controller = true
  restrict_oom_score_adj = true
  netns_mounts_under_state_dir = true
  [plugins."io.containerd.cri.v1.runtime".cni]
    bin_dirs = ["/usr/lib/cni", "/opt/cni/bin"]
    conf_dir = "FOLDER/cni"
  [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
      Root = "FOLDER/containerd/runc"

[plugins."io.containerd.grpc.v1.cri"]
  disable_tcp_service = true
  stream_server_address = "127.0.0.1"
  stream_server_port = "0"
`)
}

func (c *Cluster) startContainerd() error {
	return c.start(containerd, c.part("containerd"), "--config="+c.path("containerd.toml"))
}

func (c *Cluster) startEtcd() error {
	const peer = "http://127.0.0.1:2380"
	return c.start(etcd, c.part("etcd"), "--name=etcd", "--data-dir="+c.path("etcd"), "--unsafe-no-fsync",
		"--listen-client-urls="+etcdURL, "--advertise-client-urls="+etcdURL,
		"--listen-peer-urls="+peer, "--initial-advertise-peer-urls="+peer, "--initial-cluster=etcd="+peer)
}

func (c *Cluster) startAPIServer() error {
	pki := func(name string) string { return c.path("pki", name) }
	arguments := []string{
		"--etcd-servers=" + etcdURL,
		"--bind-address=127.0.0.1", "--advertise-address=127.0.0.1", "--secure-port=6443", "--endpoint-reconciler-type=none",
		"--tls-cert-file=" + pki("apiserver.crt"), "--tls-private-key-file=" + pki("apiserver.key"), "--client-ca-file=" + pki("ca.crt"),
		"--service-account-issuer=https://kubernetes.default.svc", "--service-cluster-ip-range=10.0.0.0/24",
		"--service-account-key-file=" + pki("service-account.key"), "--service-account-signing-key-file=" + pki("service-account.key"),
		"--kubelet-client-certificate=" + pki("apiserver-kubelet-client.crt"), "--kubelet-client-key=" + pki("apiserver-kubelet-client.key"),
		"--kubelet-certificate-authority=" + pki("ca.crt"), "--kubelet-preferred-address-types=InternalIP,Hostname",
		"--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction", "--allow-privileged=true",
	}
	if c.apiServer == dynamicKubernetes {
		arguments = append(arguments, "--feature-gates=DynamicKubeletConfig=true")
	}
	if c.join {
		arguments = append(arguments, "--bind-address=0.0.0.0", "--enable-bootstrap-token-auth=true")
	}
	if c.audit {
		arguments = append(arguments, "--audit-log-path="+c.AuditLog(), "--audit-log-maxsize=100000", // MB: one file
			"--audit-policy-file="+c.path("audit.yaml"))
	}
	return c.start(apiServer, c.part("kube-apiserver-"+c.apiServer), arguments...)
}

func (c *Cluster) waitForContainerd(ctx context.Context) error {
	return c.waitFor(ctx, containerd, func(ctx context.Context) error {
		connection, err := new(net.Dialer).DialContext(ctx, "unix", c.path("containerd.sock"))
		if err != nil {
			return err
		}
		return connection.Close()
	})
}

func (c *Cluster) waitForAPIServer(ctx context.Context) error {
	client, err := rest.HTTPClientFor(c.AdminConfig())
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	return c.waitFor(ctx, apiServer, func(ctx context.Context) error {
		_, err := request(ctx, client, http.MethodGet, "https://"+apiServerAddress+"/readyz", nil)
		return err
	})
}

func (c *Cluster) importPauseImage(ctx context.Context) error {
	return c.ImportImage(ctx, c.part("pause.tar"))
}

// ImportImage loads the images of a tar file into the node's runtime, by the names that it gives them.
func (c *Cluster) ImportImage(ctx context.Context, file string) error {
	output, err := c.commandContext(ctx, c.part("ctr"), "--address="+c.path("containerd.sock"), "--namespace=k8s.io",
		"images", "import", "--local", "--snapshotter=native", file).CombinedOutput()
	if err != nil {
		return fmt.Errorf("importing %s: %w: %s", file, err, output)
	}
	return nil
}

// AuditLog is the file in which the API server notes each request but, without Options.Objects, not its content, audit.k8s.io/v1 events line by line, of a
// cluster with Options.Audit. It is rotated by the API server at 100 MB.
func (c *Cluster) AuditLog() string { return c.path("log", "audit.log") }

// StopAPIServer stops kube-apiserver; when it returns, nothing answers.
func (c *Cluster) StopAPIServer() { c.stopPart(apiServer) }

// StartAPIServer starts it again and waits until it is ready.
func (c *Cluster) StartAPIServer(ctx context.Context) error {
	return errors.Join(c.startAPIServer(), c.waitForAPIServer(ctx))
}

// StopEtcd stops etcd: the API server answers, but with errors.
func (c *Cluster) StopEtcd() { c.stopPart(etcd) }

// StartEtcd starts it again and waits until the API server is ready.
func (c *Cluster) StartEtcd(ctx context.Context) error {
	return errors.Join(c.startEtcd(), c.waitForAPIServer(ctx))
}

// StopContainerd stops containerd; containers that run go on.
func (c *Cluster) StopContainerd() { c.stopPart(containerd) }

// StartContainerd starts it again and waits until it takes connections.
func (c *Cluster) StartContainerd(ctx context.Context) error {
	return errors.Join(c.startContainerd(), c.waitForContainerd(ctx))
}

// request makes one HTTP request, JSON both ways, and returns the body of a 2xx answer.
func request(ctx context.Context, client *http.Client, method, url string, body io.Reader) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, method, url, body)
	if err != nil {
		return nil, err
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	response, err := client.Do(r)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	if response.StatusCode/100 != 2 {
		return nil, &statusError{code: response.StatusCode, text: fmt.Sprintf("%s %s: %s: %s", method, url, response.Status, content)}
	}
	return content, nil
}

// A statusError is an HTTP answer that is not 2xx.
type statusError struct {
	code int
	text string
}

func (e *statusError) Error() string { return e.text }
