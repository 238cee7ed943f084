package plugin

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/kubelet-supervisor/kubelet-supervisor/internal/bounded"
)

// printFlags are kubectl's -o for objects that a command made or changed. A format that is none ends the command before it does anything.
func printFlags(command *cobra.Command, operation string) *genericclioptions.PrintFlags {
	flags := genericclioptions.NewPrintFlags(operation).WithTypeSetter(scheme.Scheme)
	flags.AddFlags(command)
	command.PreRunE = func(*cobra.Command, []string) error {
		_, err := flags.ToPrinter()
		return err
	}
	return flags
}

// An output is what one command prints with -o: as one stream that decodes, however many objects there are.
type output struct {
	mutex   sync.Mutex
	printer printers.ResourcePrinter // one for all objects: the one for YAML separates them
	held    []unstructured.Unstructured
}

// printObject prints an object as -o asks, else "KIND/NAME did". JSON is held back until finish: several objects are one List.
func (s *session) printObject(flags *genericclioptions.PrintFlags, did string, object runtime.Object) error {
	o := &s.output
	o.mutex.Lock()
	defer o.mutex.Unlock()
	if format := *flags.OutputFormat; format == "" || format == "name" {
		flags.NamePrintFlags.Operation = did
		printer, err := flags.ToPrinter()
		if err != nil {
			return err
		}
		return printer.PrintObj(object, s.Out)
	}
	if o.printer == nil {
		printer, err := flags.ToPrinter()
		if err != nil {
			return err
		}
		o.printer = printer
	}
	if *flags.OutputFormat != "json" {
		return s.printWhole(*flags.OutputFormat, o.printer, object)
	}
	held, err := untyped(object)
	o.held = append(o.held, held)
	return err
}

// finish prints the JSON that was held back: one object as it is, several as a List, as kubectl get does.
func (s *session) finish() error {
	o := &s.output
	o.mutex.Lock()
	defer o.mutex.Unlock()
	switch len(o.held) {
	case 0:
		return nil
	case 1:
		return s.printWhole("json", o.printer, &o.held[0])
	}
	return s.printWhole("json", o.printer, listOf(o.held))
}

// printWhole prints an object for programs.
func (s *session) printWhole(format string, printer printers.ResourcePrinter, object runtime.Object) error {
	return s.writeWhole(format, func(to io.Writer) error { return printer.PrintObj(object, to) })
}

// listOf is the List of kind v1 that kubectl prints.
func listOf(items []unstructured.Unstructured) *unstructured.UnstructuredList {
	return &unstructured.UnstructuredList{
		Object: map[string]any{"apiVersion": "v1", "kind": "List", "metadata": map[string]any{"resourceVersion": ""}},
		Items:  items,
	}
}

// untyped copies an object, with its kind, which clients leave out.
func untyped(object runtime.Object) (unstructured.Unstructured, error) {
	tree, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return unstructured.Unstructured{}, fmt.Errorf("writing an object: %w", err)
	}
	copied := unstructured.Unstructured{Object: tree}
	if copied.GetKind() == "" {
		kinds, _, err := scheme.Scheme.ObjectKinds(object)
		if err != nil {
			return unstructured.Unstructured{}, fmt.Errorf("writing an object: %w", err)
		}
		copied.SetGroupVersionKind(kinds[0])
	}
	return copied, nil
}

// A table is printed as kubectl's are, with cells that are lines, and short, whoever wrote them.
type table struct{ writer *tabwriter.Writer }

func newTable(to io.Writer, header ...string) table {
	t := table{tabwriter.NewWriter(to, 6, 4, 3, ' ', 0)}
	if len(header) > 0 {
		t.row(header...)
	}
	return t
}

func (t table) row(cells ...string) {
	shown := make([]string, len(cells))
	for i, cell := range cells {
		shown[i] = shorten(bounded.Cell(cell), maxCell)
	}
	_, _ = fmt.Fprintln(t.writer, strings.TrimRight(strings.Join(shown, "\t"), "\t"))
}

func (t table) flush() error { return t.writer.Flush() }

// age is how long ago something was, as kubectl says it.
func age(now, then time.Time) string {
	if then.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(now.Sub(then))
}
