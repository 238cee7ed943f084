package cmdutil

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"sync"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/kubelet-supervisor/kubelet-supervisor/internal/bounded"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/view"
)

// PrintFlags adds kubectl's -o for objects that a command made or changed. An unknown format ends the command
// before it does anything.
func PrintFlags(command *cobra.Command, operation string) *genericclioptions.PrintFlags {
	flags := genericclioptions.NewPrintFlags(operation).WithTypeSetter(scheme.Scheme)
	flags.AddFlags(command)
	command.PreRunE = func(*cobra.Command, []string) error {
		_, err := flags.ToPrinter()
		return err
	}
	return flags
}

// An output is what one command prints with -o: one stream that decodes, for any number of objects.
type output struct {
	mutex   sync.Mutex
	printer printers.ResourcePrinter // one for all objects, because the YAML printer separates them
	held    []unstructured.Unstructured
}

// PrintObject prints an object in the format of -o, else "KIND/NAME did". It buffers JSON until Flush, because
// several objects are one List.
func (f *Factory) PrintObject(flags *genericclioptions.PrintFlags, did string, object runtime.Object) error {
	o := &f.output
	o.mutex.Lock()
	defer o.mutex.Unlock()
	if format := *flags.OutputFormat; format == "" || format == "name" {
		flags.NamePrintFlags.Operation = did
		printer, err := flags.ToPrinter()
		if err != nil {
			return err
		}
		return printer.PrintObj(object, f.Out)
	}
	if o.printer == nil {
		printer, err := flags.ToPrinter()
		if err != nil {
			return err
		}
		o.printer = printer
	}
	if *flags.OutputFormat != "json" {
		return f.PrintWhole(*flags.OutputFormat, o.printer, object)
	}
	held, err := untyped(object)
	o.held = append(o.held, held)
	return err
}

// Flush prints the buffered JSON: one object unchanged, several as a List, as kubectl get does.
func (f *Factory) Flush() error {
	o := &f.output
	o.mutex.Lock()
	defer o.mutex.Unlock()
	switch len(o.held) {
	case 0:
		return nil
	case 1:
		return f.PrintWhole("json", o.printer, &o.held[0])
	}
	return f.PrintWhole("json", o.printer, view.NewList(o.held))
}

// PrintWhole prints an object for programs.
func (f *Factory) PrintWhole(format string, printer printers.ResourcePrinter, object runtime.Object) error {
	return f.WriteWhole(format, func(to io.Writer) error { return printer.PrintObj(object, to) })
}

// untyped returns a copy of an object with its kind, which clients omit.
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

// Begin prepares one command line: it escapes what the streams print, and ends a question when ctx ends.
func (f *Factory) Begin(ctx context.Context) {
	f.interrupted, f.output = ctx.Done(), output{}
	f.Out, f.ErrOut = view.ToPeople(f.Out), view.ToPeople(f.ErrOut)
}

// WriteWhole writes complete, valid output for programs. It escapes non-printable characters if the format can; in
// templates they become spaces.
func (f *Factory) WriteWhole(format string, print func(io.Writer) error) error {
	var text bytes.Buffer
	if err := print(&text); err != nil {
		return err
	}
	to := f.Out
	if limited, is := to.(*bounded.Writer); is {
		to = limited.Whole()
	}
	_, err := io.WriteString(to, view.EscapeWhole(format, text.String()))
	return err
}
