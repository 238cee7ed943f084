package rollout

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/rollout"
	"github.com/kubelet-supervisor/kubelet-supervisor/internal/bounded"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/cmdutil"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/view"
)

// A rolloutView is a pool with its nodes and revisions. The pool's status has the number of nodes of each class;
// which nodes these are is computed from the Nodes, by the controller's own rules.
type rolloutView struct {
	pool
	now    time.Time
	view   rollout.View
	kept   []view.Revision
	nodes  map[string]view.Node
	unseen error // why nodes or revisions cannot be read
}

func viewOf(ctx context.Context, f *cmdutil.Factory, client kubernetes.Interface, pools dynamic.ResourceInterface, p pool) rolloutView {
	story := rolloutView{pool: p, now: f.Now(), nodes: map[string]view.Node{}}
	if story.kept, story.unseen = view.ReadRevisions(ctx, client, p.Name); story.unseen != nil {
		return story
	}
	w := rollout.World{Now: story.now}
	if w.Pools, story.unseen = allPools(ctx, pools, p, story.kept); story.unseen != nil {
		return story
	}
	list, _, err := view.ListNodes(ctx, client, metav1.ListOptions{LabelSelector: metav1.FormatLabelSelector(&p.Spec.Selector)})
	if story.unseen = err; err != nil {
		return story
	}
	for i := range list {
		story.nodes[list[i].Name] = view.NodeOf(&list[i])
		w.Nodes = append(w.Nodes, rollout.ReadNode(&list[i]))
	}
	story.view = rollout.Look(w, p.Name)
	return story
}

// allPools returns the pools in the form of package rollout, because another pool may own some of the nodes.
func allPools(ctx context.Context, api dynamic.ResourceInterface, p pool, kept []view.Revision) ([]rollout.Pool, error) {
	read := []rollout.Pool{rollout.ReadPool(p.KubeletPool, view.CoreRevisions(kept), time.LoadLocation)}
	list, err := api.List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("listing pools: %w", err)
	}
	for i := range list.Items {
		other, err := view.PoolOf(&list.Items[i])
		if err != nil {
			return nil, err
		}
		if other.Name != p.Name {
			read = append(read, rollout.ReadPool(other.KubeletPool, nil, time.LoadLocation))
		}
	}
	return read, nil
}

func (p rolloutView) write(to io.Writer) {
	_, _ = fmt.Fprintf(to, "%s: %s\n", p.Name, p.headline())
	if p.Status.Target == nil {
		return
	}
	_, _ = fmt.Fprintf(to, "  %s%s\n", p.countText(), p.unavailableText())
	var waves bytes.Buffer
	p.writeWaves(&waves)
	_, _ = to.Write(waves.Bytes())
	for _, line := range []string{p.skipped(), p.waits(), p.stalled(), p.pinned(), p.unknown()} {
		if line != "" {
			_, _ = fmt.Fprintln(to, "  "+line)
		}
	}
}

func (p rolloutView) headline() string {
	ready := p.Condition(v1alpha1.ConditionReady)
	t := p.Status.Target
	switch {
	case t == nil && ready == nil:
		return "no controller has looked at it yet; is kubelet-supervisor-controller running?"
	case t == nil:
		return "no revision yet: " + bounded.Line(ready.Reason+": "+ready.Message)
	}
	words := t.Text()
	if change := p.changeOfTarget(); change != "" {
		words += " (" + change + ")"
	}
	switch w := p.Status.Wave; {
	case !p.Observed():
		words += ", and a change of the pool that the controller has not seen yet"
	case p.Stopped() != nil:
		words += fmt.Sprintf(", stopped, attempt %d", t.Attempt)
	case ready != nil && ready.Reason != rollout.ReasonCompleted && ready.Reason != rollout.ReasonRolling:
		words += ", " + bounded.Line(ready.Reason+": "+ready.Message)
	case w != nil:
		words += fmt.Sprintf(", wave %d of %d, attempt %d", w.Number, max(int(w.Number), len(p.view.Waves)), t.Attempt)
	case ready != nil && ready.Status == metav1.ConditionTrue:
		words += ", completed"
	}
	return words
}

// changeOfTarget returns what the target changes against the stable revision.
func (p rolloutView) changeOfTarget() string {
	t := p.Status.Target
	to := p.keptAs(t.RevisionName)
	if to == nil {
		return ""
	}
	var from *rollout.Revision
	if s := p.Status.Stable; s != nil && s.Hash != t.Hash {
		from = p.keptAs(*s)
	}
	return view.ChangeText(from, to, 3)
}

// keptAs returns a stored revision; nil if there is none, as for the nodes' own configuration.
func (p rolloutView) keptAs(name v1alpha1.RevisionName) *rollout.Revision {
	for i := range p.kept {
		if r := &p.kept[i]; r.Number == name.Revision && r.Hash == name.Hash && !r.Tampered {
			return &r.Revision
		}
	}
	return nil
}

// countText returns the number of nodes of each class, as the controller counts them.
func (p pool) countText() string {
	n := p.Status.Nodes
	words := []string{}
	for _, c := range []struct {
		count int32
		word  string
		shown bool
	}{
		{n.Old, "old", false}, {n.Late, "late", false}, {n.Joining, "joining", false}, {n.Applying, "applying", false}, {n.Waiting, "waiting for pods", false},
		{n.OnTrial, "on trial", false}, {n.Blocked, "blocked", false}, {n.Proven, "proven", true}, {n.Failed, "failed", true},
	} {
		if c.count > 0 || c.shown {
			words = append(words, fmt.Sprintf("%d %s", c.count, c.word))
		}
	}
	return view.NodeCount(int(n.Selected)) + ": " + strings.Join(words, ", ")
}

