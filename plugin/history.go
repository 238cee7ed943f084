package plugin

import (
	"cmp"
	"context"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/kubernetes"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/internal/bounded"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/cmdutil"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/view"
)

// historyOptions are the flags of history.
type historyOptions struct {
	*cmdutil.Factory
	node  string
	print *genericclioptions.PrintFlags
}

func newHistory(f *cmdutil.Factory) *cobra.Command {
	o := &historyOptions{Factory: f, print: genericclioptions.NewPrintFlags("")}
	command := &cobra.Command{
		Use:   "history NODE",
		Short: "Show what was assigned to a node, and what became of it",
		Long: `Show the newest ` + strconv.Itoa(view.RecordEntries) + ` assignments of a node, oldest first, and what became of each. They stand on the Node, in the annotation
` + view.RecordAnnotation + `, which this plugin writes with each assignment. An assignment made in another way, for example by kubectl
annotate, gets its entry when the next one is made.`,
		Example:           "  kubectl kubelet history n1",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: f.CompleteNodes,
		RunE:              cmdutil.RunE(o),
	}
	o.print.AddFlags(command)
	return command
}

// Complete takes the name of the node.
func (o *historyOptions) Complete(_ *cobra.Command, arguments []string) error {
	o.node = arguments[0]
	return nil
}

// Validate has nothing to refuse.
func (o *historyOptions) Validate() error {
	return nil
}

// Run prints the record of the node.
func (o *historyOptions) Run(ctx context.Context) error {
	client, err := o.Connect()
	if err != nil {
		return err
	}
	v, err := view.GetNode(ctx, client, o.node)
	if err != nil {
		return err
	}
	entries, err := v.Record()
	if err != nil {
		return err
	}
	current, ok := v.Current()
	last := len(entries) - 1
	stands := last >= 0 && ok && view.SameSource(entries[last].Source, current.String())
	if stands {
		entries[last].Outcome = v.Outcome()
	}
	if *o.print.OutputFormat != "" {
		return printEntries(o.Factory, v.Name, entries, o.print)
	}
	if len(entries) == 0 {
		o.Note("Nothing was assigned to %s with this plugin.", v.Name)
		return nil
	}
	t := view.NewTable(o.Out, "REVISION", "AGE", "ASSIGNED", "BY", "OUTCOME", "NOTE")
	for i, e := range entries {
		t.Row(strconv.Itoa(i+1), view.Age(o.Now(), e.Time), e.Short(), cmp.Or(e.By, "<unknown>"), cmp.Or(e.Outcome, "<unknown>"), entryNote(ctx, client, e))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if !stands {
		o.Note("The Node is assigned %s now, and not by this plugin.", cmp.Or(bounded.Line(v.Says.Assignment), nodev1.Local))
	}
	return nil
}

// printEntries prints a record in the form of a Kubernetes object, kind NodeAssignments.
func printEntries(f *cmdutil.Factory, node string, entries []view.Entry, print *genericclioptions.PrintFlags) error {
	printer, err := print.ToPrinter()
	if err != nil {
		return err
	}
	var list []any
	for i, e := range entries {
		printed := map[string]any{"revision": int64(i + 1), "source": e.Source}
		if !e.Time.IsZero() {
			printed["time"] = e.Time.Format(time.RFC3339)
		}
		for name, text := range map[string]string{"by": e.By, "outcome": e.Outcome} {
			if text != "" {
				printed[name] = text
			}
		}
		list = append(list, printed)
	}
	return f.PrintWhole(*print.OutputFormat, printer, &unstructured.Unstructured{Object: runtime.DeepCopyJSON(map[string]any{
		"apiVersion": "kubelet-supervisor.io/v1", "kind": "NodeAssignments", "metadata": map[string]any{"name": node}, "assignments": list,
	})})
}

// entryNote returns why a rollback to an entry is not possible.
func entryNote(ctx context.Context, client kubernetes.Interface, e view.Entry) string {
	r, err := nodev1.ParseAssignment(e.Source)
	if err != nil || r.IsLocal() {
		return ""
	}
	found, err := client.CoreV1().ConfigMaps(r.Namespace).Get(ctx, r.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsForbidden(err):
		return "cannot be read"
	case err != nil:
		return "gone"
	case r.UID != "" && r.UID != string(found.UID):
		return "made again"
	}
	return ""
}
