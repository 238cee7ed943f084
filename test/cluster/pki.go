//go:build linux

package cluster

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// An authority is the cluster's certificate authority; every key is P-256.
type authority struct {
	certificate    *x509.Certificate
	certificatePEM []byte
	key            *ecdsa.PrivateKey
}

// A pair is a certificate and its key, in PEM.
type pair struct{ certificate, key []byte }

func newAuthority() (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test-ca"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(1, 0, 0),
		IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	return &authority{certificate: certificate, certificatePEM: encode("CERTIFICATE", der), key: key}, nil
}

// client issues a client certificate: the common name is the user, the organizations are the groups.
func (a *authority) client(commonName string, organizations ...string) (pair, error) {
	return a.issue(&x509.Certificate{
		Subject:     pkix.Name{CommonName: commonName, Organization: organizations},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
}

// server issues a serving certificate for names and addresses.
func (a *authority) server(commonName string, names []string, addresses ...string) (pair, error) {
	template := &x509.Certificate{
		Subject:     pkix.Name{CommonName: commonName},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames:    names,
	}
	for _, address := range addresses {
		template.IPAddresses = append(template.IPAddresses, net.ParseIP(address))
	}
	return a.issue(template)
}

func (a *authority) issue(template *x509.Certificate) (pair, error) {
	key, keyPEM, err := newKey()
	if err != nil {
		return pair{}, err
	}
	certificate, err := a.sign(template, key.Public())
	return pair{certificate: certificate, key: keyPEM}, err
}

func (a *authority) sign(template *x509.Certificate, key crypto.PublicKey) ([]byte, error) {
	var err error
	if template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120)); err != nil {
		return nil, err
	}
	template.NotBefore = a.certificate.NotBefore
	if template.NotAfter.IsZero() {
		template.NotAfter = a.certificate.NotAfter
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key, a.key)
	if err != nil {
		return nil, fmt.Errorf("issuing a certificate for %s: %w", template.Subject, err)
	}
	return encode("CERTIFICATE", der), nil
}

// SignClientRequest does what a controller manager would for a kubelet that bootstraps: it answers the PEM of a certificate
// signing request with that of a client certificate.
func (c *Cluster) SignClientRequest(request []byte) ([]byte, error) {
	block, _ := pem.Decode(request)
	if block == nil {
		return nil, errors.New("signing a certificate request: it is not in PEM")
	}
	asked, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("signing a certificate request: %w", err)
	}
	return c.authority.sign(&x509.Certificate{Subject: asked.Subject, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}, asked.PublicKey)
}

func newKey() (*ecdsa.PrivateKey, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, nil, err
	}
	return key, encode("EC PRIVATE KEY", der), nil
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// write writes FOLDER/NAME.crt and NAME.key.
func (p pair) write(folder, name string) error {
	if err := os.WriteFile(filepath.Join(folder, name+".crt"), p.certificate, 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, name+".key"), p.key, 0o600)
}

// writePKI makes the authority and writes what the parts read into the folder pki.
func (c *Cluster) writePKI() error {
	folder := c.path("pki")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	var err error
	if c.authority, err = newAuthority(); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(folder, "ca.crt"), c.authority.certificatePEM, 0o644); err != nil {
		return err
	}
	_, serviceAccountKey, err := newKey()
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(folder, "service-account.key"), serviceAccountKey, 0o600); err != nil {
		return err
	}
	a := c.authority
	for name, issue := range map[string]func() (pair, error){
		"apiserver": func() (pair, error) {
			return a.server("kube-apiserver", []string{"localhost", "kubernetes", "kubernetes.default.svc"}, "127.0.0.1", "10.0.0.1", HostAddress)
		},
		"kubelet-serving": func() (pair, error) {
			return a.server("system:node:"+NodeName, []string{NodeName}, "127.0.0.1", NodeAddress)
		},
		"apiserver-kubelet-client": func() (pair, error) { return a.client("kube-apiserver-kubelet-client", "system:masters") },
		"admin":                    func() (pair, error) { return a.client("admin", "system:masters") },
		"node":                     func() (pair, error) { return a.client("system:node:"+NodeName, "system:nodes") },
	} {
		issued, err := issue()
		if err != nil {
			return err
		}
		if err := issued.write(folder, name); err != nil {
			return err
		}
	}
	return nil
}
