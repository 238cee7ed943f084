package plugin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/cmdutil"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/document"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/view"
)

// rollbackOptions are the flags of rollback.
type rollbackOptions struct {
	*cmdutil.Factory
	changeOptions
	to string // a revision, a configuration or local
}

func newRollback(f *cmdutil.Factory) *cobra.Command {
	o := &rollbackOptions{Factory: f}
	command := &cobra.Command{
		Use:   "rollback (NODE... | -l SELECTOR)",
		Short: "Assign again what was assigned before, and was good",
		Long: `Assign again what was assigned to each node before, by the record that history shows: the newest assignment that differs from the current
one, and that the node neither refused nor rejected nor rolled back. With --to, a revision of the history of the one node, or a configuration.

Each node goes back to its own. With -l so does a node that never got the bad one: it goes one too far. Typed twice, it may return to the one that it
left. Name the nodes that are assigned the bad one, or the configuration with --to. What would change is shown first, and asked.`,
		Example: `  kubectl kubelet rollback n1
  kubectl kubelet rollback n1 --to 3
  kubectl kubelet rollback -l pool=workers --parallel 5`,
		ValidArgsFunction: f.CompleteNodes,
		RunE:              cmdutil.RunE(o),
	}
	command.Flags().StringVar(&o.to, "to", "", "a revision of history (of one node), or [NAMESPACE/]NAME[/KEY], or local")
	o.addFlags(command)
	return command
}

// Run assigns to each node its previous configuration.
func (o *rollbackOptions) Run(ctx context.Context) error {
	client, err := o.Connect()
	if err != nil {
		return err
	}
	views, err := o.chosen.Nodes(ctx, client)
	if err != nil {
		return err
	}
	if _, err := strconv.Atoi(o.to); err == nil && len(views) > 1 {
		return errors.New("--to with a number is a revision of one node's history; name that node alone, or give --to a configuration")
	}
	// Nodes with the same target are shown and granted together.
	var order []nodev1.Assignment
	groups := map[nodev1.Assignment][]view.Node{}
	var left []error
	for _, v := range views {
		wanted, err := rollbackTarget(o.Factory, v, o.to)
		if err != nil {
			left = append(left, err)
			continue
		}
		if groups[wanted] == nil {
			order = append(order, wanted)
		}
		groups[wanted] = append(groups[wanted], v)
	}
	var targets []target
	for _, wanted := range order {
		t, err := findTarget(ctx, client, wanted, o.changeOptions)
		if err != nil {
			left = append(left, err)
			continue
		}
		t.views = groups[wanted]
		targets = append(targets, t)
	}
	if len(targets) == 0 {
		return errors.Join(left...)
	}
	for _, err := range left {
		o.Note("left as it is: %v", err)
	}
	return errors.Join(append(left, changeNodes(ctx, o.Factory, client, o.changeOptions, targets, "Roll back"))...)
}

// rollbackTarget returns what a node goes back to.
func rollbackTarget(f *cmdutil.Factory, v view.Node, to string) (nodev1.Assignment, error) {
	revision, err := strconv.Atoi(to)
	if to != "" && err != nil {
		return document.ParseReference(to, f.Namespace())
	}
	entries, err := v.Record()
	if err != nil {
		return nodev1.Assignment{}, err
	}
	if to == "" {
		if revision, err = previous(v, entries); err != nil {
			return nodev1.Assignment{}, err
		}
	}
	if revision < 1 || revision > len(entries) {
		return nodev1.Assignment{}, fmt.Errorf("node %s has no revision %d; see kubectl kubelet history %s", v.Name, revision, v.Name)
	}
	found := entries[revision-1]
	when := "made by hand"
	if !found.Time.IsZero() {
		when = "of " + found.Time.Format(time.RFC3339)
	}
	f.Note("%s: back to revision %d, %s: %s", v.Name, revision, when, found.Short())
	r, _ := nodev1.ParseAssignment(found.Source) // DecodeRecord keeps no others
	return r, nil
}

// previous returns the revision of the newest entry that differs from the current assignment, and was good. If
// none is known to have been good, it returns the newest that was not bad.
func previous(v view.Node, entries []view.Entry) (int, error) {
	var bad []string
	if now, ok := v.Current(); ok {
		bad = append(bad, now.String())
	}
	unproven := 0
	for i := len(entries) - 1; i >= 0; i-- {
		e := entries[i]
		switch {
		case slices.ContainsFunc(bad, func(source string) bool { return view.SameSource(source, e.Source) }):
		case slices.Contains(view.BadOutcomes, e.Outcome):
			bad = append(bad, e.Source)
		case slices.Contains(view.GoodOutcomes, e.Outcome) || v.LastKnownGoodIs(e.Source):
			return i + 1, nil
		case unproven == 0:
			unproven = i + 1
		}
	}
	if unproven != 0 {
		return unproven, nil
	}
	if len(entries) == 0 {
		return 0, fmt.Errorf("nothing was assigned to node %s with this plugin, so what to go back to is not known; name it with --to, or use kubectl kubelet reset", v.Name)
	}
	return 0, fmt.Errorf("node %s: no other assignment is recorded that was not refused or rejected; name a configuration with --to, or use kubectl kubelet reset", v.Name)
}
