package plugin

import (
	"fmt"
	"slices"
	"strings"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/internal/bounded"
	"github.com/kubelet-supervisor/kubelet-supervisor/status"
)

func (v nodeView) knows(feature string) bool {
	return slices.Contains(strings.FieldsFunc(v.Annotations[status.FeaturesAnnotation], func(r rune) bool { return r == ',' || r == ' ' }), feature)
}

// mayLayer says why a node cannot have layers: its supervisor is too old for them, and would refuse. Of a node without a supervisor nobody
// knows.
func (v nodeView) mayLayer() error {
	if !v.supervised || v.knows(nodev1.LayersFeature) {
		return nil
	}
	return fmt.Errorf("the supervisor of node %s is too old for layers (its annotation %s has none of that name): upgrade kubelet-supervisor there, or push a whole file: "+
		"kubectl kubelet config %s --changed >kubelet.yaml, and push -f kubelet.yaml", bounded.Line(v.Name), status.FeaturesAnnotation, bounded.Line(v.Name))
}