func (p rolloutView) unavailableText() string {
	count := p.Status.Nodes.Unavailable
	if p.unseen != nil {
		return fmt.Sprintf("; %d unavailable", count)
	}
	text := fmt.Sprintf("; %d of %d unavailable", count, p.view.MaxUnavailable)
	var who []string
	for _, m := range p.view.Members {
		if m.Unavailable {
			who = append(who, m.Node.Name+" "+p.unavailableReason(m))
		}
	}
	if len(who) > 0 {
		text += " (" + view.FirstOf(who, ", ") + ")"
	}
	return text
}

// unavailableReason returns why a node counts as unavailable.
func (p rolloutView) unavailableReason(m rollout.Member) string {
	switch {
	case !m.Node.Ready:
		for _, c := range p.nodes[m.Node.Name].Status.Conditions {
			if c.Type == "Ready" && !c.LastTransitionTime.IsZero() {
				return "NotReady " + duration.HumanDuration(p.now.Sub(c.LastTransitionTime.Time))
			}
		}
		return "NotReady"
	case m.Node.Cordoned:
		return "cordoned"
	case m.Node.Draining:
		return "being drained"
	case m.Class == rollout.Waiting:
		return "may apply at any moment"
	case m.Class == rollout.Applying:
		return "applying"
	}
	return cmp.Or(bounded.Line(m.Node.Reason), "changing")
}

// names returns the names of the members of a class.
func (p rolloutView) names(of ...rollout.Class) (names []string) {
	for _, m := range p.view.Members {
		if slices.Contains(of, m.Class) {
			names = append(names, m.Node.Name)
		}
	}
	return names
}

// skipped counts and names the nodes that the pool does not change.
func (p rolloutView) skipped() string {
	n := p.Status.Nodes
	var words []string
	for _, c := range []struct {
		count int32
		word  string
		class rollout.Class
	}{
		{n.Held, "held", rollout.Held}, {n.Skipped, "cordoned or updated by others", rollout.Skipped}, {n.Manual, "manual", rollout.Manual},
		{n.Unsupervised, "without a supervisor that knows layers", rollout.Unsupervised}, {n.Leaving, "leaving", rollout.Leaving}, {n.Conflict, "in several pools", ""},
	} {
		if c.count == 0 {
			continue
		}
		text := fmt.Sprintf("%d %s", c.count, c.word)
		if names := p.names(c.class); len(names) > 0 {
			text += " (" + view.FirstOf(p.byWhom(names), ", ") + ")"
		}
		words = append(words, text)
	}
	if len(words) == 0 {
		return ""
	}
	return "not moved: " + strings.Join(words, ", ")
}

// byWhom adds which user assigned something to a manual node, if the record on the Node has it.
func (p rolloutView) byWhom(names []string) []string {
	told := slices.Clone(names)
	for i, name := range names {
		v := p.nodes[name]
		entries, err := v.Record()
		if last := len(entries) - 1; err == nil && last >= 0 && entries[last].By != "" {
			if now, ok := v.Current(); ok && view.SameSource(entries[last].Source, now.String()) {
				told[i] += ", by " + bounded.Line(entries[last].By)
			}
		}
	}
	return told
}

// waits returns why nothing new is assigned.
func (p rolloutView) waits() string {
	c := p.Condition(v1alpha1.ConditionProgressing)
	if c == nil || !p.Observed() || c.Status == metav1.ConditionTrue || c.Reason == rollout.ReasonCompleted || p.Stopped() != nil {
		return ""
	}
	switch c.Reason {
	case rollout.ReasonPaused:
		return "paused: kubectl kubelet rollout resume " + p.Name
	case rollout.ReasonHeld:
		return "held, and continues automatically: " + bounded.Line(c.Message)
	}
	return bounded.Line(c.Reason + ": " + c.Message)
}

// standing returns on one line where the rollout is, and which nodes it waits for.
func (p rolloutView) standing() string {
	words := []string{p.headline(), p.countText()}
	for _, line := range []string{p.waitsFor(), p.waits(), p.stalled(), p.unknown()} {
		if line != "" {
			words = append(words, line)
		}
	}
	return strings.Join(words, "; ")
}

// waitsFor names the nodes that have not given a final answer.
func (p rolloutView) waitsFor() string {
	var who []string
	for _, c := range []struct {
		class rollout.Class
		word  string
	}{
		{rollout.Blocked, "blocked"}, {rollout.Waiting, "waiting for pods"}, {rollout.Applying, "applying"}, {rollout.OnTrial, "on trial"},
		{rollout.Joining, "joining"}, {rollout.Late, "late"},
	} {
		if names := p.names(c.class); len(names) > 0 {
			who = append(who, fmt.Sprintf("%s (%s)", view.FirstOf(names, ", "), c.word))
		}
	}
	if len(who) == 0 {
		return ""
	}
	return "it waits for " + strings.Join(who, ", ")
}

// stalled returns what users have to fix, apart from a stop.
func (p rolloutView) stalled() string {
	c := p.Condition(v1alpha1.ConditionStalled)
	if c == nil || c.Status != metav1.ConditionTrue || c.Reason == rollout.ReasonStopped {
		return ""
	}
	return "stalled: " + bounded.Line(c.Reason+": "+c.Message)
}

func (p rolloutView) pinned() string {
	if pin := p.Spec.Rollout.Pin; pin != nil {
		return fmt.Sprintf("pinned to %s, whatever its layers say: kubectl kubelet rollout unpin %s", pin.Name().Text(), p.Name)
	}
	return ""
}

func (p rolloutView) unknown() string {
	if p.unseen != nil {
		return "which nodes these are is not known: " + bounded.Line(p.unseen.Error())
	}
	return ""
}
