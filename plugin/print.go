package plugin

import (
	"fmt"
	"io"
	"sync"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/view"
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
	return s.printWhole("json", o.printer, view.NewList(o.held))
}

// printWhole prints an object for programs.
func (s *session) printWhole(format string, printer printers.ResourcePrinter, object runtime.Object) error {
	return s.writeWhole(format, func(to io.Writer) error { return printer.PrintObj(object, to) })
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
