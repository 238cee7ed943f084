package controller

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	certutil "k8s.io/client-go/util/cert"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// put writes a certificate for a name, which verifies itself, and gives it.
func put(t *testing.T, folder, name string) *x509.CertPool {
	t.Helper()
	certificate, key, err := certutil.GenerateSelfSignedCertKeyWithFixtures(name, nil, nil, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.WriteFile(filepath.Join(folder, "tls.crt"), certificate, 0o600), os.WriteFile(filepath.Join(folder, "tls.key"), key, 0o600)); err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(certificate)
	return pool
}

// serve serves metrics to everybody, and gives the address.
func serve(t *testing.T, o *Options) string {
	t.Helper()
	o.MetricsAddress = "127.0.0.1:0"
	options := o.metricsServer()
	options.FilterProvider = nil
	server, err := metricsserver.NewServer(options, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Start(t.Context()) }()
	t.Cleanup(func() {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if address := server.(interface{ GetBindAddr() string }).GetBindAddr(); address != "" {
			return address
		}
	}
	t.Fatal("it does not listen")
	return ""
}

// scrape reads the metrics as one that verifies, and gives the protocol.
func scrape(t *testing.T, address string, of *tls.Config) (string, error) {
	t.Helper()
	to := &http.Client{Transport: &http.Transport{TLSClientConfig: of, DisableKeepAlives: true, ForceAttemptHTTP2: true}}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+address+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := to.Do(request)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err == nil && !strings.Contains(string(text), "go_goroutines") {
		t.Errorf("it reads %.100s", text)
	}
	return answer.Proto, err
}

// A scraper verifies a certificate that was given, over HTTP/1.1: nothing is said by HTTP/2.
func TestMetricsWithAGivenCertificate(t *testing.T) {
	folder := t.TempDir()
	pool := put(t, folder, "kubelet-supervisor-controller.kubelet-supervisor.svc")
	address := serve(t, &Options{MetricsCertDir: folder, Log: logr.Discard()})
	protocol, err := scrape(t, address, &tls.Config{RootCAs: pool, ServerName: "kubelet-supervisor-controller.kubelet-supervisor.svc"})
	if err != nil || protocol != "HTTP/1.1" {
		t.Errorf("%q, %v", protocol, err)
	}
	if _, err := scrape(t, address, &tls.Config{RootCAs: x509.NewCertPool(), ServerName: "x"}); err == nil {
		t.Error("anybody verifies it")
	}
}

// One that is asked for is made, and nobody can verify it.
func TestMetricsWithACertificateOfOnesOwn(t *testing.T) {
	address := serve(t, &Options{MetricsSelfSigned: true, Log: logr.Discard()})
	if protocol, err := scrape(t, address, &tls.Config{InsecureSkipVerify: true}); err != nil || protocol != "HTTP/1.1" {
		t.Errorf("%q, %v", protocol, err)
	}
	if _, err := scrape(t, address, nil); err == nil {
		t.Error("it is verified")
	}
}

// Without either nothing is served, and the log says how.
func TestMetricsWithoutACertificate(t *testing.T) {
	var said strings.Builder
	o := &Options{MetricsAddress: ":8443", Log: funcr.New(func(_, line string) { said.WriteString(line) }, funcr.Options{})}
	if at := o.metricsServer().BindAddress; at != "0" || !strings.Contains(said.String(), "--metrics-cert-dir") || !strings.Contains(said.String(), "--metrics-self-signed") {
		t.Errorf("at %s: %s", at, said.String())
	}
}

// A certificate may come later, and be renewed. One that cannot be read takes the place of none, and each of these is said once.
func TestACertificateThatComes(t *testing.T) {
	var said []string
	folder, now := t.TempDir(), time.Unix(0, 0)
	c := &certificate{folder: folder, now: func() time.Time { return now }, log: funcr.New(func(_, line string) { said = append(said, line) }, funcr.Options{})}
	serial := func() string {
		now = now.Add(certificateAge)
		pair, err := c.get(nil)
		if err != nil {
			return err.Error()
		}
		if again, err := c.get(nil); err != nil || again != pair {
			t.Error("the files are read for each connection")
		}
		return pair.Leaf.SerialNumber.String()
	}
	for range 2 {
		if got := serial(); !strings.Contains(got, "there is no certificate yet") {
			t.Error(got)
		}
	}
	put(t, folder, "a")
	first := serial()
	put(t, folder, "a")
	second := serial()
	if err := os.Remove(filepath.Join(folder, "tls.key")); err != nil {
		t.Fatal(err)
	}
	if kept := serial(); first == second || kept != second {
		t.Errorf("it had %s, %s, and then %s", first, second, kept)
	}
	serial()
	if len(said) != 4 || !strings.Contains(said[0], "until this folder has") || !strings.Contains(said[3], "the one before is kept") {
		t.Error(strings.Join(said, "\n"))
	}
}
