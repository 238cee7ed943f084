package plugin

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/kubernetes/scheme"
)

// printFlags are kubectl's -o for an object that a command made or changed.
func printFlags(command *cobra.Command, operation string) *genericclioptions.PrintFlags {
	flags := genericclioptions.NewPrintFlags(operation).WithTypeSetter(scheme.Scheme)
	flags.AddFlags(command)
	return flags
}

// printObject prints an object as -o asks, else "KIND/NAME did".
func (s *session) printObject(flags *genericclioptions.PrintFlags, did string, object runtime.Object) error {
	if err := flags.Complete("%s"); err != nil {
		return err
	}
	flags.NamePrintFlags.Operation = did
	printer, err := flags.ToPrinter()
	if err != nil {
		return err
	}
	return printer.PrintObj(object, s.Out)
}

// A table is printed as kubectl's are. What nodes wrote must be made printable first.
type table struct{ writer *tabwriter.Writer }

func newTable(to io.Writer, header ...string) table {
	t := table{tabwriter.NewWriter(to, 6, 4, 3, ' ', 0)}
	if len(header) > 0 {
		t.row(header...)
	}
	return t
}

func (t table) row(cells ...string) {
	_, _ = fmt.Fprintln(t.writer, strings.TrimRight(strings.Join(cells, "\t"), "\t"))
}

func (t table) flush() error { return t.writer.Flush() }

// age is how long ago something was, as kubectl says it.
func age(now, then time.Time) string {
	if then.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(now.Sub(then))
}
