package rollout

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/rollout"
	"github.com/kubelet-supervisor/kubelet-supervisor/internal/bounded"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/view"
)

// writeWaves prints the progress of each wave that was begun: the canaries of the first, and the nodes at risk of
// the open one.
func (p rolloutView) writeWaves(to io.Writer) {
	open := p.Status.Wave
	if open == nil || p.unseen != nil {
		return
	}
	t := view.NewTable(to)
	for i, wave := range p.view.Waves[:min(int(open.Number), len(p.view.Waves))] {
		number, goal := int32(i+1), wave.Goal
		state, who := "proven", ""
		reached := min(int(p.Status.Nodes.Proven), goal)
		if number == open.Number {
			goal = int(open.Goal)
			reached = min(int(p.Status.Nodes.Proven), goal)
			state, who = p.openWave(wave)
		}
		if number == 1 {
			who = strings.Join(slices.DeleteFunc([]string{p.canaries(goal), who}, func(s string) bool { return s == "" }), "   ")
		}
		t.Row(fmt.Sprintf("  wave %d %s", number, cmp.Or(wave.Name, wave.Nodes)), fmt.Sprintf("%d of %d", reached, goal), state, who)
	}
	_ = t.Flush()
}

// openWave returns what the open wave waits for, and which nodes are at risk.
func (p rolloutView) openWave(wave rollout.ViewedWave) (state, who string) {
	n := p.Status.Nodes
	switch c := p.Condition(v1alpha1.ConditionProgressing); {
	case p.Stopped() != nil:
		state = "stopped"
	case c != nil && c.Reason == rollout.ReasonSoaking:
		state = fmt.Sprintf("soaks for %s", wave.Soak)
	case n.OnTrial > 0:
		state = "on trial"
	case n.Applying > 0:
		state = "applying"
	case n.Waiting > 0:
		state = "waiting for pods"
	default:
		state = "open"
	}
	var parts []string
	if names := p.names(rollout.OnTrial); len(names) > 0 && n.OnTrial > 0 {
		text := ""
		if p.Status.Wave.Number > 1 { // the canaries are already named
			text = view.FirstOf(names, " ") + ", "
		}
		if left := p.trialLeft(names); left > 0 {
			text += "at most " + left.Round(time.Second).String() + " more"
		}
		parts = append(parts, strings.TrimSuffix(text, ", "))
	}
	for _, other := range []struct {
		class rollout.Class
		verb  string
	}{{rollout.Applying, "applying"}, {rollout.Waiting, "waiting"}, {rollout.Blocked, "blocked"}, {rollout.Failed, "failed"}} {
		if names := p.names(other.class); len(names) > 0 {
			parts = append(parts, other.verb+": "+view.FirstOf(names, " "))
		}
	}
	return state, strings.Join(parts, "; ")
}

// trialLeft returns the most that is left of a trial of these nodes.
func (p rolloutView) trialLeft(names []string) (most time.Duration) {
	for _, name := range names {
		left, _ := p.nodes[name].TrialLeft(p.now)
		most = max(most, left)
	}
	return most
}

// canaries returns the nodes that got the target first, with the kind that each of them proves it for. The API
// server records on a Node when the controller last wrote it.
func (p rolloutView) canaries(count int) string {
	type assigned struct {
		rollout.Member
		at time.Time
	}
	var all []assigned
	for _, m := range p.view.Members {
		if !m.OnTarget {
			continue
		}
		at := assignedAt(p.nodes[m.Node.Name].Node)
		if at.IsZero() {
			return ""
		}
		all = append(all, assigned{m, at})
	}
	slices.SortStableFunc(all, func(a, b assigned) int { return a.at.Compare(b.at) })
	var words []string
	for _, m := range all[:min(count, len(all))] {
		words = append(words, fmt.Sprintf("%s/%s: %s", m.Minor, m.Node.Arch, m.Node.Name))
	}
	return view.FirstOf(words, "   ")
}

// assignedAt returns when a pool's mark was last written; zero if the API server does not report it.
func assignedAt(node *corev1.Node) (at time.Time) {
	for _, entry := range node.ManagedFields {
		if entry.FieldsV1 != nil && entry.Time != nil && strings.Contains(entry.FieldsV1.GetRawString(), `"f:`+rollout.MarkAnnotation+`"`) && entry.Time.After(at) {
			at = entry.Time.Time
		}
	}
	return at
}

// stopError returns the error for a stop: which node and its message, the state of the other nodes, and what the
// user can do.
func (p rolloutView) stopError(stop v1alpha1.Stop) error {
	wave := ""
	if w := p.Status.Wave; w != nil {
		wave = fmt.Sprintf(" in wave %d", w.Number)
	}
	lines := []string{fmt.Sprintf("pool %q stopped%s: %s", p.Name, wave, view.StopText(stop))}
	if words := p.harm(stop); words != "" {
		lines = append(lines, words)
	}
	layers := "its layers"
	if p.Status.Target != nil {
		if names := p.changedLayers(); len(names) == 1 {
			layers = "layer " + names[0]
		}
	}
	lines = append(lines, fmt.Sprintf("kubectl kubelet rollout undo %s     or change %s; the same content is not tried again without kubectl kubelet rollout retry %s",
		p.Name, layers, p.Name))
	return view.MultilineError(lines)
}

// harm returns what the node that stopped the revision runs, and how many other nodes the revision has reached.
func (p rolloutView) harm(stop v1alpha1.Stop) string {
	if p.unseen != nil {
		return ""
	}
	var words []string
	others, touched := 0, 0
	for _, m := range p.view.Members {
		switch {
		case m.Node.Name == stop.Node:
			words = append(words, fmt.Sprintf("%s runs %s", stop.Node, p.runs(m)))
		case m.OnTarget:
			others, touched = others+1, touched+1
		default:
			others++
		}
	}
	switch {
	case others == 0:
	case touched == 0:
		words = append(words, fmt.Sprintf("the other %d nodes were not touched", others))
	default:
		words = append(words, fmt.Sprintf("of the other %d nodes %d have it already, and no more get it", others, touched))
	}
	return strings.Join(words, "; ")
}

// runs returns which revision a node runs.
func (p rolloutView) runs(m rollout.Member) string {
	good := ""
	if m.Node.Active == m.Node.Good {
		good = ", its last known good"
	}
	if m.Node.Active == nodev1.Local || m.Node.Active == "" {
		return "its own configuration"
	}
	for i := range p.kept {
		if r := &p.kept[i]; !r.Tampered && r.SourceFor(m.Node.Labels) == m.Node.Active {
			return v1alpha1.RevisionName{Revision: r.Number}.Text() + good
		}
	}
	return bounded.Line(m.Node.Active) + good
}

// changedLayers returns the layers in which the target and the stable revision differ.
func (p rolloutView) changedLayers() (names []string) {
	to := p.keptAs(p.Status.Target.RevisionName)
	var from *rollout.Revision
	if s := p.Status.Stable; s != nil {
		from = p.keptAs(*s)
	}
	for _, c := range view.Changes(from, to) {
		if !slices.Contains(names, c.Layer) {
			names = append(names, c.Layer)
		}
	}
	return names
}
