package plugin

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/rollout"
	"github.com/kubelet-supervisor/kubelet-supervisor/internal/bounded"
	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/document"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/view"
)

// allocatableFields affect a node's allocatable resources. An autoscaler takes those of a new node from a
// template, which does not know these fields.
var allocatableFields = []string{"evictionHard", "kubeReserved", "maxPods", "podsPerCore", "reservedMemory", "reservedSystemCPUs", "systemReserved"}

// changes returns the changes against the pool's current target; a pool that does not exist has an empty one.
func (d draft) changes() []view.LayerChange { return view.Changes(d.from(), d.then.Target) }

func (d draft) from() *rollout.Revision { return d.now.Target }

func (d draft) sameRevision() bool {
	return d.now.Known && d.now.Name == d.then.Name
}

func (d draft) changesNothing() bool {
	joins, leaves := d.movers()
	return d.is != nil && d.sameRevision() && len(joins)+len(leaves) == 0
}

// movers returns the nodes that would become members, and the members that would leave.
func (d draft) movers() (joins, leaves []string) {
	members := func(v rollout.View) (names []string) {
		for _, m := range v.Members {
			names = append(names, m.Node.Name)
		}
		return names
	}
	now, then := members(d.now), members(d.then)
	joins = slices.DeleteFunc(slices.Clone(then), func(name string) bool { return slices.Contains(now, name) })
	leaves = slices.DeleteFunc(slices.Clone(now), func(name string) bool { return slices.Contains(then, name) })
	return joins, leaves
}

func (d draft) write(to io.Writer) {
	line := func(format string, values ...any) { _, _ = fmt.Fprintf(to, format+"\n", values...) }
	d.writeRevision(to)
	joins, leaves := d.movers()
	if d.is != nil && len(joins) > 0 {
		line("  nodes that come: %s", view.FirstOf(joins, ", "))
	}
	if len(leaves) > 0 {
		line("  nodes that leave, and keep what they have: %s", view.FirstOf(leaves, ", "))
	}
	d.writeWarnings(to)
	if d.sameRevision() {
		if d.changesNothing() {
			line("  Nothing would move.")
		}
		return
	}
	d.writeWaves(to)
}

func (d draft) writeRevision(to io.Writer) {
	against := "the nodes' own configuration"
	if from := d.from(); from != nil {
		against = d.now.Name.Text()
	}
	if d.sameRevision() {
		_, _ = fmt.Fprintf(to, "%s: %s, as it is now\n", d.wanted.Name, d.then.Name.Text())
		return
	}
	_, _ = fmt.Fprintf(to, "%s: %s, against %s:\n", d.wanted.Name, d.then.Name.Text(), against)
	changes := d.changes()
	for i, c := range changes {
		mark := " "
		if document.GivesRoot(c.Path) {
			mark = "!"
		}
		_, _ = fmt.Fprintf(to, "%s %s (layer %s)\n", mark, c, c.Layer)
		words := document.Change{Path: c.Path}.Consequence()
		if i+1 == len(changes) || (document.Change{Path: changes[i+1].Path}).Consequence() != words {
			_, _ = fmt.Fprintln(to, "      "+words)
		}
	}
	if len(changes) == 0 && d.from() != nil && d.then.Target != nil {
		_, _ = fmt.Fprintln(to, "  "+cmp.Or(view.OtherDifferences(d.from(), d.then.Target), "the same fields"))
	}
}

