package controller

import (
	"crypto/tls"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/go-logr/logr"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// certificateAge is how old a certificate that was read may be before its files are read again.
const certificateAge = 10 * time.Second

// metricsServer are the options of the metrics server. Without a certificate, given or self-signed, there is none.
func (o *Options) metricsServer() metricsserver.Options {
	options := metricsserver.Options{BindAddress: o.MetricsAddress, SecureServing: true, FilterProvider: authorized,
		TLSOpts: []func(*tls.Config){func(c *tls.Config) { c.NextProtos, c.MinVersion = []string{"http/1.1"}, tls.VersionTLS12 }}}
	switch {
	case o.MetricsAddress == "0" || o.MetricsSelfSigned:
	case o.MetricsCertDir == "":
		options.BindAddress = "0"
		o.Log.Info("no metrics are served: give a certificate with --metrics-cert-dir, or ask for one that no scraper can verify with --metrics-self-signed")
	default:
		of := &certificate{folder: o.MetricsCertDir, now: time.Now, log: o.Log.WithName("metrics")}
		_, _ = of.get(nil) // logs what is missing at the start
		options.TLSOpts = append(options.TLSOpts, func(c *tls.Config) { c.GetCertificate = of.get })
	}
	return options
}

// certificate is the certificate in a folder, where a Secret of type kubernetes.io/tls is mounted. It may come and be renewed at any time. The
// certificates of controller-runtime are not used, because it makes its own if there is none at the start.
type certificate struct {
	folder string
	now    func() time.Time
	log    logr.Logger

	mu   sync.Mutex
	read time.Time
	pair *tls.Certificate // the newest that could be read
	err  error
	said string
}

var errNoCertificate = errors.New("there is no certificate yet")

func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := c.now(); c.read.IsZero() || now.Sub(c.read) >= certificateAge || now.Before(c.read) {
		c.read = now
		c.load()
	}
	if c.pair == nil {
		return nil, fmt.Errorf("%w: %w", errNoCertificate, c.err)
	}
	return c.pair, nil
}

// load reads the files, and logs the result if it is not the same as before.
func (c *certificate) load() {
	pair, err := tls.LoadX509KeyPair(filepath.Join(c.folder, "tls.crt"), filepath.Join(c.folder, "tls.key"))
	if c.err = err; err == nil {
		c.pair = &pair
	}
	said := "read"
	switch {
	case err != nil:
		said = err.Error()
	case pair.Leaf != nil:
		said = pair.Leaf.SerialNumber.String()
	}
	if said == c.said {
		return
	}
	c.said = said
	switch {
	case err == nil:
		c.log.Info("the metrics are served with this certificate", "folder", c.folder, "names", pair.Leaf.DNSNames, "notAfter", pair.Leaf.NotAfter)
	case c.pair != nil:
		c.log.Info("the new certificate of the metrics cannot be read, so the one before is kept", "folder", c.folder, "error", err.Error())
	default:
		c.log.Info("no metrics are served until this folder has a certificate, tls.crt and tls.key (--metrics-cert-dir)", "folder", c.folder, "error", err.Error())
	}
}
