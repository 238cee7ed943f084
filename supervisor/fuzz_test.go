//go:build linux

package supervisor

import (
	"testing"

	"k8s.io/client-go/rest"
)

func FuzzCertificateName(f *testing.F) {
	certificate, key := clientCertificate(f, "system:node:n1")
	f.Add(certificate, key)
	f.Add(certificate[:100], key)
	f.Add([]byte(nil), []byte(nil))
	f.Fuzz(func(_ *testing.T, certificate, key []byte) {
		certificateName(&rest.Config{TLSClientConfig: rest.TLSClientConfig{CertData: certificate, KeyData: key}})
	})
}
