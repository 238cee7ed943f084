package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"

	"github.com/google/go-jsonnet"
	"sigs.k8s.io/yaml"
)

// A mixin is what mixin.libsonnet comes to.
type mixin struct {
	Alerts     groups                     `json:"prometheusAlerts"`
	Rules      groups                     `json:"prometheusRules"`
	Dashboards map[string]json.RawMessage `json:"grafanaDashboards"`
}

// groups are as in a file of rules of Prometheus.
type groups struct {
	Groups []group `json:"groups"`
}

type group struct {
	Name  string `json:"name"`
	Rules []rule `json:"rules"`
}

type rule struct {
	Alert       string            `json:"alert,omitempty"`
	Record      string            `json:"record,omitempty"`
	Expr        string            `json:"expr"`
	For         string            `json:"for,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// evaluate reads mixin.libsonnet in a folder. A field that is not known here is an error: it would be lost.
func evaluate(folder string) (*mixin, error) {
	path, err := filepath.Abs(filepath.Join(folder, "mixin.libsonnet"))
	if err != nil {
		return nil, fmt.Errorf("find the mixin: %w", err)
	}
	// What is hidden in it stays hidden, and what is not asked for here is not evaluated.
	text, err := jsonnet.MakeVM().EvaluateAnonymousSnippet("render.jsonnet",
		fmt.Sprintf("local m = import %q; { [k]: m[k] for k in ['prometheusAlerts', 'prometheusRules', 'grafanaDashboards'] }", path))
	if err != nil {
		return nil, fmt.Errorf("evaluate the mixin: %w", err)
	}
	var m mixin
	decoder := json.NewDecoder(bytes.NewBufferString(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&m); err != nil {
		return nil, fmt.Errorf("read what the mixin comes to: %w", err)
	}
	return &m, nil
}

const about = "# Rendered from packaging/mixin of kubelet-supervisor. Each alert has its page: see runbook_url.\n"

// render gives the files, by name.
func render(folder string) (map[string][]byte, error) {
	m, err := evaluate(folder)
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	operator := map[string]any{
		"apiVersion": "monitoring.coreos.com/v1",
		"kind":       "PrometheusRule",
		"metadata":   map[string]any{"name": "kubelet-supervisor", "labels": map[string]string{"app.kubernetes.io/name": "kubelet-supervisor"}},
		"spec":       groups{append(append([]group{}, m.Alerts.Groups...), m.Rules.Groups...)},
	}
	for name, content := range map[string]any{"alerts.yaml": m.Alerts, "rules.yaml": m.Rules, "prometheusrule.yaml": operator} {
		text, err := yaml.Marshal(content)
		if err != nil {
			return nil, fmt.Errorf("write %s: %w", name, err)
		}
		files[name] = append([]byte(about), text...)
	}
	for name, dashboard := range m.Dashboards {
		var text bytes.Buffer
		if err := json.Indent(&text, dashboard, "", "  "); err != nil {
			return nil, fmt.Errorf("write %s: %w", name, err)
		}
		files[filepath.Join("dashboards", name)] = append(bytes.TrimSpace(text.Bytes()), '\n')
	}
	return files, nil
}
