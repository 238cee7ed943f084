package plugin

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/internal/bounded"
)

func newStatus(s *session) *cobra.Command {
	var o statusOptions
	o.print = genericclioptions.NewPrintFlags("")
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
		ValidArgsFunction: s.completeNodes,
		RunE: func(command *cobra.Command, arguments []string) error {
			o.chosen.names = arguments
			if err := o.complete(); err != nil {
				return err
			}
			return s.status(command.Context(), o)
		},
	}
	command.Flags().StringVarP(&o.chosen.selector, "selector", "l", "", "nodes by label")
	command.Flags().BoolVarP(&o.follow, "watch", "w", false, "go on, with a line for every change")
	command.Flags().BoolVar(&o.notOK, "not-ok", false, "only nodes that are not OK")
	command.Flags().BoolVar(&o.exitCode, exitCodeFlag, false, "end with 1 when a node is not OK, and with 2 for an error")
	o.print.AddFlags(command)
	command.Flags().Lookup("output").Usage = "wide, or one of: json, yaml, name, go-template, jsonpath and their variants"
	return command
}

// statusOptions are the flags of status.
type statusOptions struct {
	chosen          selection
	follow          bool
	notOK, exitCode bool
	print           *genericclioptions.PrintFlags
}

func (o statusOptions) complete() error {
	format := *o.print.OutputFormat
	switch {
	case o.follow && format != "" && format != "wide":
		return fmt.Errorf("--watch prints lines; leave out -o %s", format)
	case o.follow && (o.notOK || o.exitCode):
		return fmt.Errorf("--watch has no end to judge by; leave out --not-ok and --exit-code")
	}
	return o.chosen.validate(false)
}

func (s *session) status(ctx context.Context, o statusOptions) error {
	client, err := s.connect()
	if err != nil {
		return err
	}
	views, err := o.chosen.nodes(ctx, client)
	if err != nil {
		return err
	}
	bad := slices.DeleteFunc(slices.Clone(views), nodeView.ok)
	if o.notOK {
		views = bad
	}
	if err := s.showStatus(ctx, client, o, views); err != nil || !o.exitCode || len(bad) == 0 {
		return err
	}
	return errDiffers
}

func (s *session) showStatus(ctx context.Context, client kubernetes.Interface, o statusOptions, views []nodeView) error {
	format := *o.print.OutputFormat
	wide := format == "wide"
	switch {
	case format != "" && !wide:
		return s.printViews(views, o.print, len(o.chosen.names) == 1)
	case len(views) == 0 && o.notOK:
		s.note("Every node is OK.")
		return nil
	case len(views) == 0 && !o.follow:
		s.note("There are no nodes.")
		return nil
	}
	columns := statusColumns{wide, slices.ContainsFunc(views, func(v nodeView) bool { return v.mark().Pool != "" })}
	if err := s.writeStatus(s.Out, views, columns, true); err != nil || !o.follow {
		return err
	}
	return s.followStatus(ctx, client, o.chosen, views, columns)
}

// ok tells whether a node runs what it is assigned, and says that all is well.
func (v nodeView) ok() bool {
	if !v.says.Supervised {
		return v.says.Carrier == nodev1.CarrierNone
	}
	return v.ready() && v.says.Answered() && v.wellness() == corev1.ConditionTrue
}

// statusColumns are those that a table of status need not have: with pools where one of its nodes is in a pool.
type statusColumns struct{ wide, pools bool }

// add puts them before the last column.
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

// writeStatus writes the table, or without a header only its rows.
func (s *session) writeStatus(to io.Writer, views []nodeView, columns statusColumns, header bool) error {
	t := newTable(to)
	if header {
		t.row(columns.add([]string{"NODE", "ASSIGNED", "ACTIVE", "LAST-KNOWN-GOOD", "OK", "AGE", "MESSAGE"}, "KUBELET", "POOL")...)
	}
	for _, v := range views {
		t.row(columns.add(s.statusRow(v, columns.wide), v.kubelet(), v.poolText())...)
	}
	return t.flush()
}

func (s *session) statusRow(v nodeView, wide bool) []string {
	assigned := nodev1.Local
	if v.says.Carrier != nodev1.CarrierNone {
		assigned = shorten(bounded.Line(fmt.Sprintf("%q", v.says.Assignment)), 80)
		if r, ok := v.current(); ok {
			assigned = r.Unpinned().String()
		}
	}
	row := []string{v.Name, assigned, "<none>", "<none>", "<none>", "<none>", "no supervisor has met this node; see kubectl kubelet doctor " + v.Name}
	if v.says.Supervised {
		row = []string{
			v.Name, assigned, bounded.Line(nodev1.AssignmentOf(v.says.Config.Active).String()), bounded.Line(nodev1.AssignmentOf(v.says.Config.LastKnownGood).String()),
			string(v.wellness()), age(s.now(), v.spoke()), v.summary(wide),
		}
	}
	return row
}

