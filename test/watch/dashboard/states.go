//go:build linux

package dashboard

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// tellStates writes what kube-state-metrics tells of the Nodes' conditions, as its docs/node-metrics.md has it, until ctx ends. Its module cannot
// be had from the Go module proxy that was asked, and Debian has no package of it.
func tellStates(ctx context.Context, every time.Duration, folder string, list func(context.Context) ([]corev1.Node, error)) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		if nodes, err := list(ctx); err == nil { // else it is asked again soon, and what was written is what was known
			file := filepath.Join(folder, "states.prom")
			if os.WriteFile(file+".new", []byte(states(nodes)), 0o600) == nil {
				_ = os.Rename(file+".new", file)
			}
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

func states(nodes []corev1.Node) string {
	var text strings.Builder
	text.WriteString("# HELP kube_node_status_condition The condition of a cluster node.\n# TYPE kube_node_status_condition gauge\n")
	for i := range nodes {
		for _, c := range nodes[i].Status.Conditions {
			for _, status := range []corev1.ConditionStatus{corev1.ConditionTrue, corev1.ConditionFalse, corev1.ConditionUnknown} {
				is := 0
				if c.Status == status {
					is = 1
				}
				_, _ = fmt.Fprintf(&text, "kube_node_status_condition{node=%q,condition=%q,status=%q} %d\n", nodes[i].Name, c.Type, strings.ToLower(string(status)), is)
			}
		}
	}
	return text.String()
}
