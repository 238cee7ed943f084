//go:build linux

package cluster

import (
	"crypto/x509"
	"fmt"
	"os"
	"strings"
)

const (
	// HostAddress is where a virtual machine finds the loopback of its host, in QEMU's network for users.
	HostAddress = "10.0.2.2"

	controllerManager = "kube-controller-manager"
)

// JoinKubeconfig is the path of an administrator's kubeconfig for kubeadm, of a cluster with Options.Join. Its API server has the address
// that machines know: kubeadm gives it to them.
func (c *Cluster) JoinKubeconfig() string { return c.path("join.kubeconfig") }

// letJoin gives machines what kubeadm join needs besides the API server. A controller manager signs what a machine reads before it knows the
// cluster, and then its certificate. The address that machines know leads to the API server in the cluster's namespace, too.
func (c *Cluster) letJoin() error {
	if output, err := c.Command("ip", "address", "add", HostAddress+"/32", "dev", "lo").CombinedOutput(); err != nil {
		return fmt.Errorf("adding the address that machines know: %w: %s", err, output)
	}
	kubeconfig := strings.Replace(c.kubeconfig("admin"), apiServerAddress, HostAddress+":6443", 1)
	if err := os.WriteFile(c.JoinKubeconfig(), []byte(kubeconfig), 0o600); err != nil {
		return err
	}
	der, err := x509.MarshalECPrivateKey(c.authority.key)
	if err != nil {
		return err
	}
	if err := os.WriteFile(c.path("pki", "ca.key"), encode("EC PRIVATE KEY", der), 0o600); err != nil {
		return err
	}
	return c.start(controllerManager, c.part(controllerManager+"-"+c.apiServer),
		"--kubeconfig="+c.path("admin.kubeconfig"), "--bind-address=127.0.0.1", "--leader-elect=false",
		"--controllers=*,bootstrap-signer-controller,token-cleaner-controller",
		"--root-ca-file="+c.path("pki", "ca.crt"), "--service-account-private-key-file="+c.path("pki", "service-account.key"),
		"--cluster-signing-cert-file="+c.path("pki", "ca.crt"), "--cluster-signing-key-file="+c.path("pki", "ca.key"))
}
