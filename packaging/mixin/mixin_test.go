package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func evaluated(t *testing.T) *mixin {
	t.Helper()
	m, err := evaluate(".")
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// The same source gives the same files, and each says what it is.
func TestRender(t *testing.T) {
	one, err := render(".")
	if err != nil {
		t.Fatal(err)
	}
	two, err := render(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"alerts.yaml", "rules.yaml", "prometheusrule.yaml", "dashboards/kubelet-supervisor.json"} {
		if len(one[name]) == 0 || !bytes.Equal(one[name], two[name]) {
			t.Errorf("%s has %d bytes, and then %d", name, len(one[name]), len(two[name]))
		}
	}
	if text := string(one["prometheusrule.yaml"]); !strings.Contains(text, "alert: KubeletConfigNotOk") || !strings.Contains(text, "record: cluster:") {
		t.Error("prometheusrule.yaml lacks alerts or recording rules")
	}
}

func TestRun(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "new")
	if err := run(".", folder); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(folder, "dashboards", "kubelet-supervisor.json")); err != nil {
		t.Error(err)
	}
	if err := run(".", ""); err == nil || !strings.Contains(err.Error(), "--output") {
		t.Errorf("without a folder: %v", err)
	}
	if err := run(t.TempDir(), folder); err == nil || !strings.Contains(err.Error(), "mixin.libsonnet") {
		t.Errorf("without a mixin: %v", err)
	}
}

// Each alert has a heading on the page that its link leads to, and each such heading has its alert. No alert is named as an event is.
func TestEachAlertHasItsPage(t *testing.T) {
	page := read(t, "docs/operate/alerts.md")
	events := read(t, "docs/reference/contract.md") + read(t, "docs/reference/pool.md")
	var names []string
	for _, g := range evaluated(t).Alerts.Groups {
		for _, r := range g.Rules {
			names = append(names, r.Alert)
			if want := "docs/operate/alerts.md#" + strings.ToLower(r.Alert); !strings.HasSuffix(r.Annotations["runbook_url"], want) {
				t.Errorf("%s: its runbook is %q", r.Alert, r.Annotations["runbook_url"])
			}
			if !slices.Contains([]string{"info", "warning", "critical"}, r.Labels["severity"]) || r.Annotations["summary"] == "" {
				t.Errorf("%s has severity %q and summary %q", r.Alert, r.Labels["severity"], r.Annotations["summary"])
			}
			if regexp.MustCompile("(?m)^\\| (Normal|Warning) \\| `" + r.Alert + "`").MatchString(events) {
				t.Errorf("%s is an event, too", r.Alert)
			}
		}
	}
	var headings []string
	for _, match := range regexp.MustCompile(`(?m)^### (\w+)$`).FindAllStringSubmatch(page, -1) {
		headings = append(headings, match[1])
	}
	if !slices.Equal(names, headings) {
		t.Errorf("the alerts are\n%v\nand the headings of docs/operate/alerts.md\n%v", names, headings)
	}
}

// The alert that docs/operate shows is the one of the mixin.
func TestTheFreeAlert(t *testing.T) {
	page := read(t, "docs/operate/README.md")
	free := evaluated(t).Alerts.Groups[0].Rules[0]
	for _, want := range []string{"alert: " + free.Alert + "\n", "expr: " + free.Expr + "\n", "for: " + free.For + "\n"} {
		if !strings.Contains(page, want) {
			t.Errorf("docs/operate/README.md does not have %q", want)
		}
	}
}

// The alerts that cost nothing come first, all of them in one group: they ask kube-state-metrics for its one series, and nobody else. A rule that
// asks for more stands below.
func TestTheFreeAlertsComeFirst(t *testing.T) {
	const free = "kube_node_status_condition"
	groups := evaluated(t).Alerts.Groups
	if len(groups) < 2 || groups[0].Name != "kubelet-config" || len(groups[0].Rules) < 3 {
		t.Fatalf("the groups are %+v", groups)
	}
	for i, g := range groups {
		for _, r := range g.Rules {
			asks := metricsOf(r.Expr)
			if only := slices.Equal(slices.Compact(asks), []string{free}); only != (i == 0) {
				t.Errorf("%s of group %d, %s, asks for %v", r.Alert, i, g.Name, asks)
			}
		}
	}
}

// metricsOf are the names in an expression that are no labels, functions or words of the language.
func metricsOf(expr string) (names []string) {
	bare := regexp.MustCompile(`"[^"]*"`).ReplaceAllString(expr, "") // first: a value may have braces
	bare = regexp.MustCompile(`\{[^}]*\}|\[[^\]]*\]|\b(by|without|on|ignoring|group_left|group_right) *\([^)]*\)|\b[0-9][\w.]*`).ReplaceAllString(bare, " ")
	for _, match := range regexp.MustCompile(`([a-zA-Z_:][\w:]*) *(\(?)`).FindAllStringSubmatch(bare, -1) {
		if match[2] == "" && !slices.Contains([]string{"and", "or", "unless", "bool", "offset"}, match[1]) {
			names = append(names, match[1])
		}
	}
	return names
}