// summary is the reason, and why where that is no good news, without what other columns have: what runs, and what is assigned.
func (v nodeView) summary(whole bool) string {
	words := cmp.Or(v.reason(), "it does not say how it is")
	switch {
	case v.says.Problem != nil:
		words = v.says.Problem.Error()
	case !v.says.Answered():
		words = "waits for the supervisor, which has not spoken of this assignment yet"
	case whole:
		words += ": " + v.words()
	case v.why() != "":
		words += ": " + v.why()
	case v.shadowed() != "":
		words += "; " + v.shadowed()
	}
	if !v.ready() {
		words = "node is not Ready; " + words
	}
	if whole {
		return words
	}
	return shorten(words, 160)
}

// why says what the newest assignment has failed at, or waits for; nothing where all is well.
func (v nodeView) why() string {
	s := v.says.Status
	switch {
	case s.Reason == nodev1.ReasonWouldDisrupt && s.Hold != nil:
		return "waits for " + s.Hold.Text(mostPods)
	case s.Failure != nil:
		return s.Failure.Message
	case s.Change != nil && !s.Change.Due.IsZero():
		return "waits for its turn until " + s.Change.Due.Format(time.RFC3339)
	}
	return ""
}

// mostPods is how many pods are named that a change waits for; the rest is counted.
const mostPods = 5

// mostShadowed bounds the fields that are named in a line.
const mostShadowed = 10

// shadowed says which fields of the assigned configuration do not take effect; nothing where there are none. All may be well otherwise.
func (v nodeView) shadowed() string {
	fields := v.says.Status.Shadowed
	var list []string
	for _, field := range fields[:min(len(fields), mostShadowed)] {
		list = append(list, field.String())
	}
	switch more := len(fields) - len(list); {
	case more > 0:
		list = append(list, fmt.Sprintf("and %d more", more))
	case len(list) == 0:
		return ""
	}
	return "Shadowed: " + strings.Join(list, ", ")
}

// printViews prints what -o asks for: the Nodes' names, or what they say in a form for machines. As kubectl get does, it prints the object
// where one was named, else a List.
func (s *session) printViews(views []nodeView, print *genericclioptions.PrintFlags, one bool) error {
	printer, err := print.ToPrinter()
	if err != nil {
		return err
	}
	if *print.OutputFormat == "name" {
		for _, v := range views {
			_, _ = fmt.Fprintln(s.Out, "node/"+v.Name)
		}
		return nil
	}
	var items []unstructured.Unstructured
	for _, v := range views {
		item, err := v.machine()
		if err != nil {
			return err
		}
		items = append(items, unstructured.Unstructured{Object: item})
	}
	if one && len(items) == 1 {
		return s.printWhole(*print.OutputFormat, printer, &items[0])
	}
	return s.printWhole(*print.OutputFormat, printer, listOf(items))
}

// machine is a view in the form of a Kubernetes object, kind NodeKubeletConfig.
func (v nodeView) machine() (map[string]any, error) {
	config, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&v.says.Config)
	if err != nil {
		return nil, fmt.Errorf("writing the status of node %s: %w", v.Name, err)
	}
	condition, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&v.says.Condition)
	if err != nil {
		return nil, fmt.Errorf("writing the condition of node %s: %w", v.Name, err)
	}
	object := map[string]any{
		"apiVersion": "kubelet-supervisor.io/v1", "kind": "NodeKubeletConfig",
		"metadata":   map[string]any{"name": v.Name},
		"assignment": v.says.Assignment, "carrier": string(v.says.Carrier), "supervised": v.says.Supervised,
	}
	if name := v.mark().Pool; name != "" {
		object["pool"] = map[string]any{"name": name, "member": v.memberOf() != "" && !v.heldOut()}
	}
	if v.says.Supervised {
		object["observed"], object["config"], object["condition"] = v.says.Status.Observed, config, condition
		var status map[string]any
		if err := json.Unmarshal([]byte(v.says.Status.Encode()), &status); err != nil {
			return nil, fmt.Errorf("writing the status of node %s: %w", v.Name, err)
		}
		object["status"] = status
	}
	return object, nil
}

// followStatus prints a row for every change, until ctx ends.
func (s *session) followStatus(ctx context.Context, client kubernetes.Interface, chosen selection, views []nodeView, columns statusColumns) error {
	options := metav1.ListOptions{LabelSelector: chosen.selector}
	if len(chosen.names) == 1 {
		options.FieldSelector = fields.OneTermEqualSelector("metadata.name", views[0].Name).String()
	}
	shown, wanted := map[string]string{}, map[string]bool{}
	key := func(v nodeView) string {
		return fmt.Sprint(v.says.Assignment, v.says.Carrier, v.Annotations[nodev1.ConfigStatusAnnotation], v.says.Status.News(), v.ready(), v.poolText())
	}
	for _, v := range views {
		shown[v.Name], wanted[v.Name] = key(v), true
	}
	nodes, version, err := listNodes(ctx, client, options) // its version, to go on from; what changed since is shown
	if err != nil {
		return err
	}
	show := func(node *corev1.Node) error {
		v := viewOf(node)
		if len(chosen.names) > 0 && !wanted[v.Name] || shown[v.Name] == key(v) {
			return nil
		}
		shown[v.Name] = key(v)
		return s.writeStatus(s.Out, []nodeView{v}, columns, false)
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
		return nil // a person has seen enough
	}
	return fmt.Errorf("watching nodes: the API server ended the watch; begin again")
}
