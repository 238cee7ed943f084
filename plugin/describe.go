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

func newDescribe(s *cmdutil.Factory) *cobra.Command {
	print := genericclioptions.NewPrintFlags("")
	command := &cobra.Command{
		Use:   "describe NODE",
		Short: "Tell the whole story of a node's configuration: sources, trial, the last change, errors, events",
		Example: `  kubectl kubelet describe n1
  kubectl kubelet describe n1 -o json`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: s.CompleteNodes,
		RunE: func(command *cobra.Command, arguments []string) error {
			client, err := s.Connect()
			if err != nil {
				return err
			}
			v, err := view.GetNode(command.Context(), client, arguments[0])
			if err != nil {
				return err
			}
			if *print.OutputFormat != "" {
				return printViews(s, []view.Node{v}, print, true)
			}
			return runDescribe(command.Context(), s, client, v)
		},
	}
	print.AddFlags(command)
	return command
}

func runDescribe(ctx context.Context, s *cmdutil.Factory, client kubernetes.Interface, v view.Node) error {
	t := view.NewTable(s.Out)
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
	t.Row("KubeletConfigOk:", fmt.Sprintf("%s %s, said %s ago", v.Wellness(), cmp.Or(v.Reason(), "nothing"), view.Age(s.Now(), v.LastSpoke())))
	for _, line := range view.Wrap(v.Message(), view.LineWidth) {
		t.Row("", line)
	}
	if v.Says.Status.Trial != nil {
		t.Row("Trial:", v.TrialText(s.Now()))
	}
	for i, words := range v.ChangeText(s.Now()) {
		t.Row([]string{"Last change:", ""}[min(i, 1)], words)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	return describeEvents(ctx, s, client, v)
}

// describeEvents tells what the supervisor reported as it happened; the API server forgets that after an hour.
func describeEvents(ctx context.Context, s *cmdutil.Factory, client kubernetes.Interface, v view.Node) error {
	selector := fields.Set{"involvedObject.kind": "Node", "involvedObject.name": v.Name}.AsSelector().String()
	list, err := client.CoreV1().Events(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{FieldSelector: selector})
	if err != nil {
		s.Note("Events cannot be read: %v", err)
		return nil
	}
	events := slices.DeleteFunc(list.Items, func(e corev1.Event) bool {
		return e.Source.Component != "kubelet-supervisor" && e.ReportingController != "kubelet-supervisor"
	})
	if len(events) == 0 {
		_, _ = fmt.Fprintln(s.Out, "Events:  none of the last hour")
		return nil
	}
	slices.SortStableFunc(events, func(a, b corev1.Event) int { return a.LastTimestamp.Compare(b.LastTimestamp.Time) })
	_, _ = fmt.Fprintln(s.Out, "Events:")
	t := view.NewTable(s.Out)
	for _, e := range events {
		t.Row("  "+view.Age(s.Now(), e.LastTimestamp.Time), e.Type, bounded.Line(e.Reason), bounded.Line(e.Message))
	}
	return t.Flush()
}
