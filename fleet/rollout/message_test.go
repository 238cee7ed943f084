package rollout

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1/nodetest"
	"github.com/kubelet-supervisor/kubelet-supervisor/internal/bounded"
)

// What a node says gets into the status of a pool, and so into kubectl's tables and Events, as short lines (rule 28).
func TestHostileNodeIsReadAsLines(t *testing.T) {
	for _, text := range []string{"a\n\x1b]0;owned\a\x1b[2J\u202eb\u200b", "a\x1b" + strings.Repeat("w", 240<<10)} {
		node := &corev1.Node{}
		node.Status.NodeInfo.KubeletVersion, node.Status.NodeInfo.Architecture = "v1"+text+".36"+text+".3", text
		nodetest.Say(node, nodev1.Status{Reason: text, Failure: &nodev1.Failure{Message: text}, Shadowed: []nodev1.ShadowedField{{Field: text, By: text}}}, corev1.NodeConfigStatus{}, text)
		n := ReadNode(node)
		words := []string{n.Minor, n.Arch, n.Reason, n.Failure, n.Holds, message(text)}
		for _, shadow := range n.Shadows {
			words = append(words, shadow.Field, shadow.By)
		}
		for i, word := range words {
			if !bounded.Shows(word) || strings.Contains(word, "\n") || len(word) > messageLimit {
				t.Errorf("%d: %d bytes are %.100q", i, len(word), word)
			}
		}
	}
}
