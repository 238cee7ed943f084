package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/cluster"
)

type object = map[string]any

// startPrometheus starts one on loopback, with the rules of the mixin, and waits until it has read everybody.
func (s *stage) startPrometheus(ctx context.Context) error {
	token, err := s.cluster.Kubectl(ctx, "create", "token", "reader", "-n", "default")
	if err != nil {
		return err
	}
	rules, err := filepath.Abs(s.mixin)
	if err != nil {
		return err
	}
	var exporters, pools []object
	for i, name := range append([]string{cluster.NodeName, ksm}, fakeNodes...) {
		exporters = append(exporters, object{"targets": []string{fmt.Sprintf("127.0.0.1:%d", 9100+i)}, "labels": object{"instance": name}})
	}
	for i := range controllers {
		pools = append(pools, object{"targets": []string{fmt.Sprintf("127.0.0.1:%d", 8443+i)}})
	}
	text, err := yaml.Marshal(object{
		"global":     object{"scrape_interval": readEvery.String(), "scrape_timeout": readEvery.String(), "evaluation_interval": readEvery.String()},
		"rule_files": []string{filepath.Join(rules, "alerts.yaml"), filepath.Join(rules, "rules.yaml")},
		"scrape_configs": []object{
			{"job_name": "node", "static_configs": exporters},
			{"job_name": "kubelet-pools", "scheme": "https", "tls_config": object{"insecure_skip_verify": true}, // its certificate is one that it has made for itself
				"authorization": object{"credentials_file": s.path("token")}, "static_configs": pools},
		},
	})
	if err != nil {
		return err
	}
	if err := errors.Join(os.WriteFile(s.path("token"), []byte(strings.TrimSpace(token)), 0o600), os.WriteFile(s.path("prometheus.yml"), text, 0o600)); err != nil {
		return err
	}
	if _, err := s.launch("prometheus", filepath.Join(s.prometheus, "prometheus"), "--config.file="+s.path("prometheus.yml"), "--storage.tsdb.path="+s.path("tsdb"),
		"--web.listen-address="+prometheus); err != nil {
		return err
	}
	want := len(exporters) + len(pools)
	return s.await(ctx, "Prometheus has read everybody", func() error {
		up, err := s.ask(ctx, "query", url.Values{"query": {"sum(up)"}})
		if err != nil {
			return err
		}
		if len(up) != 1 || up[0].last() != float64(want) {
			return fmt.Errorf("of %d it has read %v", want, up)
		}
		return nil
	})
}

// A series is one that Prometheus has answered with.
type series struct {
	Metric map[string]string `json:"metric"`
	Value  *sample           `json:"value"`
	Values []sample          `json:"values"`
}

// A sample is a time in seconds, and a value as text.
type sample [2]any

func (s sample) at() float64 { at, _ := s[0].(float64); return at }

func (s sample) value() float64 {
	var value float64
	text, _ := s[1].(string)
	if _, err := fmt.Sscan(text, &value); err != nil || math.IsNaN(value) {
		return 0 // drawPanel leaves NaN out
	}
	return value
}

func (s series) last() float64 {
	if s.Value != nil {
		return s.Value.value()
	}
	if len(s.Values) == 0 {
		return 0
	}
	return s.Values[len(s.Values)-1].value()
}

// ask asks Prometheus for series.
func (s *stage) ask(ctx context.Context, how string, words url.Values) ([]series, error) {
	var answer struct{ Result []series }
	err := s.get(ctx, how+"?"+words.Encode(), &answer)
	return answer.Result, err
}

// get reads the data of an answer of its API.
func (s *stage) get(ctx context.Context, path string, data any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+prometheus+"/api/v1/"+path, nil)
	if err != nil {
		return err
	}
	client := &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{DialContext: s.cluster.Dial, DisableKeepAlives: true}}
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
