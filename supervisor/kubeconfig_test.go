//go:build linux

package supervisor

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig/commandline"
	"github.com/kubelet-supervisor/kubelet-supervisor/test/fakenode"
)

func TestAwaitChange(t *testing.T) {
	for name, test := range map[string]struct {
		before string // "" = absent
		change func(path string) error
	}{
		"it appears":         {"", func(path string) error { return os.WriteFile(path, []byte("new"), 0o600) }},
		"it is written over": {"old", func(path string) error { return os.WriteFile(path, []byte("new"), 0o600) }},
		"it is replaced": {"old", func(path string) error {
			return errors.Join(os.WriteFile(path+".new", []byte("new"), 0o600), os.Rename(path+".new", path))
		}},
		"it goes and comes again": {"old", func(path string) error {
			return errors.Join(os.Remove(path), os.WriteFile(path, []byte("new"), 0o600))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "kubelet.conf")
			if test.before != "" {
				written(t, filepath.Dir(path), filepath.Base(path), test.before)
			}
			over := make(chan struct{})
			go func() {
				defer close(over)
				awaitChange(t.Context(), path, []byte(test.before), 0)
			}()
			if err := test.change(path); err != nil {
				t.Fatal(err)
			}
			select {
			case <-over:
			case <-time.After(fakenode.Patience):
				t.Fatal("it was not seen")
			}
		})
	}
}

func TestAwaitChangeEndsWithItsContext(t *testing.T) {
	path := written(t, t.TempDir(), "kubelet.conf", "same")
	ctx, stop := context.WithCancel(t.Context())
	over := make(chan struct{})
	go func() {
		defer close(over)
		awaitChange(ctx, path, []byte("same"), 0)
	}()
	stop()
	<-over
}

func TestAwaitChangeForSomeTime(t *testing.T) {
	awaitChange(t.Context(), written(t, t.TempDir(), "kubelet.conf", "same"), []byte("same"), time.Millisecond)
}

// clientCertificate makes a certificate for the common name, and its key, both PEM.
func clientCertificate(t testing.TB, commonName string) (certificate, key []byte) {
	t.Helper()
	return certificateUntil(t, commonName, time.Now().Add(time.Hour))
}

func certificateUntil(t testing.TB, commonName string, notAfter time.Time) (certificate, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: commonName}, NotAfter: notAfter}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	der2, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der2})
}

func TestNodeName(t *testing.T) {
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	inline := func(commonName string) *rest.Config {
		certificate, key := clientCertificate(t, commonName)
		return &rest.Config{TLSClientConfig: rest.TLSClientConfig{CertData: certificate, KeyData: key}}
	}
	folder := t.TempDir()
	certificate, key := clientCertificate(t, "system:node:in-file")
	// As the kubelet keeps them: both in one file.
	together := written(t, folder, "kubelet-client-current.pem", string(certificate)+string(key))
	files := &rest.Config{TLSClientConfig: rest.TLSClientConfig{CertFile: together, KeyFile: together}}
	absent := &rest.Config{TLSClientConfig: rest.TLSClientConfig{CertFile: filepath.Join(folder, "absent"), KeyFile: together}}
	broken := &rest.Config{TLSClientConfig: rest.TLSClientConfig{CertData: []byte("no PEM"), KeyData: key}}
	for name, test := range map[string]struct {
		flag, override string
		settings       *rest.Config
		want           string
	}{
		"the flag before all":                 {"by-flag", "by-override", inline("system:node:n1"), "by-flag"},
		"the kubelet's flag":                  {"", "by-override", inline("system:node:n1"), "by-override"},
		"the kubelet makes it lower case":     {"", " Node1.Example ", inline("system:node:n1"), "node1.example"},
		"the certificate":                     {"", "", inline("system:node:n1"), "n1"},
		"a certificate in a file":             {"", "", files, "in-file"},
		"a certificate of no node":            {"", "", inline("admin"), strings.ToLower(host)},
		"a certificate that is not there yet": {"", "", absent, strings.ToLower(host)},
		"a certificate that is broken":        {"", "", broken, strings.ToLower(host)},
		"no certificate":                      {"", "", &rest.Config{}, strings.ToLower(host)},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := nodeNameOf(test.settings, test.flag, commandline.Arguments{HostnameOverride: test.override})
			if err != nil || got != test.want {
				t.Errorf("got %q, %v, want %q", got, err, test.want)
			}
		})
	}
}
