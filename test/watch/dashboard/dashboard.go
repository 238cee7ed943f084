//go:build linux

// Package dashboard looks at the mixin as an operator would: a real Prometheus with its rules reads the programs of a cluster, is asked every
// query of the dashboard, and gnuplot draws the answers. Debian's node_exporter tells what supervisors write into files. What kube-state-metrics
// would tell, states.go writes from the Nodes. Nothing of it is Grafana.
//
// It promises that a query that is refused, or a rule that cannot be evaluated, is an error, and that Stop leaves nothing running.
package dashboard

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/cluster"
)

const (
	patience   = 5 * time.Minute // far more than it takes to read everybody
	stopWithin = 30 * time.Second
	address    = "127.0.0.1:9090"     // Prometheus'
	exporters  = 9100                 // the port of the first node_exporter
	ksm        = "kube-state-metrics" // an instance, too
	reader     = "reader"             // whom the controllers let read
)

type object = map[string]any

// Options are those of New.
type Options struct {
	Programs string        // the folder that test/parts/prometheus.sh node-exporter names
	Mixin    string        // folder with alerts.yaml, rules.yaml and dashboards/
	Every    time.Duration // how often everybody is read, and each rule evaluated
	Lasts    time.Duration // how long it may be needed, at most
}

// A Dashboard is a Prometheus and what it reads, on a cluster, in its network namespace.
type Dashboard struct {
	Options
	cluster    *cluster.Cluster
	programs   []*cluster.Program
	textfiles  []object // what is read, as Prometheus is told it: node_exporters
	nodes      []object // supervisors
	pools      []object // controllers
	listing    sync.WaitGroup
	endListing context.CancelFunc
}

// New makes one that reads nobody yet. The caller calls Stop.
func New(c *cluster.Cluster, o Options) *Dashboard {
	return &Dashboard{Options: o, cluster: c, endListing: func() {}}
}

// Stop returns when all have ended. How they end is not what is looked at here.
func (d *Dashboard) Stop() {
	d.endListing()
	d.listing.Wait()
	for _, p := range d.programs {
		_ = p.Stop(stopWithin)
	}
}

func (d *Dashboard) path(words ...string) string {
	return filepath.Join(append([]string{d.cluster.Folder}, words...)...)
}

func (d *Dashboard) launch(name string, words ...string) error {
	p, err := d.cluster.Launch(d.path("log", name+".log"), words...)
	if err == nil {
		d.programs = append(d.programs, p)
	}
	return err
}

// Textfiles has a node_exporter tell what is in the files of a folder.
func (d *Dashboard) Textfiles(instance, folder string) error {
	at := fmt.Sprintf("127.0.0.1:%d", exporters+len(d.textfiles))
	d.textfiles = append(d.textfiles, target(instance, at))
	return d.launch("exporter-"+instance, filepath.Join(d.Programs, "prometheus-node-exporter"), "--collector.disable-defaults", "--collector.textfile",
		"--collector.textfile.directory="+folder, "--web.listen-address="+at)
}

// Supervisor has the metrics of one read that serves them on loopback.
func (d *Dashboard) Supervisor(instance, at string) {
	d.nodes = append(d.nodes, target(instance, at))
}

// Controller has the metrics of one read. One that is started again is read again, where it has the same address.
func (d *Dashboard) Controller(at string) { d.pools = append(d.pools, target(at, at)) }

func target(instance, at string) object {
	return object{"targets": []string{at}, "labels": object{"instance": instance}}
}

// States has what kube-state-metrics would tell of the Nodes told until Stop.
func (d *Dashboard) States(list func(context.Context) ([]corev1.Node, error)) error {
	if err := os.Mkdir(d.path(ksm), 0o700); err != nil {
		return err
	}
	var ctx context.Context
	ctx, d.endListing = context.WithCancel(context.Background())
	d.listing.Go(func() { tellStates(ctx, d.Every, d.path(ksm), list) })
	return d.Textfiles(ksm, d.path(ksm))
}

