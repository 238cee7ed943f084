package plugin

import (
	"testing"

	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/document"
)

func TestConfig(t *testing.T) {
	b := newBench(t, localNode("n1"))
	b.configz["maxPods"] = int64(20)
	b.configz["evictionHard"] = map[string]any{"memory.available": "50Mi"}
	for file, arguments := range map[string][]string{
		"config.yaml":         {"config", "n1"},
		"config-changed.yaml": {"config", "n1", "--changed"},
		"config-changed.json": {"config", "n1", "--changed", "-o", "json"},
	} {
		t.Run(file, func(t *testing.T) {
			stdout, _ := b.do(t, arguments...)
			golden(t, file, stdout)
			if _, err := document.Read(map[string]string{"kubelet": stdout}, "kubelet"); err != nil {
				t.Errorf("what is printed cannot be pushed: %v", err)
			}
		})
	}
}

func TestConfigOfAnotherVersion(t *testing.T) {
	node := localNode("n1")
	node.Status.NodeInfo.KubeletVersion = "v1.30.1"
	_, stderr := newBench(t, node).do(t, "config", "n1", "--changed")
	contains(t, stderr, "defaults of Kubernetes 1.24", "runs v1.30.1")
}
