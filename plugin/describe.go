package plugin

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
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
	t.row("Kubelet:", bounded.Line(v.Status.NodeInfo.KubeletVersion), map[bool]string{true: "Ready", false: "not Ready"}[v.ready()])
	assignment := "nothing, so " + nodev1.Local
	if v.carrier != carrierNone {
		assignment = fmt.Sprintf("%s (by %s)", bounded.Line(v.assignment), map[carrier]string{carrierAnnotation: "annotation", carrierField: string(carrierField)}[v.carrier])
	}
	t.row("Assignment:", assignment)
	if v.mark().Pool != "" {
		t.row("Pool:", v.poolText())
	}
	if !v.supervised {
		t.row("Supervisor:", "none has met this node; see kubectl kubelet doctor "+v.Name)
		return t.flush()
	}
	t.row("Seen:", cmp.Or(bounded.Line(v.observed), "nothing assigned"))
	t.row("Assigned:", sourceText(v.config.Assigned))
	t.row("Active:", sourceText(v.config.Active))
	t.row("Last known good:", sourceText(v.config.LastKnownGood))
	t.row("Error:", cmp.Or(bounded.Line(v.config.Error), "none"))
	c := v.condition
	t.row("KubeletConfigOk:", fmt.Sprintf("%s %s, said %s ago", bounded.Line(string(c.Status)), bounded.Line(c.Reason), age(s.now(), c.LastHeartbeatTime.Time)))
	for _, part := range strings.Split(v.words(), "; ") {
		t.row("", strings.TrimSpace(part))
	}
	if c.Reason == nodev1.ReasonInTrial {
		t.row("Trial:", trialText(c, s.now()))
	}
	for i, words := range s.changeText(v) {
		t.row([]string{"Last change:", ""}[min(i, 1)], words)
	}
	if err := t.flush(); err != nil {
		return err
	}
	return s.describeEvents(ctx, client, v)
}

// trialPeriod is how the supervisor tells how long its trials are.
var trialPeriod = regexp.MustCompile(`is on trial for (\S+) of health`)

// trialText tells how much of a trial is left at most. The node does not publish what it has counted: a trial that was begun before
// a restart goes on with what it had, and the clock stands still while the kubelet is not healthy.
func trialText(c corev1.NodeCondition, now time.Time) string {
	said, period := now.Sub(c.LastHeartbeatTime.Time), trialPeriodOf(c)
	switch {
	case period <= 0:
		return fmt.Sprintf("since %s at least; what is left of it, the node knows: kubelet-supervisor status there", duration.HumanDuration(said))
	case said >= period:
		return fmt.Sprintf("its %s of health are due; the end of it comes as soon as the node has seen them, and its Lease renewed", period)
	}
	return fmt.Sprintf("at most %s of health are left, of %s; the node does not say what it counted before", duration.HumanDuration(period-said), period)
}

// trialPeriodOf is how long the trial is that a condition speaks of; 0 where it does not say.
func trialPeriodOf(c corev1.NodeCondition) (period time.Duration) {
	if found := trialPeriod.FindStringSubmatch(c.Message); found != nil {
		period, _ = time.ParseDuration(found[1])
	}
	return period
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
