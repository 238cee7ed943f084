package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// promtool runs Debian's. Without it there is nothing to test with, and that is no pass.
func promtool(t *testing.T, arguments ...string) (string, error) {
	t.Helper()
	return promtoolReads(t, "", arguments...)
}

func promtoolReads(t *testing.T, input string, arguments ...string) (string, error) {
	t.Helper()
	folder := os.Getenv("KUBELET_SUPERVISOR_TEST_PROMETHEUS")
	if folder == "" {
		t.Fatal("KUBELET_SUPERVISOR_TEST_PROMETHEUS is not set: run make test-packages, or set it to what test/parts/prometheus.sh says")
	}
	command := exec.CommandContext(t.Context(), filepath.Join(folder, "promtool"), arguments...)
	command.Stdin = strings.NewReader(input)
	output, err := command.CombinedOutput()
	return string(output), err
}

// A firing is what an alert has to say of some series, and of which it has to say nothing. Samples are a minute apart.
type firing struct {
	series map[string]string // in the notation of promtool
	at     string            // when it fires
	quiet  string            // when it does not
	labels map[string]string // beside severity and those of the series
	says   string            // the summary
}

const (
	condition = `kube_node_status_condition{node="%s",condition="KubeletConfigOk",status="%s"}`
	onN1      = `{instance="n1"}`
)

func kube(node, status string) string { return fmt.Sprintf(condition, node, status) }

var (
	ofNode = map[string]string{"instance": "n1"}
	ofPool = map[string]string{"pool": "workers"}
)

