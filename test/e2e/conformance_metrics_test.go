//go:build e2e && conformance

package e2e

import (
	"fmt"
	"os"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// unlikeStatus gives upstream's four metrics where they are not what the status says, with all of their labels; else "".
func unlikeStatus(metricsFile string, status corev1.NodeConfigStatus) string {
	text, err := os.ReadFile(metricsFile)
	if err != nil {
		return " " + err.Error()
	}
	failing := "0"
	if status.Error != "" {
		failing = "1"
	}
	want := []string{
		"kubelet_node_config_assigned" + sourceSeries(status.Assigned),
		"kubelet_node_config_active" + sourceSeries(status.Active),
		"kubelet_node_config_last_known_good" + sourceSeries(status.LastKnownGood),
		"kubelet_node_config_error " + failing,
	}
	var is []string // with all that a family has: what was said before has to be gone
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "kubelet_node_config_") {
			is = append(is, strings.TrimSuffix(line, "\n"))
		}
	}
	if !slices.Equal(is, want) {
		return fmt.Sprintf(" metrics=%q", is)
	}
	return ""
}
