package plugin

import (
	"context"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/cmdutil"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/view"
)

// carrierFor decides where an assignment is written: where the Node has one, for an annotation wins over the field; else in
// spec.configSource where the API server keeps it, which a dry run tells; else in the annotation, which every API server keeps.
func (w *writer) carrierFor(ctx context.Context, v view.Node, wanted nodev1.Assignment) nodev1.Carrier {
	switch {
	case wanted.UID != "": // the field takes no uid
		return nodev1.CarrierAnnotation
	case v.Says.Carrier != nodev1.CarrierNone:
		return v.Says.Carrier
	case w.dry == cmdutil.DryRunClient: // the API server is not asked
		return nodev1.CarrierAnnotation
	}
	w.probe.Do(func() { // once for all nodes: it is the API server's way
		node, err := cmdutil.PatchNode(ctx, w.client, v.Node, patchOf(nodev1.CarrierField, wanted), cmdutil.DryRunServer)
		w.keepsField = err == nil && node.Spec.ConfigSource != nil
	})
	if w.keepsField {
		return nodev1.CarrierField
	}
	return nodev1.CarrierAnnotation
}

// patchOf is the merge patch that assigns; local removes what either carrier has.
func patchOf(c nodev1.Carrier, wanted nodev1.Assignment) map[string]any {
	source := map[string]any{"configMap": map[string]any{"namespace": wanted.Namespace, "name": wanted.Name, "kubeletConfigKey": wanted.Key}}
	annotation := func(value any) map[string]any {
		return map[string]any{"annotations": map[string]any{nodev1.ConfigSourceAnnotation: value}}
	}
	switch {
	case wanted.IsLocal():
		return map[string]any{"metadata": annotation(nil), "spec": map[string]any{"configSource": nil}}
	case c == nodev1.CarrierField:
		return map[string]any{"spec": map[string]any{"configSource": source}}
	}
	return map[string]any{"metadata": annotation(wanted.String())}
}
