package plugin

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/internal/bounded"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/cmdutil"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/view"
)

func newStatus(f *cmdutil.Factory) *cobra.Command {
	o := &statusOptions{Factory: f, print: genericclioptions.NewPrintFlags("")}
	command := &cobra.Command{
		Use:   "status [NODE...]",
		Short: "Show what nodes are assigned, what they run, and what they say about it",
		Long: `Show what nodes are assigned, what they run, and what they say about it.

A node is OK when its condition KubeletConfigOk is True and speaks of the assignment that stands, and the node is Ready. A node on which
no supervisor has written is OK while nothing is assigned to it.

With --exit-code the command ends with 0 when every node that was asked for is OK, with 1 when one is not, and with 2 when that is not known.`,
		Example: `  kubectl kubelet status
  kubectl kubelet status --not-ok
  kubectl kubelet status -l pool=workers --watch
  kubectl kubelet status n1 -o json`,
		ValidArgsFunction: f.CompleteNodes,
		RunE:              cmdutil.RunE(o),
	}
	command.Flags().StringVarP(&o.chosen.Selector, "selector", "l", "", "nodes by label")
	command.Flags().BoolVarP(&o.follow, "watch", "w", false, "go on, with a line for every change")
	command.Flags().BoolVar(&o.notOK, "not-ok", false, "only nodes that are not OK")
	command.Flags().BoolVar(&o.exitCode, exitCodeFlag, false, "end with 1 when a node is not OK, and with 2 for an error")
	o.print.AddFlags(command)
	command.Flags().Lookup("output").Usage = "wide, or one of: json, yaml, name, go-template, jsonpath and their variants"
	return command
}

// Complete takes the names of nodes.
func (o *statusOptions) Complete(_ *cobra.Command, arguments []string) error {
	o.chosen.Names = arguments
	return nil
}

// statusOptions are the flags of status.
type statusOptions struct {
	*cmdutil.Factory
	chosen          view.Selection
	follow          bool
	notOK, exitCode bool
	print           *genericclioptions.PrintFlags
}

// Validate refuses flags that contradict each other.
func (o *statusOptions) Validate() error {
	format := *o.print.OutputFormat
	switch {
	case o.follow && format != "" && format != "wide":
		return fmt.Errorf("--watch prints lines; leave out -o %s", format)
	case o.follow && (o.notOK || o.exitCode):
		return fmt.Errorf("--watch has no end to judge by; leave out --not-ok and --exit-code")
	}
	return o.chosen.Validate(false)
}

// Run prints the table, or the format of -o, and continues with --watch.
func (o *statusOptions) Run(ctx context.Context) error {
	client, err := o.Connect()
	if err != nil {
		return err
	}
	views, err := o.chosen.Nodes(ctx, client)
	if err != nil {
		return err
	}
	bad := slices.DeleteFunc(slices.Clone(views), view.Node.OK)
	if o.notOK {
		views = bad
	}
	if err := showStatus(ctx, o.Factory, client, *o, views); err != nil || !o.exitCode || len(bad) == 0 {
		return err
	}
	return errDiffers
}

func showStatus(ctx context.Context, f *cmdutil.Factory, client kubernetes.Interface, o statusOptions, views []view.Node) error {
	format := *o.print.OutputFormat
	wide := format == "wide"
	switch {
	case format != "" && !wide:
		return printViews(f, views, o.print, len(o.chosen.Names) == 1)
	case len(views) == 0 && o.notOK:
		f.Note("Every node is OK.")
		return nil
	case len(views) == 0 && !o.follow:
		f.Note("There are no nodes.")
		return nil
	}
	columns := statusColumns{wide, slices.ContainsFunc(views, func(v view.Node) bool { return v.Mark().Pool != "" })}
	if err := writeStatus(f, f.Out, views, columns, true); err != nil || !o.follow {
		return err
	}
	return followStatus(ctx, f, client, o.chosen, views, columns)
}

// statusColumns are the optional columns of status. pools is set if one of the nodes is in a pool.
type statusColumns struct{ wide, pools bool }

// add inserts the optional columns before the last one.
func (c statusColumns) add(row []string, kubelet, pool string) []string {
	last := len(row) - 1
	added := row[:last:last]
	if c.wide {
		added = append(added, kubelet)
	}
	if c.pools {
		added = append(added, pool)
	}
	return append(added, row[last])
}

