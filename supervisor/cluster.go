//go:build linux

package supervisor

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"path/filepath"
	"slices"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/core"
)

// clusterRecheck is how often the keys of the cluster's certificate authorities are looked at: a rotation adds the new one long before
// it removes the old one, and both have to be seen together once.
const clusterRecheck = time.Minute

// clusterKeys returns the digests of the keys (SPKI) of the certificate authorities by which the kubelet knows its cluster, from its
// kubeconfig, else its bootstrap kubeconfig. None are known where there is neither, or it names no authority.
func (in *inputs) clusterKeys() []string {
	for _, path := range []string{in.kubeconfig(), in.arguments.BootstrapKubeconfig} {
		if path == "" {
			continue
		}
		if content, err := kubeletconfig.ReadFile(path); err == nil {
			return keysOf(content, filepath.Dir(path))
		}
	}
	return nil
}

// keysOf reads the authorities of a kubeconfig's current cluster. A relative path in it counts from folder.
func keysOf(kubeconfig []byte, folder string) []string {
	settings, err := clientcmd.Load(kubeconfig)
	if err != nil {
		return nil
	}
	current := settings.Contexts[settings.CurrentContext]
	if current == nil {
		return nil
	}
	cluster := settings.Clusters[current.Cluster]
	if cluster == nil {
		return nil
	}
	authorities := cluster.CertificateAuthorityData
	if file := cluster.CertificateAuthority; len(authorities) == 0 && file != "" {
		if !filepath.IsAbs(file) {
			file = filepath.Join(folder, file)
		}
		authorities, _ = kubeletconfig.ReadFile(file)
	}
	return digestsOf(authorities)
}

// digestsOf lists the keys of PEM certificates; what is no certificate is passed over.
func digestsOf(certificates []byte) []string {
	var digests []string
	for block, rest := pem.Decode(certificates); block != nil; block, rest = pem.Decode(rest) {
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			continue
		}
		sum := sha256.Sum256(certificate.RawSubjectPublicKeyInfo)
		digests = append(digests, "sha256:"+hex.EncodeToString(sum[:]))
	}
	slices.Sort(digests)
	return slices.Compact(digests)
}

// watchCluster tells the loop of the keys, and again when they are other ones, until ctx ends.
func (w *watches) watchCluster(ctx context.Context) {
	var seen []string
	ticker := time.NewTicker(clusterRecheck)
	defer ticker.Stop()
	for {
		if keys := w.clusterKeys(); len(keys) > 0 && !slices.Equal(keys, seen) {
			seen = keys
			w.send(ctx, core.ClusterSeen{Keys: keys})
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}
