//go:build linux

package supervisor

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig/commandline"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/metrics"
	configsync "github.com/kubelet-supervisor/kubelet-supervisor/sync"
)

// awaitChange waits until the file's bytes differ from content, ctx ends, or so much time is over; 0 is endless. It watches the
// folder, because files are replaced.
func awaitChange(ctx context.Context, path string, content []byte, atMost time.Duration) {
	if atMost > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, atMost)
		defer cancel()
	}
	var changes chan fsnotify.Event
	if watcher, err := fsnotify.NewWatcher(); err == nil {
		defer func() { _ = watcher.Close() }()
		if watcher.Add(filepath.Dir(path)) == nil {
			changes = watcher.Events
		}
	}
	ticker := time.NewTicker(kubeconfigRecheck)
	defer ticker.Stop()
	for {
		now, err := kubeletconfig.ReadFile(path)
		if err == nil && !bytes.Equal(now, content) {
			return
		}
		select {
		case <-changes:
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// connect makes a client of a kubeconfig, and finds the Node's name. nodeName is what a person said it is, or empty.
func connect(kubeconfig, nodeName string, arguments commandline.Arguments, counts *metrics.Metrics,
) (client *rest.RESTClient, name string, err error) {
	settings, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, "", fmt.Errorf("reading kubeconfig %s: %w", kubeconfig, err)
	}
	preferKubelets(settings, arguments, time.Now())
	if counts != nil {
		settings.Wrap(func(next http.RoundTripper) http.RoundTripper { return countedAnswers{next, counts} })
	}
	if client, err = configsync.NewClient(settings); err != nil {
		return nil, "", fmt.Errorf("using kubeconfig %s: %w", kubeconfig, err)
	}
	name, err = nodeNameOf(settings, nodeName, arguments)
	return client, name, err
}

// nodeNameOf returns the Node's name: of the flag, else the kubelet's, else the name in its certificate, else the host's. As the kubelet
// does, it makes a host name lower case (GetHostname of k8s.io/kubernetes/pkg/util/node).
func nodeNameOf(settings *rest.Config, flag string, arguments commandline.Arguments) (string, error) {
	override := strings.ToLower(strings.TrimSpace(arguments.HostnameOverride))
	if name := cmp.Or(flag, override, certificateName(settings)); name != "" {
		return name, nil
	}
	name, err := os.Hostname()
	if err != nil {
		return "", fmt.Errorf("the Node's name is not known, give it with --node-name: %w", err)
	}
	return strings.ToLower(name), nil
}

// certificateName reads NAME from a client certificate for system:node:NAME.
func certificateName(settings *rest.Config) string {
	var pair tls.Certificate
	var err error
	if settings.CertFile != "" {
		pair, err = tls.LoadX509KeyPair(settings.CertFile, settings.KeyFile)
	} else {
		pair, err = tls.X509KeyPair(settings.CertData, settings.KeyData)
	}
	if err != nil || len(pair.Certificate) == 0 {
		return ""
	}
	leaf, err := x509.ParseCertificate(pair.Certificate[0])
	if err != nil {
		return ""
	}
	name, _ := strings.CutPrefix(leaf.Subject.CommonName, "system:node:")
	if name == leaf.Subject.CommonName {
		return ""
	}
	return name
}

// The waits for another credential. That of a kubeconfig expires without a change of the file.
const (
	credentialRecheck    = time.Minute // where it has expired: one that the kubelet keeps may come, or the file that is named be renewed
	credentialRecheckMax = time.Hour   // the wall clock may be set in the meantime
)

// awaitOther waits until the kubeconfig's bytes differ from content, another certificate has to be used, or ctx ends.
func (a *apiSession) awaitOther(ctx context.Context, path string, content []byte) {
	used, atMost := a.credential(path)
	for ctx.Err() == nil {
		awaitChange(ctx, path, content, atMost)
		now, err := kubeletconfig.ReadFile(path)
		if err == nil && !bytes.Equal(now, content) {
			return
		}
		var other string
		if other, atMost = a.credential(path); other != used {
			return
		}
	}
}

// credential names the certificate that connect would use, and says for how long that certainly holds; 0 is endless.
func (a *apiSession) credential(path string) (used string, atMost time.Duration) {
	settings, err := readKubeconfig(path)
	if err != nil {
		return "", credentialRecheck
	}
	now := time.Now()
	own := clientCertificates(settings)
	switch {
	case len(own) == 0:
		return "", 0
	case !hasExpired(own, now):
		return "", min(expiryOf(own).Sub(now)+time.Second, credentialRecheckMax)
	}
	return preferKubelets(settings, a.arguments, now), credentialRecheck
}