// writeStatus writes the table, or only its rows without a header.
func writeStatus(f *cmdutil.Factory, to io.Writer, views []view.Node, columns statusColumns, header bool) error {
	t := view.NewTable(to)
	if header {
		t.Row(columns.add([]string{"NODE", "ASSIGNED", "ACTIVE", "LAST-KNOWN-GOOD", "OK", "AGE", "MESSAGE"}, "KUBELET", "POOL")...)
	}
	for _, v := range views {
		t.Row(columns.add(statusRow(f, v, columns.wide), v.Kubelet(), v.PoolText())...)
	}
	return t.Flush()
}

func statusRow(f *cmdutil.Factory, v view.Node, wide bool) []string {
	assigned := nodev1.Local
	if v.Says.Carrier != nodev1.CarrierNone {
		assigned = view.Shorten(bounded.Line(fmt.Sprintf("%q", v.Says.Assignment)), 80)
		if r, ok := v.Current(); ok {
			assigned = r.Unpinned().String()
		}
	}
	row := []string{v.Name, assigned, "<none>", "<none>", "<none>", "<none>", "no supervisor has met this node; see kubectl kubelet doctor " + v.Name}
	if v.Says.Supervised {
		row = []string{
			v.Name, assigned, bounded.Line(nodev1.AssignmentOf(v.Says.Config.Active).String()), bounded.Line(nodev1.AssignmentOf(v.Says.Config.LastKnownGood).String()),
			string(v.Wellness()), view.Age(f.Now(), v.LastSpoke()), v.Summary(wide),
		}
	}
	return row
}

// printViews prints the format of -o: the Nodes' names, or their views for programs. As kubectl get does, it
// prints the object if one node was named, else a List.
func printViews(f *cmdutil.Factory, views []view.Node, print *genericclioptions.PrintFlags, one bool) error {
	printer, err := print.ToPrinter()
	if err != nil {
		return err
	}
	if *print.OutputFormat == "name" {
		for _, v := range views {
			_, _ = fmt.Fprintln(f.Out, "node/"+v.Name)
		}
		return nil
	}
	var items []unstructured.Unstructured
	for _, v := range views {
		item, err := v.Unstructured()
		if err != nil {
			return err
		}
		items = append(items, unstructured.Unstructured{Object: item})
	}
	if one && len(items) == 1 {
		return f.PrintWhole(*print.OutputFormat, printer, &items[0])
	}
	return f.PrintWhole(*print.OutputFormat, printer, view.NewList(items))
}

// followStatus prints a row for every change, until ctx ends.
func followStatus(ctx context.Context, f *cmdutil.Factory, client kubernetes.Interface, chosen view.Selection, views []view.Node, columns statusColumns) error {
	options := metav1.ListOptions{LabelSelector: chosen.Selector}
	if len(chosen.Names) == 1 {
		options.FieldSelector = fields.OneTermEqualSelector("metadata.name", views[0].Name).String()
	}
	shown, wanted := map[string]string{}, map[string]bool{}
	key := func(v view.Node) string {
		return fmt.Sprint(v.Says.Assignment, v.Says.Carrier, v.Annotations[nodev1.ConfigStatusAnnotation], v.Says.Status.News(), v.Ready(), v.PoolText())
	}
	for _, v := range views {
		shown[v.Name], wanted[v.Name] = key(v), true
	}
	nodes, version, err := view.ListNodes(ctx, client, options) // its version, to watch from; changes since are shown
	if err != nil {
		return err
	}
	show := func(node *corev1.Node) error {
		v := view.NodeOf(node)
		if len(chosen.Names) > 0 && !wanted[v.Name] || shown[v.Name] == key(v) {
			return nil
		}
		shown[v.Name] = key(v)
		return writeStatus(f, f.Out, []view.Node{v}, columns, false)
	}
	for i := range nodes {
		if err := show(&nodes[i]); err != nil {
			return err
		}
	}
	watcher, err := watchtools.NewRetryWatcherWithContext(ctx, version, &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.LabelSelector, o.FieldSelector = options.LabelSelector, options.FieldSelector
			return client.CoreV1().Nodes().Watch(ctx, o)
		},
	})
	if err != nil {
		return fmt.Errorf("watching nodes: %w", err)
	}
	defer watcher.Stop()
	for event := range watcher.ResultChan() {
		if node, is := event.Object.(*corev1.Node); is && event.Type != watch.Deleted {
			if err := show(node); err != nil {
				return err
			}
		}
	}
	if ctx.Err() != nil {
		return nil // the user interrupted the command
	}
	return fmt.Errorf("watching nodes: the API server ended the watch; begin again")
}