var firings = map[string]firing{
	"KubeletConfigNotOk": {
		series: map[string]string{kube("n1", "false"): "0 1x40", kube("n1", "true"): "1 0x40"}, at: "20m", quiet: "10m",
		labels: map[string]string{"node": "n1", "condition": "KubeletConfigOk", "status": "false"},
		says:   "n1 does not run the kubelet configuration that it is assigned, or it waits",
	},
	"KubeletConfigUnknown": {
		series: map[string]string{kube("n1", "unknown"): "0 1x40"}, at: "20m", quiet: "10m",
		labels: map[string]string{"node": "n1", "condition": "KubeletConfigOk", "status": "unknown"},
		says:   "n1: nobody knows whether it runs its kubelet configuration",
	},
	// One of three is more than 5 %, and no reason to wake anybody; two are.
	"KubeletConfigManyNodesNotOk": {
		series: map[string]string{
			kube("n1", "false"): "1x40", kube("n2", "false"): "0x19 1x21", kube("n3", "false"): "0x40",
			kube("n1", "true"): "0x40", kube("n2", "true"): "1x19 0x21", kube("n3", "true"): "1x40",
		}, at: "30m", quiet: "15m",
		says: "more than 5 % of the supervised nodes do not run their kubelet configuration",
	},
	"KubeletNotHealthy": {
		series: map[string]string{"kubelet_supervisor_kubelet_healthy" + onN1: "1x10 0x30"}, at: "20m", quiet: "13m", labels: ofNode,
		says: "n1: the kubelet is not healthy",
	},
	"KubeletEndsByItself": {
		series: map[string]string{`kubelet_supervisor_kubelet_starts_total{instance="n1",why="exit"}`: "0x10 1+1x30"}, at: "25m", quiet: "10m",
		labels: map[string]string{"instance": "n1", "why": "exit"}, says: "n1: the kubelet ends by itself again and again",
	},
	// It is written each minute, and then no more.
	"KubeletSupervisorGone": {
		series: map[string]string{`node_textfile_mtime_seconds{instance="n1",file="/var/lib/prometheus/node-exporter/kubelet_supervisor.prom"}`: "0+60x10 600x40"},
		at:     "25m", quiet: "12m", labels: map[string]string{"instance": "n1", "file": "/var/lib/prometheus/node-exporter/kubelet_supervisor.prom"},
		says: "n1: the supervisor no longer writes its metrics",
	},
	"KubeletSupervisorOffline": {
		series: map[string]string{"kubelet_supervisor_last_contact_timestamp_seconds" + onN1: "60+60x10 660x60"}, at: "40m", quiet: "20m", labels: ofNode,
		says: "n1: the API server has not answered the supervisor for a quarter of an hour",
	},
	"KubeletConfigTrialFailed": {
		series: map[string]string{`kubelet_supervisor_rollbacks_total{instance="n1",cause="Exited"}`: "0x5 1x90"}, at: "10m", quiet: "80m",
		labels: map[string]string{"instance": "n1", "cause": "Exited"}, says: "n1 rolled a kubelet configuration back: Exited",
	},
	"KubeletRestartKilledPods": {
		series: map[string]string{`kubelet_supervisor_pods_lost_total{instance="n1",reason="OutOfpods"}`: "0x5 2x90", `kubelet_supervisor_pods_lost_total{instance="n1",reason="Gone"}`: "0x95"},
		at:     "10m", quiet: "80m", labels: map[string]string{"instance": "n1", "reason": "OutOfpods"},
		says: "n1: pods that ran before a restart of the kubelet did not run after it: OutOfpods",
	},
	"KubeletConfigWaits": {
		series: map[string]string{"kubelet_supervisor_held" + onN1: "1x90"}, at: "70m", quiet: "50m", labels: ofNode,
		says: "n1: a change waits, because it would kill running pods",
	},
	"KubeletConfigShadowed": {
		series: map[string]string{"kubelet_supervisor_shadowed_fields" + onN1: "2x90"}, at: "70m", quiet: "50m", labels: ofNode,
		says: "n1: flags or drop-in files override 2 fields of the configuration",
	},
	"KubeletLocalFilesChanged": {
		series: map[string]string{"kubelet_supervisor_local_change_pending" + onN1: "1x1600"}, at: "1500m", quiet: "1400m", labels: ofNode,
		says: "n1: its own files have changed, and its kubelet was not restarted for it",
	},
	// Only the leader tells: the other one's 0 says nothing.
	"KubeletPoolStopped": {
		series: map[string]string{`kubelet_supervisor_pool_stopped{pool="workers",instance="a"}`: "0x5 1x10", `kubelet_supervisor_pool_stopped{pool="workers",instance="b"}`: "0x15"}, at: "8m", quiet: "3m",
		labels: ofPool, says: "KubeletPool workers has stopped its rollout",
	},
	"KubeletPoolNodesFailed": {
		series: map[string]string{`kubelet_supervisor_pool_nodes{pool="workers",class="failed"}`: "3x40", `kubelet_supervisor_pool_nodes{pool="workers",class="proven"}`: "9x40"}, at: "20m", quiet: "10m",
		labels: ofPool, says: "3 nodes of KubeletPool workers refuse or rolled back what others run",
	},
	"KubeletPoolNodesBlocked": {
		series: map[string]string{`kubelet_supervisor_pool_nodes{pool="workers",class="blocked"}`: "2x40", `kubelet_supervisor_pool_nodes{pool="workers",class="proven"}`: "9x40"}, at: "20m", quiet: "10m",
		labels: ofPool, says: "2 nodes of KubeletPool workers cannot do what they are assigned, or do not answer",
	},
	"KubeletPoolInDoubt": {
		series: map[string]string{`kubelet_supervisor_pool_held{pool="workers"}`: "1x40"}, at: "20m", quiet: "10m", labels: ofPool,
		says: "KubeletPool workers assigns nothing new, because of doubt",
	},
	"KubeletPoolNodesLate": {
		series: map[string]string{`kubelet_supervisor_pool_nodes{pool="workers",class="late"}`: "1x1600"}, at: "1500m", quiet: "1400m", labels: ofPool,
		says: "1 nodes of KubeletPool workers do not come to what the others run",
	},
	"KubeletPoolManualNodes": {
		series: map[string]string{`kubelet_supervisor_pool_nodes{pool="workers",class="manual"}`: "1x1600"}, at: "1500m", quiet: "1400m", labels: ofPool,
		says: "1 nodes of KubeletPool workers are assigned by hand",
	},
	"KubeletPoolControllerGone": {
		series: map[string]string{"kubelet_supervisor_pool_decide_seconds_count" + onN1: "1+1x10"}, at: "40m", quiet: "12m",
		says: "the controller of KubeletPools was there in the last day, and tells nothing any more",
	},
	// a leads for half an hour, and then neither does. What another program tells, which leads all the while, says nothing of ours.
	"KubeletPoolNoLeader": {
		series: map[string]string{
			`leader_election_master_status{job="pools",instance="a",name=""}`: "1x30 0x30", `kubelet_supervisor_pool_decide_seconds_count{job="pools",instance="a"}`: "1+1x60",
			`leader_election_master_status{job="pools",instance="b",name=""}`: "0x60", `kubelet_supervisor_pool_decide_seconds_count{job="pools",instance="b"}`: "0x60",
			`leader_election_master_status{job="others",instance="c",name="x"}`: "1x60",
		}, at: "40m", quiet: "33m",
		says: "controllers of KubeletPools run, and none of them leads",
	},
	// Conflicts are the ordinary case; a refusal is not.
	"KubeletPoolPatchesFail": {
		series: map[string]string{`kubelet_supervisor_pool_patches_total{code="409"}`: "0+1x60", `kubelet_supervisor_pool_patches_total{code="403"}`: "0x20 1+1x40"}, at: "50m", quiet: "20m",
		says: "the API server refuses or does not answer PATCHes of Nodes",
	},
}

