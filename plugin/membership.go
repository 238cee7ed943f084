package plugin

import (
	"context"
	"slices"
	"strings"

	"k8s.io/client-go/kubernetes"

	"github.com/kubelet-supervisor/kubelet-supervisor/internal/bounded"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/cmdutil"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/document"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/view"
)

// takesOut says of which pool a change by hand takes nodes, for a pool leaves alone what a person has assigned or reset. Where pools may not
// be listed, the Nodes' marks tell.
func takesOut(ctx context.Context, f *cmdutil.Factory, client kubernetes.Interface, targets []target) {
	pools, _ := f.ListPools(ctx, client)
	core, out := view.CorePools(pools), map[string][]string{}
	for _, t := range targets {
		for _, v := range t.views {
			if name := v.LeavesPool(core, t.until.wanted.IsLocal()); name != "" {
				out[name] = append(out[name], v.Name)
			}
		}
	}
	for _, name := range document.SortedKeys(out) {
		nodes := out[name]
		slices.Sort(nodes)
		f.Note("This takes %s out of pool %s; kubectl kubelet rollout adopt %s gives %s back.", view.FirstOf(nodes, ", "), bounded.Line(name), strings.Join(nodes[:min(len(nodes), view.MostNames)], " "),
			map[bool]string{true: "it", false: "them"}[len(nodes) == 1])
	}
}
