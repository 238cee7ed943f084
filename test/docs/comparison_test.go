package docs

import (
	"regexp"
	"strings"
	"testing"
)

// What the comparison says of metrics is what there is: the page that it links to has the removed feature's four, and more.
func TestTheComparisonKnowsTheMetrics(t *testing.T) {
	all := pages(t)
	row := regexp.MustCompile(`(?m)^\| metrics \|.*$`).FindString(all["docs/why/comparison.md"])
	if !strings.Contains(row, "| four gauges | [the same four, and more](../reference/metrics.md)") {
		t.Errorf("it says %q", row)
	}
	reference := all["docs/reference/metrics.md"]
	for _, name := range []string{"kubelet_node_config_assigned", "kubelet_node_config_active", "kubelet_node_config_last_known_good", "kubelet_node_config_error", "kubelet_supervisor_kubelet_healthy"} {
		if !strings.Contains(reference, "| `"+name+"` | gauge |") {
			t.Errorf("docs/reference/metrics.md does not have %s", name)
		}
	}
}