// writeWarnings prints consequences that users may not expect.
func (d draft) writeWarnings(to io.Writer) {
	warn := func(format string, values ...any) { _, _ = fmt.Fprintf(to, "  warning: "+format+"\n", values...) }
	var allocatable []string
	for _, c := range d.changes() {
		if top, _, _ := strings.Cut(c.Path, "."); !d.sameRevision() && slices.Contains(allocatableFields, top) && !slices.Contains(allocatable, top) {
			allocatable = append(allocatable, top)
		}
	}
	if len(allocatable) > 0 {
		warn("%s changes what a node has for pods; the template of an autoscaled group does not know that", strings.Join(allocatable, ", "))
	}
	if r := d.then.Target; r != nil && !d.sameRevision() {
		layers := kubeletconfig.Layers{Base: string(r.Base)}
		for i := range r.Layers {
			tree, err := kubeletconfig.Decode(r.Layers[i].Patch)
			if err != nil {
				continue
			}
			normal, err := document.Normalize(tree)
			if err != nil {
				warn("layer %s %s", r.Layers[i].Name, bounded.Line(err.Error()))
				continue
			}
			if masked := kubeletconfig.MaskedFields(tree); len(masked) > 0 {
				warn("layer %s: %s is masked (%s), so it is not the value", r.Layers[i].Name, view.FirstOf(masked, ", "), kubeletconfig.Mask)
			}
			layers.Layers = append(layers.Layers, kubeletconfig.Layer{Name: r.Layers[i].Name, Patch: normal})
		}
		for _, trap := range layers.Traps(nil) {
			warn("%s", bounded.Line(trap))
		}
	}
	if d.pinned != nil {
		warn("the pool is pinned to %s, so its layers have no effect; kubectl kubelet rollout unpin %s", d.pinned.Name().Text(), d.wanted.Name)
	}
	if d.is != nil && d.is.Spec.Rollout.Paused {
		warn("the pool is paused; kubectl kubelet rollout resume %s", d.wanted.Name)
	}
	for _, stop := range d.wanted.Status.Stops {
		if stop.Hash == d.then.Name.Hash {
			warn("this content was stopped before: %s; it is not tried again without kubectl kubelet rollout retry %s", view.StopText(stop), d.wanted.Name)
		}
	}
	if d.then.Conflicts > 0 {
		warn("%d nodes are selected by another pool with the same priority, too; no pool moves them", d.then.Conflicts)
	}
}

// writeWaves prints which nodes the revision would reach, in which waves.
func (d draft) writeWaves(to io.Writer) {
	kinds, left := map[string]int{}, map[rollout.Class][]string{}
	for _, m := range d.then.Members {
		switch m.Class {
		case rollout.Held, rollout.Skipped, rollout.Manual, rollout.Unsupervised, rollout.Leaving:
			left[m.Class] = append(left[m.Class], m.Node.Name)
		default:
			kinds[m.Minor+"/"+m.Node.Arch+"/"+m.Layers]++
		}
	}
	_, _ = fmt.Fprintf(to, "  %s, at most %d unavailable at once:\n", view.NodeCount(len(d.then.Members)), d.then.MaxUnavailable)
	t := view.NewTable(to)
	for _, kind := range document.SortedKeys(kinds) {
		t.Row("    "+bounded.Line(kind), view.NodeCount(kinds[kind]))
	}
	before := 0
	for i, wave := range d.then.Waves {
		text := view.NodeCount(wave.Goal)
		switch {
		case d.then.Completed:
			text = "all of them, since all kinds of nodes have completed it before"
		case wave.Goal == before:
			text += ", no more than before"
		case before > 0:
			text += fmt.Sprintf(", %d more", wave.Goal-before)
		}
		if wave.Soak > 0 && !d.then.Completed {
			text += fmt.Sprintf(", soaks for %s", wave.Soak)
		}
		t.Row(fmt.Sprintf("    wave %d %s", i+1, cmp.Or(wave.Name, wave.Nodes)), text)
		before = wave.Goal
	}
	_ = t.Flush()
	d.writeLimits(to)
	for _, class := range rollout.Classes() {
		if names := left[class]; len(names) > 0 {
			_, _ = fmt.Fprintf(to, "  not moved: %s %s\n", strings.ToLower(string(class)), view.FirstOf(names, ", "))
		}
	}
}

// writeLimits prints what else a rollout waits for: a window, and other zones.
func (d draft) writeLimits(to io.Writer) {
	if d.then.Completed {
		return // the way back waits for neither
	}
	switch {
	case d.then.Closed && d.then.Opens.IsZero():
		_, _ = fmt.Fprintln(to, "  no window ever opens")
	case d.then.Closed:
		_, _ = fmt.Fprintf(to, "  no window is open before %s\n", d.then.Opens.UTC().Format(time.RFC3339))
	}
	if d.then.Topology == "" {
		return
	}
	domains := map[string]int{}
	for _, m := range d.then.Members {
		domains[cmp.Or(bounded.Line(m.Node.Labels[d.then.Topology]), "without the label")]++
	}
	var words []string
	for _, name := range document.SortedKeys(domains) {
		words = append(words, fmt.Sprintf("%s (%s)", name, view.NodeCount(domains[name])))
	}
	_, _ = fmt.Fprintf(to, "  not proven in at most %d at a time of %s: %s\n", d.then.MaxDomains, d.then.Topology, view.FirstOf(words, ", "))
}
