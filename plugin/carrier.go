package plugin

import (
	"context"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/cmdutil"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/view"
)

// carrierFor returns where to write an assignment. If the Node has one, it goes to the same place, because an
// annotation overrides the field. Otherwise it goes to spec.configSource if the API server keeps that field, which
// a dry run shows, and to the annotation if not.
func (w *writer) carrierFor(ctx context.Context, v view.Node, wanted nodev1.Assignment) nodev1.Carrier {
	switch {
	case wanted.UID != "": // the field has no room for a uid
		return nodev1.CarrierAnnotation
	case v.Says.Carrier != nodev1.CarrierNone:
		return v.Says.Carrier
	case w.dry == cmdutil.DryRunClient: // a client dry run sends no request
		return nodev1.CarrierAnnotation
	}
	w.probe.Do(func() { // once for all nodes, because it depends on the API server only
		node, err := cmdutil.PatchNode(ctx, w.client, v.Node, patchOf(nodev1.CarrierField, wanted), cmdutil.DryRunServer)
		w.keepsField = err == nil && node.Spec.ConfigSource != nil
	})
	if w.keepsField {
		return nodev1.CarrierField
	}
	return nodev1.CarrierAnnotation
}

// patchOf returns the merge patch that assigns; for local it removes the assignment from both places.
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
