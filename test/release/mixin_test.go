//go:build release

package release

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/pages"
)

// mixin is unpacked and looked at by the page's commands, and a Prometheus takes its rules as docs/howto/watch.md has them.
func mixin(t *testing.T, made string) {
	prometheus := os.Getenv("KUBELET_SUPERVISOR_TEST_PROMETHEUS")
	if prometheus == "" {
		t.Fatal("KUBELET_SUPERVISOR_TEST_PROMETHEUS is not set: run make test-release, or set it to what test/parts/prometheus.sh says")
	}
	fences := pages.Marked(pages.Section(read(t, "../../docs/howto/verify.md"), "Alerts and dashboard"), "release")
	if len(fences) != 1 || len(fences[0]) != 2 {
		t.Fatalf("the page has the commands %v", fences)
	}
	folder, path := t.TempDir(), "PATH="+prometheus+":"+os.Getenv("PATH")
	must(t, folder, "cp "+filepath.Join(made, "kubelet-supervisor-mixin_*.tar.gz")+" .")
	must(t, folder, fences[0][0].Line)
	if said := must(t, folder, fences[0][1].Line, path); strings.Count(said, "SUCCESS") != 2 {
		t.Errorf("promtool says %s", said)
	}

	const where = "/etc/prometheus/kubelet-supervisor"
	_, config, _ := strings.Cut(pages.Section(read(t, "../../docs/howto/watch.md"), "Plain Prometheus"), "```yaml\n")
	config, _, _ = strings.Cut(config, "```")
	if strings.Count(config, where) != 2 {
		t.Fatalf("the page about watching has the rules %q", config)
	}
	config = strings.ReplaceAll(config, where, filepath.Join(folder, "mixin"))
	if err := os.WriteFile(filepath.Join(folder, "prometheus.yml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	if said := must(t, folder, "promtool check config prometheus.yml", path); !strings.Contains(said, "2 rule files found") {
		t.Errorf("promtool says of Prometheus' file %s", said)
	}
	dashboard(t, filepath.Join(folder, "mixin"))
}

// dashboard: it is JSON with a title, and each panel that draws asks for something.
func dashboard(t *testing.T, folder string) {
	t.Helper()
	var board struct {
		Title  string
		Panels []struct {
			Title, Type string
			Targets     []struct{ Expr string }
		}
	}
	if err := json.Unmarshal([]byte(read(t, filepath.Join(folder, "dashboards/kubelet-supervisor.json"))), &board); err != nil {
		t.Fatal(err)
	}
	asking := 0
	for _, panel := range board.Panels {
		if panel.Type == "row" {
			continue
		}
		asking++
		if panel.Title == "" || len(panel.Targets) == 0 || panel.Targets[0].Expr == "" {
			t.Errorf("the panel %+v draws nothing", panel)
		}
	}
	if board.Title == "" || asking < 5 {
		t.Errorf("the dashboard %q has %d panels", board.Title, asking)
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
