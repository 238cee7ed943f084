package plugin

import (
	"fmt"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/internal/bounded"
)

// mayLayer says why a node cannot have layers: its supervisor is too old for them, and would refuse. Of a node without a supervisor nobody
// knows.
func (v nodeView) mayLayer() error {
	if !v.says.Supervised || v.says.Knows(nodev1.LayersFeature) {
		return nil
	}
	return fmt.Errorf("the supervisor of node %s is too old for layers (annotation %s of the node does not name them): upgrade kubelet-supervisor there, or push a whole file: "+
		"kubectl kubelet config %s --changed >kubelet.yaml, and push -f kubelet.yaml", bounded.Line(v.Name), nodev1.StatusAnnotation, bounded.Line(v.Name))
}
