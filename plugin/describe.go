package plugin

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/kubernetes"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/internal/bounded"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/cmdutil"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/view"
)

// describeOptions are the flags of describe.
type describeOptions struct {
	*cmdutil.Factory
	node  string
	print *genericclioptions.PrintFlags
}

func newDescribe(f *cmdutil.Factory) *cobra.Command {
	o := &describeOptions{Factory: f, print: genericclioptions.NewPrintFlags("")}
	command := &cobra.Command{
		Use:   "describe NODE",
		Short: "Tell the whole story of a node's configuration: sources, trial, the last change, errors, events",
		Example: `  kubectl kubelet describe n1
  kubectl kubelet describe n1 -o json`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: f.CompleteNodes,
		RunE:              cmdutil.RunE(o),
	}
	o.print.AddFlags(command)
	return command
}

// Complete takes the name of the node.
func (o *describeOptions) Complete(_ *cobra.Command, arguments []string) error {
	o.node = arguments[0]
	return nil
}

// Validate has nothing to refuse.
func (o *describeOptions) Validate() error {
	return nil
}

// Run reads the node and describes it.
func (o *describeOptions) Run(ctx context.Context) error {
	client, err := o.Connect()
	if err != nil {
		return err
	}
	v, err := view.GetNode(ctx, client, o.node)
	if err != nil {
		return err
	}
	if *o.print.OutputFormat != "" {
		return printViews(o.Factory, []view.Node{v}, o.print, true)
	}
	return describeNode(ctx, o.Factory, client, v)
}

func describeNode(ctx context.Context, f *cmdutil.Factory, client kubernetes.Interface, v view.Node) error {
	t := view.NewTable(f.Out)
	t.Row("Node:", v.Name)
	t.Row("Kubelet:", v.Kubelet(), map[bool]string{true: "Ready", false: "not Ready"}[v.Ready()])
	assignment := "nothing, so " + nodev1.Local
	if v.Says.Carrier != nodev1.CarrierNone {
		assignment = fmt.Sprintf("%s (by %s)", bounded.Line(v.Says.Assignment), map[nodev1.Carrier]string{nodev1.CarrierAnnotation: "annotation", nodev1.CarrierField: string(nodev1.CarrierField)}[v.Says.Carrier])
	}
	t.Row("Assignment:", assignment)
	if v.Mark().Pool != "" {
		t.Row("Pool:", v.PoolText())
	}
	if !v.Says.Supervised {
		t.Row("Supervisor:", "none has met this node; see kubectl kubelet doctor "+v.Name)
		return t.Flush()
	}
	t.Row("Seen:", cmp.Or(bounded.Line(v.Says.Status.Observed), "nothing assigned"))
	t.Row("Assigned:", view.SourceText(v.Says.Config.Assigned))
	t.Row("Active:", view.SourceText(v.Says.Config.Active))
	t.Row("Last known good:", view.SourceText(v.Says.Config.LastKnownGood))
	t.Row("Error:", cmp.Or(bounded.Line(v.Says.Config.Error), "none"))
	if v.Says.Problem != nil {
		t.Row("Problem:", v.Says.Problem.Error())
	}
	t.Row("KubeletConfigOk:", fmt.Sprintf("%s %s, said %s ago", v.Wellness(), cmp.Or(v.Reason(), "nothing"), view.Age(f.Now(), v.LastSpoke())))
	for _, line := range view.Wrap(v.Message(), view.LineWidth) {
		t.Row("", line)
	}
	if v.Says.Status.Trial != nil {
		t.Row("Trial:", v.TrialText(f.Now()))
	}
	for i, words := range v.ChangeText(f.Now()) {
		t.Row([]string{"Last change:", ""}[min(i, 1)], words)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	return describeEvents(ctx, f, client, v)
}

// describeEvents prints the supervisor's events; the API server forgets them after an hour.
func describeEvents(ctx context.Context, f *cmdutil.Factory, client kubernetes.Interface, v view.Node) error {
	selector := fields.Set{"involvedObject.kind": "Node", "involvedObject.name": v.Name}.AsSelector().String()
	list, err := client.CoreV1().Events(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{FieldSelector: selector})
	if err != nil {
		f.Note("Events cannot be read: %v", err)
		return nil
	}
	events := slices.DeleteFunc(list.Items, func(e corev1.Event) bool {
		return e.Source.Component != "kubelet-supervisor" && e.ReportingController != "kubelet-supervisor"
	})
	if len(events) == 0 {
		_, _ = fmt.Fprintln(f.Out, "Events:  none of the last hour")
		return nil
	}
	slices.SortStableFunc(events, func(a, b corev1.Event) int { return a.LastTimestamp.Compare(b.LastTimestamp.Time) })
	_, _ = fmt.Fprintln(f.Out, "Events:")
	t := view.NewTable(f.Out)
	for _, e := range events {
		t.Row("  "+view.Age(f.Now(), e.LastTimestamp.Time), e.Type, bounded.Line(e.Reason), bounded.Line(e.Message))
	}
	return t.Flush()
}
