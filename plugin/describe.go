package plugin

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/kubernetes"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/internal/bounded"
)

func newDescribe(s *session) *cobra.Command {
	print := genericclioptions.NewPrintFlags("")
	command := &cobra.Command{
		Use:   "describe NODE",
		Short: "Tell the whole story of a node's configuration: sources, trial, the last change, errors, events",
		Example: `  kubectl kubelet describe n1
  kubectl kubelet describe n1 -o json`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: s.completeNodes,
		RunE: func(command *cobra.Command, arguments []string) error {
			client, err := s.connect()
			if err != nil {
				return err
			}
			v, err := getNode(command.Context(), client, arguments[0])
			if err != nil {
				return err
			}
			if *print.OutputFormat != "" {
				return s.printViews([]nodeView{v}, print, true)
			}
			return s.describe(command.Context(), client, v)
		},
	}
	print.AddFlags(command)
	return command
}

func (s *session) describe(ctx context.Context, client kubernetes.Interface, v nodeView) error {
	t := newTable(s.Out)
	t.row("Node:", v.Name)
	t.row("Kubelet:", v.kubelet(), map[bool]string{true: "Ready", false: "not Ready"}[v.ready()])
	assignment := "nothing, so " + nodev1.Local
	if v.says.Carrier != nodev1.CarrierNone {
		assignment = fmt.Sprintf("%s (by %s)", bounded.Line(v.says.Assignment), map[nodev1.Carrier]string{nodev1.CarrierAnnotation: "annotation", nodev1.CarrierField: string(nodev1.CarrierField)}[v.says.Carrier])
	}
	t.row("Assignment:", assignment)
	if v.mark().Pool != "" {
		t.row("Pool:", v.poolText())
	}
	if !v.says.Supervised {
		t.row("Supervisor:", "none has met this node; see kubectl kubelet doctor "+v.Name)
		return t.flush()
	}
	t.row("Seen:", cmp.Or(bounded.Line(v.says.Status.Observed), "nothing assigned"))
	t.row("Assigned:", sourceText(v.says.Config.Assigned))
	t.row("Active:", sourceText(v.says.Config.Active))
	t.row("Last known good:", sourceText(v.says.Config.LastKnownGood))
	t.row("Error:", cmp.Or(bounded.Line(v.says.Config.Error), "none"))
	if v.says.Problem != nil {
		t.row("Problem:", v.says.Problem.Error())
	}
	t.row("KubeletConfigOk:", fmt.Sprintf("%s %s, said %s ago", v.wellness(), cmp.Or(v.reason(), "nothing"), age(s.now(), v.spoke())))
	for _, line := range wrapped(v.words(), lineWidth) {
		t.row("", line)
	}
	if v.says.Status.Trial != nil {
		t.row("Trial:", v.trialText(s.now()))
	}
	for i, words := range s.changeText(v) {
		t.row([]string{"Last change:", ""}[min(i, 1)], words)
	}
	if err := t.flush(); err != nil {
		return err
	}
	return s.describeEvents(ctx, client, v)
}

// trialLeft is how much of a trial is left at most, of how much: its clock stands still while the kubelet is not healthy, or its Lease is not
// renewed. It is not known where of is 0.
func (v nodeView) trialLeft(now time.Time) (left, of time.Duration) {
	trial := v.says.Status.Trial
	if trial == nil {
		return 0, 0
	}
	of, err := time.ParseDuration(trial.Of)
	healthy, none := time.ParseDuration(trial.Healthy)
	if err != nil || none != nil || of <= 0 || healthy < 0 {
		return 0, 0
	}
	return max(0, of-healthy-max(0, now.Sub(v.spoke()))), of
}

func (v nodeView) trialText(now time.Time) string {
	left, of := v.trialLeft(now)
	text := fmt.Sprintf("at most %s of health are left, of %s", duration.HumanDuration(left), of)
	switch {
	case of == 0:
		return "how much of it is left, the node knows: kubelet-supervisor status there"
	case left == 0:
		text = fmt.Sprintf("its %s of health are due; the end of it comes as soon as the node has seen them, and its Lease renewed", of)
	}
	if tries := v.says.Status.Trial.Tries; tries > 1 {
		text += fmt.Sprintf("; it was started %d times", tries)
	}
	return text
}

func sourceText(source *corev1.NodeConfigSource) string {
	if source == nil || source.ConfigMap == nil {
		return nodev1.Local
	}
	return bounded.Line(fmt.Sprintf("%s (uid %s, resourceVersion %s)", nodev1.AssignmentOf(source), source.ConfigMap.UID, source.ConfigMap.ResourceVersion))
}

// describeEvents tells what the supervisor reported as it happened; the API server forgets that after an hour.
func (s *session) describeEvents(ctx context.Context, client kubernetes.Interface, v nodeView) error {
	selector := fields.Set{"involvedObject.kind": "Node", "involvedObject.name": v.Name}.AsSelector().String()
	list, err := client.CoreV1().Events(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{FieldSelector: selector})
	if err != nil {
		s.note("Events cannot be read: %v", err)
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
	t := newTable(s.Out)
	for _, e := range events {
		t.row("  "+age(s.now(), e.LastTimestamp.Time), e.Type, bounded.Line(e.Reason), bounded.Line(e.Message))
	}
	return t.flush()
}
