//go:build linux

package cluster

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"fmt"
	"os"
	"time"
)

// NodeCredential is a new client certificate of the node, which expires then: in a kubeconfig that embeds it, and in one file with its key, as a
// kubelet keeps one.
func (c *Cluster) NodeCredential(expires time.Time) (kubeconfig, together string, err error) {
	authorityPEM, err := os.ReadFile(c.path("pki/ca.crt"))
	if err != nil {
		return "", "", err
	}
	issued, err := c.authority.issue(&x509.Certificate{
		Subject:     pkix.Name{CommonName: "system:node:" + NodeName, Organization: []string{"system:nodes"}},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		NotAfter:    expires,
	})
	if err != nil {
		return "", "", err
	}
	text := base64.StdEncoding.EncodeToString
	kubeconfig = fmt.Sprintf(`apiVersion: v1
kind: Config
clusters:
- name: cluster
  cluster: {server: "https://%s", certificate-authority-data: %s}
users:
- name: user
  user: {client-certificate-data: %s, client-key-data: %s}
contexts:
- name: context
  context: {cluster: cluster, user: user}
current-context: context
`, apiServerAddress, text(authorityPEM), text(issued.certificate), text(issued.key))
	return kubeconfig, string(issued.certificate) + string(issued.key), nil
}