func TestMetricsOf(t *testing.T) {
	for expr, want := range map[string][]string{
		`a{b="} or c",d!~"e"} == 1`:                             {"a"},
		`count by (x)(a{b="c"} == 1) / count by (x) (d) > 0.05`: {"a", "d"},
		`sum(rate(a:b[5m] offset 1m)) > 1e3 and on (x) c_total`: {"a:b", "c_total"},
	} {
		if seen := metricsOf(expr); !slices.Equal(seen, want) {
			t.Errorf("%s: %q, want %q", expr, seen, want)
		}
	}
}

// What others export, and rules and dashboard may use.
var foreign = []string{"kube_node_status_condition", "node_textfile_mtime_seconds", "leader_election_master_status"}

// Every metric that a rule or a panel asks for is one that the references have. Those are held against what the programs really tell.
func TestMetricsExist(t *testing.T) {
	known := slices.Clone(foreign)
	for _, match := range regexp.MustCompile("(?m)^\\| `(kubelet_\\w+)").FindAllStringSubmatch(read(t, "docs/reference/metrics.md")+read(t, "docs/reference/pool.md"), -1) {
		known = append(known, match[1], match[1]+"_sum", match[1]+"_count", match[1]+"_bucket")
	}
	m := evaluated(t)
	for _, g := range m.Rules.Groups {
		for _, r := range g.Rules {
			known = append(known, r.Record)
		}
	}
	name := regexp.MustCompile(`\b(?:kube|kubelet|node|cluster|leader)[_:][a-z0-9_:]+`)
	used := 0
	for _, expr := range expressions(t, m) {
		// Labels and what they are compared with are no metrics.
		for _, metric := range name.FindAllString(regexp.MustCompile(`\{[^}]*\}`).ReplaceAllString(expr, ""), -1) {
			used++
			if !slices.Contains(known, metric) {
				t.Errorf("nothing tells %s, of %s", metric, expr)
			}
		}
	}
	if used < 40 {
		t.Errorf("only %d metrics were found", used)
	}
}

// A dashboard is the part of Grafana's schema that we use. A panel lies beside the others, never over them.
type dashboard struct {
	UID, Title    string
	SchemaVersion int
	Templating    struct {
		List []struct{ Name, Type, Query string }
	}
	Panels []struct {
		ID          int
		Type, Title string
		Datasource  struct{ Type, UID string }
		GridPos     struct{ X, Y, W, H int }
		Targets     []struct{ Expr, RefID string }
	}
}

func dashboards(t *testing.T, m *mixin) map[string]dashboard {
	t.Helper()
	all := map[string]dashboard{}
	for name, text := range m.Dashboards {
		var d dashboard
		if err := json.Unmarshal(text, &d); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		all[name] = d
	}
	return all
}

func TestDashboard(t *testing.T) {
	for name, d := range dashboards(t, evaluated(t)) {
		if d.UID == "" || d.Title == "" || d.SchemaVersion < 36 || len(d.Templating.List) != 1 || d.Templating.List[0].Type != "datasource" || len(d.Panels) < 15 {
			t.Errorf("%s: %q %q, schema %d, %v, %d panels", name, d.UID, d.Title, d.SchemaVersion, d.Templating, len(d.Panels))
		}
		taken := map[[2]int]string{}
		ids := map[int]bool{}
		for _, p := range d.Panels {
			if p.Title == "" || ids[p.ID] || p.ID == 0 || p.Datasource.UID != "${datasource}" || !slices.Contains([]string{"timeseries", "stat"}, p.Type) {
				t.Errorf("%s: panel %d, %q, is a %q of %q", name, p.ID, p.Title, p.Type, p.Datasource.UID)
			}
			ids[p.ID] = true
			if p.GridPos.W < 1 || p.GridPos.H < 1 || p.GridPos.X+p.GridPos.W > 24 {
				t.Errorf("%s: %q lies at %v, of 24 columns", name, p.Title, p.GridPos)
			}
			for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
				for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
					if other, is := taken[[2]int{x, y}]; is {
						t.Fatalf("%s: %q lies over %q", name, p.Title, other)
					}
					taken[[2]int{x, y}] = p.Title
				}
			}
			references := map[string]bool{}
			for _, target := range p.Targets {
				if target.Expr == "" || target.RefID == "" || references[target.RefID] {
					t.Errorf("%s: %q has target %q: %q", name, p.Title, target.RefID, target.Expr)
				}
				references[target.RefID] = true
			}
			if len(p.Targets) == 0 {
				t.Errorf("%s: %q shows nothing", name, p.Title)
			}
		}
	}
}

// expressions are all of rules and panels.
func expressions(t *testing.T, m *mixin) []string {
	t.Helper()
	var all []string
	for _, g := range append(slices.Clone(m.Alerts.Groups), m.Rules.Groups...) {
		for _, r := range g.Rules {
			all = append(all, r.Expr)
		}
	}
	for _, d := range dashboards(t, m) {
		for _, p := range d.Panels {
			for _, target := range p.Targets {
				all = append(all, target.Expr)
			}
		}
	}
	return all
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../..", path))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