// Start starts Prometheus on loopback, with the rules of the mixin, and waits until it has read everybody.
func (d *Dashboard) Start(ctx context.Context) error {
	if err := d.configure(ctx); err != nil {
		return err
	}
	if err := d.launch("prometheus", filepath.Join(d.Programs, "prometheus"), "--config.file="+d.path("prometheus.yml"), "--storage.tsdb.path="+d.path("tsdb"),
		"--web.listen-address="+address); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for want := len(d.textfiles) + len(d.nodes) + len(d.pools); ; {
		up, err := d.Ask(ctx, "query", url.Values{"query": {"sum(up)"}})
		if err == nil && len(up) == 1 && up[0].last() == float64(want) {
			return nil
		}
		select {
		case <-time.After(200 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("waiting until Prometheus has read all %d, and it has read %v: %w", want, up, errors.Join(ctx.Err(), err))
		}
	}
}

// configure writes what Prometheus is told, and makes it an identity that the controllers let read.
func (d *Dashboard) configure(ctx context.Context) error {
	for _, words := range [][]string{{"create", "serviceaccount", reader, "-n", "default"},
		{"create", "clusterrolebinding", reader, "--clusterrole=kubelet-supervisor-metrics-reader", "--serviceaccount=default:" + reader}} {
		if _, err := d.cluster.Kubectl(ctx, words...); err != nil {
			return err
		}
	}
	token, err := d.cluster.Kubectl(ctx, "create", "token", reader, "-n", "default", fmt.Sprintf("--duration=%ds", int((d.Lasts+time.Hour).Seconds())))
	if err != nil {
		return err
	}
	rules, err := filepath.Abs(d.Mixin)
	if err != nil {
		return err
	}
	timeout := min(d.Every, 10*time.Second)
	text, err := yaml.Marshal(object{
		"global":     object{"scrape_interval": d.Every.String(), "scrape_timeout": timeout.String(), "evaluation_interval": d.Every.String()},
		"rule_files": []string{filepath.Join(rules, "alerts.yaml"), filepath.Join(rules, "rules.yaml")},
		"scrape_configs": []object{
			{"job_name": "node", "static_configs": d.textfiles},
			{"job_name": "kubelet-supervisor", "static_configs": d.nodes},
			{"job_name": "kubelet-pools", "scheme": "https", "tls_config": object{"insecure_skip_verify": true}, // its certificate is one that it has made for itself
				"authorization": object{"credentials_file": d.path("token")}, "static_configs": d.pools},
		},
	})
	if err != nil {
		return err
	}
	if err := os.WriteFile(d.path("token"), []byte(strings.TrimSpace(token)), 0o600); err != nil {
		return err
	}
	return os.WriteFile(d.path("prometheus.yml"), text, 0o600)
}

// Ask asks Prometheus for series.
func (d *Dashboard) Ask(ctx context.Context, how string, words url.Values) ([]Series, error) {
	var answer struct{ Result []Series }
	err := d.get(ctx, how+"?"+words.Encode(), &answer)
	return answer.Result, err
}

// get reads the data of an answer of its API.
func (d *Dashboard) get(ctx context.Context, path string, data any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/api/v1/"+path, nil)
	if err != nil {
		return err
	}
	client := &http.Client{Timeout: 2 * time.Minute, Transport: &http.Transport{DialContext: d.cluster.Dial, DisableKeepAlives: true}}
	answer, err := client.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	var envelope struct {
		Status, Error string
		Data          json.RawMessage
	}
	if err := json.NewDecoder(answer.Body).Decode(&envelope); err != nil {
		return fmt.Errorf("reading Prometheus' answer: %w", err)
	}
	if envelope.Status != "success" {
		return fmt.Errorf("Prometheus says %s", envelope.Error) //nolint:staticcheck // a name
	}
	return json.Unmarshal(envelope.Data, data)
}
