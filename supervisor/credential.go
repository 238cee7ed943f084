//go:build linux

package supervisor

import (
	"cmp"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig/commandline"
)

const (
	defaultCertDir = "/var/lib/kubelet/pki" // of the kubelet's --cert-dir
	// currentCertificate is where a kubelet keeps the client certificate that it renews, with its key.
	currentCertificate = "kubelet-client-current.pem"
)

// A kubelet that renews its client certificate keeps the newest in a folder of its own, and prefers it to what its kubeconfig says. So a
// certificate in the kubeconfig can expire under a kubelet that is well.

// kubeletsCertificate is the path of the certificate that the kubelet keeps.
func kubeletsCertificate(a commandline.Arguments) string {
	return filepath.Join(cmp.Or(a.CertDir, defaultCertDir), currentCertificate)
}

// errNotAFile is the error for a pipe, for example, whose reader may wait for ever. What a kubelet would read from it cannot be known.
var errNotAFile = errors.New("it is not a regular file")

// readKubeconfig returns what a kubeconfig says, as the kubelet reads it: an error is one that the kubelet would have too, except
// errNotAFile.
func readKubeconfig(path string) (*rest.Config, error) {
	if !mayRead(path) {
		return nil, errNotAFile
	}
	settings, err := clientcmd.LoadFromFile(path)
	if err == nil {
		err = clientcmd.ResolveLocalPaths(settings)
	}
	if err != nil {
		return nil, err
	}
	if !mayReadAll(settings) {
		return nil, errNotAFile
	}
	return clientcmd.NewDefaultClientConfig(*settings, &clientcmd.ConfigOverrides{}).ClientConfig()
}

// mayReadAll tells it of the files that a kubeconfig names.
func mayReadAll(settings *api.Config) bool {
	var files []string
	for _, c := range settings.Clusters {
		files = append(files, c.CertificateAuthority)
	}
	for _, u := range settings.AuthInfos {
		files = append(files, u.ClientCertificate, u.ClientKey, u.TokenFile)
	}
	return !slices.ContainsFunc(files, func(path string) bool { return !mayRead(path) })
}

// mayRead returns an error where a read of the file may take for ever. It returns none for a file that is not there.
func mayRead(path string) bool {
	info, err := os.Stat(path)
	return err != nil || info.Mode().IsRegular()
}

// clientCertificates are those of the settings, its own first; none where they have none, or it cannot be read.
func clientCertificates(settings *rest.Config) []*x509.Certificate {
	data := settings.CertData
	if len(data) == 0 && settings.CertFile != "" {
		data, _ = kubeletconfig.ReadFile(settings.CertFile)
	}
	return parseCertificates(data)
}

func parseCertificates(data []byte) (list []*x509.Certificate) {
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" { // the key, perhaps
			continue
		}
		if certificate, err := x509.ParseCertificate(block.Bytes); err == nil {
			list = append(list, certificate)
		}
	}
	return list
}

// expiryOf is when the first of the certificates expires, as the kubelet judges it; zero where there is none.
func expiryOf(certificates []*x509.Certificate) (soonest time.Time) {
	for _, c := range certificates {
		if soonest.IsZero() || c.NotAfter.Before(soonest) {
			soonest = c.NotAfter
		}
	}
	return soonest
}

func hasExpired(certificates []*x509.Certificate, now time.Time) bool {
	return len(certificates) > 0 && now.After(expiryOf(certificates))
}

// preferKubelets has the settings use the certificate that the kubelet keeps, where their own has expired, and the kubelet's is for the
// same name and has not. It returns the path of the file that is used, "" where the settings keep their own.
func preferKubelets(settings *rest.Config, a commandline.Arguments, now time.Time) string {
	own := clientCertificates(settings)
	path := kubeletsCertificate(a)
	if !hasExpired(own, now) || settings.CertFile == path {
		return ""
	}
	data, err := kubeletconfig.ReadFile(path)
	kept := parseCertificates(data)
	if err != nil || len(kept) == 0 || hasExpired(kept, now) || kept[0].Subject.CommonName != own[0].Subject.CommonName {
		return ""
	}
	settings.CertFile, settings.KeyFile, settings.CertData, settings.KeyData = path, path, nil, nil
	return path
}

// credentialObstacle returns why a kubelet that starts now would have no credential for its API server; empty where it would, or where that
// cannot be known.
func credentialObstacle(a commandline.Arguments, rotates bool, now time.Time) string {
	if a.Kubeconfig == "" {
		return ""
	}
	settings, problem := kubeconfigProblem(a.Kubeconfig, now)
	switch {
	case a.BootstrapKubeconfig != "" && problem == "" && settings != nil && len(clientCertificates(settings)) == 0:
		problem = fmt.Sprintf("kubeconfig %s has no client certificate", a.Kubeconfig) // and whatever it has, the kubelet asks for one
	case problem == "":
		return ""
	}
	if a.BootstrapKubeconfig != "" {
		if _, also := kubeconfigProblem(a.BootstrapKubeconfig, now); also != "" {
			return problem + ", and there is no way to another: bootstrap " + also
		}
		return ""
	}
	if rotates && settings != nil && preferKubelets(settings, a, now) != "" {
		return ""
	}
	return problem
}

// kubeconfigProblem returns what keeps a kubelet from using a kubeconfig. Whether a bootstrap token has expired cannot be known here.
func kubeconfigProblem(path string, now time.Time) (settings *rest.Config, problem string) {
	settings, err := readKubeconfig(path)
	switch {
	case errors.Is(err, errNotAFile):
		return nil, ""
	case errors.Is(err, os.ErrNotExist) && !exists(path):
		return nil, fmt.Sprintf("kubeconfig %s does not exist", path)
	case err != nil:
		return nil, fmt.Sprintf("kubeconfig %s cannot be used: %v", path, err)
	}
	certificates := clientCertificates(settings)
	switch file := settings.BearerTokenFile; {
	case hasExpired(certificates, now):
		return settings, fmt.Sprintf("kubeconfig %s has a client certificate that expired on %s", path,
			expiryOf(certificates).UTC().Format(time.RFC3339))
	case file != "" && strings.TrimSpace(settings.BearerToken) == "": // of the file: it was read with the kubeconfig
		return settings, fmt.Sprintf("kubeconfig %s names token file %s, which is empty", path, file)
	}
	return settings, ""
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
