//go:build e2e

package fleet

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	certutil "k8s.io/client-go/util/cert"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
)

const metricsURL = "https://127.0.0.1:8443/metrics"

// The metrics are for whom the API server lets get them, by HTTPS alone; and after a rollout and a stop they tell of both.
// It is not parallel: its own controller has to lead.
func TestMetrics(t *testing.T) {
	f := shared(t)
	folder, verify := certified(t)
	f.own(t, "metrics", "--metrics-address=127.0.0.1:8443", "--metrics-cert-dir="+folder)
	good := newCrew(t, "metrics-good", 12, nil)
	good.roll(quick)
	bad := newCrew(t, "metrics-bad", 12, nil)
	bad.nature = always(nodev1.ReasonRefused)
	bad.roll(quick)
	good.awaitReason(v1alpha1.ConditionReady, "Completed", time.Minute)
	bad.stopped(nodev1.ReasonRefused)
	text := f.readMetrics(t, verify)
	has := samples(text)
	for sample, want := range map[string]float64{
		`kubelet_supervisor_pool_nodes{class="proven",pool="metrics-good"}`:            12,
		`kubelet_supervisor_pool_nodes{class="failed",pool="metrics-good"}`:            0,
		`kubelet_supervisor_pool_nodes{class="failed",pool="metrics-bad"}`:             1,
		`kubelet_supervisor_pool_nodes{class="old",pool="metrics-bad"}`:                11,
		`kubelet_supervisor_pool_wave{pool="metrics-good"}`:                            0,
		`kubelet_supervisor_pool_wave{pool="metrics-bad"}`:                             1,
		`kubelet_supervisor_pool_stopped{pool="metrics-good"}`:                         0,
		`kubelet_supervisor_pool_stopped{pool="metrics-bad"}`:                          1,
		`kubelet_supervisor_pool_held{pool="metrics-bad"}`:                             0,
		`kubelet_supervisor_pool_verdict_to_last_assignment_seconds_count`:             1,
		`kubelet_supervisor_pool_verdict_to_last_assignment_seconds_bucket{le="1.28"}`: 1,
		`kubelet_supervisor_pool_patches_total{code="200"}`:                            float64(len(good.assigned()) + len(bad.assigned())),
	} {
		if got, is := has[sample]; !is || got != want {
			t.Errorf("%s is %v (%v), not %v", sample, got, is, want)
		}
	}
	if has["kubelet_supervisor_pool_decide_seconds_count"] < 10 || has["kubelet_supervisor_pool_decide_seconds_sum"] <= 0 {
		t.Errorf("%v decisions took %v s", has["kubelet_supervisor_pool_decide_seconds_count"], has["kubelet_supervisor_pool_decide_seconds_sum"])
	}
	if t.Failed() {
		t.Log(strings.Join(slices.Sorted(maps.Keys(has)), "\n"))
	}
}

// certified is a folder with a certificate, as a Secret is mounted, and how a scraper verifies it.
func certified(t *testing.T) (string, *tls.Config) {
	t.Helper()
	certificate, key, err := certutil.GenerateSelfSignedCertKeyWithFixtures("127.0.0.1", nil, nil, "")
	if err != nil {
		t.Fatal(err)
	}
	folder, pool := t.TempDir(), x509.NewCertPool()
	if err := errors.Join(os.WriteFile(filepath.Join(folder, "tls.crt"), certificate, 0o600), os.WriteFile(filepath.Join(folder, "tls.key"), key, 0o600)); err != nil {
		t.Fatal(err)
	}
	pool.AppendCertsFromPEM(certificate)
	return folder, &tls.Config{RootCAs: pool, ServerName: "127.0.0.1"}
}

// readMetrics gives what one who may reads, and sees to it that nobody else reads anything.
func (f *fleet) readMetrics(t *testing.T, verify *tls.Config) string {
	t.Helper()
	for _, words := range [][]string{{"create", "serviceaccount", "reader", "-n", "default"}, {"create", "serviceaccount", "stranger", "-n", "default"},
		{"create", "clusterrolebinding", "reader", "--clusterrole=kubelet-supervisor-metrics-reader", "--serviceaccount=default:reader"}} {
		if _, err := f.Kubectl(t.Context(), words...); err != nil {
			t.Fatal(err)
		}
	}
	token := func(account string) string {
		text, err := f.Kubectl(t.Context(), "create", "token", account, "-n", "default")
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(text)
	}
	to := &http.Client{Transport: &http.Transport{DialContext: f.Dial, DisableKeepAlives: true, TLSClientConfig: verify}}
	var metrics string
	for _, c := range []struct {
		who, token string
		want       int
	}{{"nobody", "", http.StatusUnauthorized}, {"a forger", "abc", http.StatusUnauthorized}, {"a stranger", token("stranger"), http.StatusForbidden},
		{"a reader", token("reader"), http.StatusOK}} {
		code, body, err := f.get(t.Context(), to, metricsURL, c.token)
		if err != nil || code != c.want {
			t.Fatalf("%s gets %d, %v, not %d", c.who, code, err, c.want)
		}
		if strings.Contains(body, "kubelet_supervisor_pool") != (c.want == http.StatusOK) {
			t.Errorf("%s reads %.200q", c.who, body)
		}
		metrics = body
	}
	if code, _, _ := f.get(t.Context(), to, strings.Replace(metricsURL, "https", "http", 1), token("reader")); code == http.StatusOK {
		t.Error("they are given away without TLS")
	}
	return metrics
}

// samples are the values by name and labels.
func samples(text string) map[string]float64 {
	all := map[string]float64{}
	for line := range strings.Lines(text) {
		if i := strings.LastIndexByte(line, ' '); i > 0 && strings.HasPrefix(line, "kubelet_supervisor_pool_") {
			all[line[:i]], _ = strconv.ParseFloat(strings.TrimSpace(line[i:]), 64)
		}
	}
	return all
}