// What the node's program and the controller tell is as Prometheus wants metrics to be. Their own tests compare these files with what they tell.
func TestMetricsAreAsPrometheusWantsThem(t *testing.T) {
	for _, path := range []string{"supervisor/metrics/testdata/node.prom", "fleet/controller/testdata/controller.prom"} {
		text := read(t, path)
		if !strings.Contains(text, "# TYPE kubelet_") {
			t.Errorf("%s has no metric", path)
		}
		if output, err := promtoolReads(t, text, "check", "metrics"); err != nil || output != "" {
			t.Errorf("%s: %v\n%s", path, err, output)
		}
	}
	if output, err := promtoolReads(t, "# TYPE kubelet_pods gauge\nkubelet_pods 1\n", "check", "metrics"); err == nil || !strings.Contains(output, "no help text") {
		t.Errorf("promtool finds nothing wrong with a metric without help: %v\n%s", err, output)
	}
}

// Each alert fires when it is to, with its words, and is silent when it is not to.
func TestAlerts(t *testing.T) {
	folder := t.TempDir()
	if err := run(".", folder); err != nil {
		t.Fatal(err)
	}
	tested := map[string]bool{}
	for _, g := range evaluated(t).Alerts.Groups {
		for _, r := range g.Rules {
			tested[r.Alert] = true
			row, is := firings[r.Alert]
			if !is {
				t.Errorf("%s has no row", r.Alert)
				continue
			}
			t.Run(r.Alert, func(t *testing.T) {
				fires := map[string]any{"exp_labels": merged(row.labels, r.Labels), "exp_annotations": merged(map[string]string{"summary": row.says}, map[string]string{"runbook_url": r.Annotations["runbook_url"]})}
				unitTest(t, folder, row.series, map[string]any{"alert_rule_test": []any{
					map[string]any{"eval_time": row.quiet, "alertname": r.Alert, "exp_alerts": []any{}},
					map[string]any{"eval_time": row.at, "alertname": r.Alert, "exp_alerts": []any{fires}},
				}})
			})
		}
	}
	for name := range firings {
		if !tested[name] {
			t.Errorf("there is no alert %s", name)
		}
	}
}

