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

// takesOut prints from which pools a manual change removes nodes, because a pool does not change what a user has
// assigned or reset. If the user may not list pools, the Nodes' marks are used.
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
