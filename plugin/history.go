package plugin

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/kubernetes"
)

func newHistory(s *session) *cobra.Command {
	print := genericclioptions.NewPrintFlags("")
	command := &cobra.Command{
		Use:   "history NODE",
		Short: "Show what was assigned to a node with this plugin",
		Long: `Show what was assigned to a node with this plugin, oldest first: a record in namespace ` + configNamespace + `, where nodes cannot write.
What was assigned otherwise, by kubectl annotate say, is not in it.`,
		Example:           "  kubectl kubelet history n1",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: s.completeNodes,
		RunE: func(command *cobra.Command, arguments []string) error {
			client, err := s.connect()
			if err != nil {
				return err
			}
			return s.history(command.Context(), client, arguments[0], print)
		},
	}
	print.AddFlags(command)
	return command
}

func (s *session) history(ctx context.Context, client kubernetes.Interface, name string, print *genericclioptions.PrintFlags) error {
	v, err := getNode(ctx, client, name)
	if err != nil {
		return err
	}
	entries, err := readRecord(ctx, client, v.Name)
	if err != nil {
		return err
	}
	if *print.OutputFormat != "" {
		return s.printEntries(v.Name, entries, print)
	}
	if len(entries) == 0 {
		s.note("Nothing was assigned to %s with this plugin.", v.Name)
		return nil
	}
	t := newTable(s.Out, "REVISION", "AGE", "ASSIGNED", "BY", "NOTE")
	for _, e := range entries {
		t.row(strconv.Itoa(e.Revision), age(s.now(), e.Time.Time), printable(e.Assignment), firstOf(printable(e.By), "<unknown>"), s.entryNote(ctx, client, e))
	}
	if err := t.flush(); err != nil {
		return err
	}
	if last := entries[len(entries)-1].Assignment; last != v.assignment && (last != localText || v.carrier != carrierNone) {
		s.note("The Node is assigned %s now, and not by this plugin.", firstOf(printable(v.assignment), localText))
	}
	return nil
}

// printEntries prints a record in the form of a Kubernetes object, kind NodeAssignments.
func (s *session) printEntries(node string, entries []entry, print *genericclioptions.PrintFlags) error {
	printer, err := print.ToPrinter()
	if err != nil {
		return err
	}
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&struct {
		metav1.TypeMeta `json:",inline"`
		Metadata        struct {
			Name string `json:"name"`
		} `json:"metadata"`
		Assignments []entry `json:"assignments"`
	}{TypeMeta: metav1.TypeMeta{APIVersion: "kubelet-supervisor.io/v1", Kind: "NodeAssignments"}, Assignments: entries})
	if err != nil {
		return fmt.Errorf("writing the record of node %s: %w", node, err)
	}
	list := &unstructured.Unstructured{Object: object}
	list.SetName(node)
	return printer.PrintObj(list, s.Out)
}

// entryNote says why an entry cannot be gone back to.
func (s *session) entryNote(ctx context.Context, client kubernetes.Interface, e entry) string {
	if _, err := e.reference(ctx, client); err != nil {
		if apierrors.IsForbidden(err) {
			return "cannot be read"
		}
		return "gone"
	}
	return ""
}

// reference is what an entry names, if it still is the object that was assigned then.
func (e entry) reference(ctx context.Context, client kubernetes.Interface) (reference, error) {
	r, ok := parseAssignment(e.Assignment)
	if !ok {
		return reference{}, fmt.Errorf("revision %d is malformed: %q", e.Revision, e.Assignment)
	}
	if r.local() {
		return r, nil
	}
	found, r, err := getConfigMap(ctx, client, r)
	if err == nil && e.UID != "" && e.UID != string(found.UID) {
		err = fmt.Errorf("ConfigMap %s/%s was made anew since revision %d; assign it with kubectl kubelet assign if it is what you want", r.namespace, r.name, e.Revision)
	}
	return r, err
}

func newRollback(s *session) *cobra.Command {
	var o changeOptions
	var to string
	command := &cobra.Command{
		Use:   "rollback NODE",
		Short: "Assign again what was assigned before",
		Long: `Assign again what was assigned to a node before, by the record that history shows: with --to a revision of it, else the newest one that
is another than what is assigned now. What a node says about itself is not asked.`,
		Example: `  kubectl kubelet rollback n1
  kubectl kubelet rollback n1 --to 3`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: s.completeNodes,
		RunE: func(command *cobra.Command, arguments []string) error {
			if err := o.complete(arguments); err != nil {
				return err
			}
			return s.rollback(command.Context(), o, to)
		},
	}
	command.Flags().StringVar(&to, "to", "", "a revision of history, or [NAMESPACE/]NAME[/KEY], or local")
	o.addFlags(command)
	for _, flag := range []string{"selector", "parallel"} { // one node at a time has a history
		_ = command.Flags().MarkHidden(flag)
	}
	return command
}

func (s *session) rollback(ctx context.Context, o changeOptions, to string) error {
	client, err := s.connect()
	if err != nil {
		return err
	}
	v, err := getNode(ctx, client, o.chosen.names[0])
	if err != nil {
		return err
	}
	entries, err := readRecord(ctx, client, v.Name)
	if err != nil {
		return err
	}
	wanted, err := s.rollbackTarget(ctx, client, v, entries, to)
	if err != nil {
		return err
	}
	return s.assign(ctx, o, wanted, false)
}

func (s *session) rollbackTarget(ctx context.Context, client kubernetes.Interface, v nodeView, entries []entry, to string) (reference, error) {
	revision, err := strconv.Atoi(to)
	switch {
	case to == "":
		found, err := previous(v, entries)
		if err != nil {
			return reference{}, err
		}
		s.note("%s: back to revision %d, of %s", v.Name, found.Revision, found.Time.UTC().Format(time.RFC3339))
		return found.reference(ctx, client)
	case err != nil:
		return parseReference(to, s.namespace())
	}
	for _, e := range entries {
		if e.Revision == revision {
			return e.reference(ctx, client)
		}
	}
	return reference{}, fmt.Errorf("node %s has no revision %d; see kubectl kubelet history %s", v.Name, revision, v.Name)
}

// previous is the newest entry that is another than what is assigned.
func previous(v nodeView, entries []entry) (entry, error) {
	now, ok := v.current()
	for i := len(entries) - 1; i >= 0; i-- {
		if !ok || entries[i].Assignment != now.String() {
			return entries[i], nil
		}
	}
	if len(entries) == 0 {
		return entry{}, fmt.Errorf("nothing was assigned to node %s with this plugin, so what to go back to is not known; name it with --to, or use kubectl kubelet reset", v.Name)
	}
	return entry{}, errors.New("nothing older than what is assigned is recorded; name a configuration with --to, or use kubectl kubelet reset")
}
