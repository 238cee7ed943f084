package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// tellStates writes what kube-state-metrics tells of the Nodes' conditions, as its docs/node-metrics.md has it, until ctx ends. Its module cannot
// be had from the Go module proxy that was asked, and Debian has no package of it.
func (s *stage) tellStates(ctx context.Context) {
	every(ctx, func() {
		var nodes corev1.NodeList
		if s.admin.Get().Resource("nodes").Do(ctx).Into(&nodes) != nil {
			return // it is asked again soon, and what was written is what was known
		}
		file := filepath.Join(s.path(ksm), "states.prom")
		if os.WriteFile(file+".new", []byte(states(nodes.Items)), 0o600) == nil {
			_ = os.Rename(file+".new", file)
		}
	})
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