func TestRecordingRules(t *testing.T) {
	folder := t.TempDir()
	if err := run(".", folder); err != nil {
		t.Fatal(err)
	}
	series := map[string]string{
		kube("n1", "true"): "1x80", kube("n1", "false"): "0x80", kube("n1", "unknown"): "0x80",
		kube("n2", "true"): "0x80", kube("n2", "false"): "1x80", kube("n2", "unknown"): "0x80",
		kube("n3", "true"): "0x80", kube("n3", "false"): "0x80", kube("n3", "unknown"): "1x80",
		`kubelet_supervisor_kubelet_unhealthy_seconds_total{instance="n1"}`: "0+1x80", `kubelet_supervisor_kubelet_unhealthy_seconds_total{instance="n2"}`: "0+2x80",
		`kubelet_supervisor_rollbacks_total{instance="n1",cause="Exited"}`: "0+1x80", `kubelet_supervisor_rollbacks_total{instance="n2",cause="LeaseLost"}`: "0x80",
	}
	values := map[string]float64{
		"cluster:kubelet_supervisor_nodes:count": 3, "cluster:kubelet_supervisor_nodes_not_ok:count": 2,
		"cluster:kubelet_supervisor_unhealthy_seconds:increase1h": 180, "cluster:kubelet_supervisor_rollbacks:increase1h": 60,
	}
	var asked []any
	for _, g := range evaluated(t).Rules.Groups {
		for _, r := range g.Rules {
			value, is := values[r.Record]
			if !is {
				t.Errorf("%s has no value here", r.Record)
			}
			asked = append(asked, map[string]any{"expr": r.Record, "eval_time": "70m", "exp_samples": []any{map[string]any{"labels": r.Record, "value": value}}})
		}
	}
	unitTest(t, folder, series, map[string]any{"promql_expr_test": asked})
}

// What several clusters in one Prometheus, and selectors of one's own, come to is still what promtool takes.
func TestOtherConfigurations(t *testing.T) {
	folder := t.TempDir()
	here, err := filepath.Abs("mixin.libsonnet")
	if err != nil {
		t.Fatal(err)
	}
	own := fmt.Sprintf("(import %q) { _config+:: { clusterLabel: 'cluster', kubeStateMetricsSelector: 'job=\"kube-state-metrics\"', instanceLabel: 'node' } }", here)
	if err := os.WriteFile(filepath.Join(folder, "mixin.libsonnet"), []byte(own), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := run(folder, folder); err != nil {
		t.Fatal(err)
	}
	if output, err := promtool(t, "check", "rules", filepath.Join(folder, "alerts.yaml"), filepath.Join(folder, "rules.yaml")); err != nil {
		t.Errorf("%v\n%s", err, output)
	}
	text, err := os.ReadFile(filepath.Join(folder, "alerts.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"by (cluster, pool)", `job="kube-state-metrics"`, "{{ $labels.node }}: the kubelet is not healthy"} {
		if !strings.Contains(strings.Join(strings.Fields(string(text)), " "), want) {
			t.Errorf("%q is not in alerts.yaml", want)
		}
	}
}

// unitTest has promtool try the rules in a folder.
func unitTest(t *testing.T, folder string, series map[string]string, asked map[string]any) {
	t.Helper()
	var input []any
	for name, values := range series {
		input = append(input, map[string]string{"series": name, "values": values})
	}
	asked["interval"], asked["input_series"] = "1m", input
	text, err := yaml.Marshal(map[string]any{
		"rule_files": []string{filepath.Join(folder, "alerts.yaml"), filepath.Join(folder, "rules.yaml")}, "evaluation_interval": "1m", "tests": []any{asked},
	})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "test.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if output, err := promtool(t, "test", "rules", file); err != nil {
		t.Errorf("%v\n%s\n%s", err, output, text)
	}
}

func merged(maps ...map[string]string) map[string]string {
	all := map[string]string{}
	for _, one := range maps {
		for key, value := range one {
			all[key] = value
		}
	}
	return all
}
