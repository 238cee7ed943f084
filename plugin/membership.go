package plugin

import (
	"context"
	"slices"
	"strings"

	"k8s.io/client-go/kubernetes"

	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/api/v1alpha1"
	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/rollout"
	"github.com/kubelet-supervisor/kubelet-supervisor/internal/bounded"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/document"
)

// mark is what a pool has assigned to the node.
func (v nodeView) mark() rollout.Mark {
	return rollout.ParseMark(v.Annotations[rollout.MarkAnnotation])
}

// memberOf names the pool whose assignment the node has; "" where there is none, or a person has assigned something else since.
func (v nodeView) memberOf() string {
	node := rollout.ReadNode(v.Node)
	if !node.Mark.Records(node.Source) {
		return ""
	}
	return node.Mark.Pool
}

// heldOut: the label keeps it out of all pools.
func (v nodeView) heldOut() bool { return v.Labels[rollout.PoolLabel] == noPool }

// poolText names the pool that assigned the node something, and says whether it is still in its hands.
func (v nodeView) poolText() string {
	switch name := bounded.Line(v.mark().Pool); {
	case name == "":
		return "<none>"
	case v.heldOut():
		return name + " (released)"
	case v.memberOf() == "":
		return name + " (by hand)"
	default:
		return name
	}
}

// takesOut says of which pool a change by hand takes nodes, for a pool leaves alone what a person has assigned or reset. Where pools may not
// be listed, the Nodes' marks tell.
func (s *session) takesOut(ctx context.Context, client kubernetes.Interface, targets []target) {
	pools, _ := s.listPools(ctx, client)
	core, out := poolsOf(pools), map[string][]string{}
	for _, t := range targets {
		for _, v := range t.views {
			if name := v.leaves(core, t.goal.wanted.IsLocal()); name != "" {
				out[name] = append(out[name], v.Name)
			}
		}
	}
	for _, name := range document.SortedKeys(out) {
		nodes := out[name]
		slices.Sort(nodes)
		s.note("This takes %s out of pool %s; kubectl kubelet rollout adopt %s gives %s back.", some(nodes, ", "), bounded.Line(name), strings.Join(nodes[:min(len(nodes), mostNames)], " "),
			map[bool]string{true: "it", false: "them"}[len(nodes) == 1])
	}
}

// leaves names the pool that the node is in now, and would not be in after an assignment by hand, or a reset.
func (v nodeView) leaves(pools []rollout.Pool, reset bool) string {
	if v.heldOut() {
		return ""
	}
	if name := v.memberOf(); name != "" {
		return name
	}
	node := rollout.ReadNode(v.Node)
	owners := rollout.Owners(pools, &node)
	if reset || len(owners) != 1 || node.Source != "" || node.Mark.Pool != "" {
		return ""
	}
	i := slices.IndexFunc(pools, func(p rollout.Pool) bool { return p.Name == owners[0] })
	if pools[i].Spec.Adoption == v1alpha1.AdoptNever {
		return ""
	}
	return owners[0] // its pool has not come to it yet
}
