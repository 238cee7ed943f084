//go:build linux

package supervisor

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kubelet-supervisor/kubelet-supervisor/store"
	"github.com/kubelet-supervisor/kubelet-supervisor/test/fakenode"
)

// authority makes a certificate authority, and another certificate of the same key.
func authority(t *testing.T) (certificate, renewed []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	made := make([][]byte, 2)
	for i := range made {
		template := &x509.Certificate{SerialNumber: big.NewInt(int64(i + 1)), Subject: pkix.Name{CommonName: "kubernetes"}, NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
		der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
		if err != nil {
			t.Fatal(err)
		}
		made[i] = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	}
	return made[0], made[1]
}

func kubeconfigWith(cluster string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1", %s}}, {name: other, cluster: {server: "https://127.0.0.1:2"}}]
contexts: [{name: node, context: {cluster: c, user: u}}, {name: empty, context: {cluster: gone, user: u}}]
users: [{name: u, user: {token: t}}]
current-context: node
`, cluster)
}

func embedded(certificates ...[]byte) string {
	return "certificate-authority-data: " + base64.StdEncoding.EncodeToString(bytes.Join(certificates, nil))
}

func TestKeysOfACluster(t *testing.T) {
	folder := t.TempDir()
	first, renewed := authority(t)
	second, _ := authority(t)
	written(t, folder, "pki/ca.crt", string(first))
	key := keysOf([]byte(kubeconfigWith(embedded(first))), folder)
	if len(key) != 1 {
		t.Fatalf("one authority has the keys %q", key)
	}
	for name, test := range map[string]struct {
		kubeconfig string
		want       int  // keys
		has        bool // that of the first
	}{
		"renewed by the same key":       {kubeconfigWith(embedded(renewed)), 1, true},
		"two of the same key":           {kubeconfigWith(embedded(first, renewed)), 1, true},
		"two authorities":               {kubeconfigWith(embedded(second, first)), 2, true},
		"another":                       {kubeconfigWith(embedded(second)), 1, false},
		"in a file":                     {kubeconfigWith("certificate-authority: " + folder + "/pki/ca.crt"), 1, true},
		"in a file near it":             {kubeconfigWith("certificate-authority: pki/ca.crt"), 1, true},
		"in a file that is gone":        {kubeconfigWith("certificate-authority: pki/gone.crt"), 0, false},
		"none":                          {kubeconfigWith("insecure-skip-tls-verify: true"), 0, false},
		"no certificate":                {kubeconfigWith(embedded([]byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"))), 0, false},
		"no kubeconfig":                 {"\x00", 0, false},
		"a context without its cluster": {strings.ReplaceAll(kubeconfigWith(embedded(first)), "current-context: node", "current-context: empty"), 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			keys := keysOf([]byte(test.kubeconfig), folder)
			if len(keys) != test.want || slices.Contains(keys, key[0]) != test.has {
				t.Errorf("has the keys %q", keys)
			}
		})
	}
}

// A state folder that comes with an image, or survives `kubeadm reset`, configures no kubelet of another cluster.
func TestAStateFolderOfAnotherCluster(t *testing.T) {
	t.Parallel()
	first, _ := authority(t)
	second, _ := authority(t)
	n := newNode(t)
	n.seed(store.Assigned, "a", fakenode.Configuration("mode: ok"))
	live := func(argument string, runsAssigned bool) {
		t.Helper()
		n.options.Arguments = append(slices.Clone(n.options.Arguments), argument)
		r := n.run()
		record := r.awaitHealthy()
		if (record.Runs != nil) != runsAssigned {
			t.Errorf("with %s: recorded %+v", argument, record)
		}
		r.stop()
		<-r.over
		if told := strings.Count(r.log.String(), "this node's kubeconfig is of another cluster than "); told == 1 == runsAssigned || told > 1 {
			t.Errorf("with %s the log tells %d times of another cluster", argument, told)
		}
	}
	live("--kubeconfig="+written(t, t.TempDir(), "kubelet.conf", kubeconfigWith(embedded(first))), true)
	live("--kubeconfig="+written(t, t.TempDir(), "kubelet.conf", kubeconfigWith(embedded(second, first))), true)
	live("--kubeconfig="+written(t, t.TempDir(), "kubelet.conf", kubeconfigWith(embedded(second))), true)
	live("--kubeconfig="+written(t, t.TempDir(), "kubelet.conf", kubeconfigWith(embedded(first))), false)
	n.seed(store.Assigned, "a", fakenode.Configuration("mode: ok"))
	bootstrap := written(t, t.TempDir(), "bootstrap.conf", kubeconfigWith(embedded(second)))
	live("--kubeconfig="+t.TempDir()+"/not-yet", true)
	live("--bootstrap-kubeconfig="+bootstrap, false)
}
