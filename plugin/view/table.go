package view

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/kubelet-supervisor/kubelet-supervisor/internal/bounded"
)

// A Table is printed as kubectl's are, with cells that are lines, and short, whoever wrote them.
//
// Not by printers.GetNewTabWriter: it remembers the widths of the rows above, which would align rows that have nothing to do with each other, as those of
// describe.
type Table struct{ writer *tabwriter.Writer }

// NewTable begins a table, with a header where one is given.
func NewTable(to io.Writer, header ...string) Table {
	t := Table{tabwriter.NewWriter(to, 6, 4, 3, ' ', 0)}
	if len(header) > 0 {
		t.Row(header...)
	}
	return t
}

// Row adds a row.
func (t Table) Row(cells ...string) {
	shown := make([]string, len(cells))
	for i, cell := range cells {
		shown[i] = Shorten(bounded.Cell(cell), MaxCell)
	}
	_, _ = fmt.Fprintln(t.writer, strings.TrimRight(strings.Join(shown, "\t"), "\t"))
}

// Flush prints the table.
func (t Table) Flush() error { return t.writer.Flush() }

// Age is how long ago something was, as kubectl says it.
func Age(now, then time.Time) string {
	if then.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(now.Sub(then))
}

// NewList is the List of kind v1 that kubectl prints.
func NewList(items []unstructured.Unstructured) *unstructured.UnstructuredList {
	return &unstructured.UnstructuredList{
		Object: map[string]any{"apiVersion": "v1", "kind": "List", "metadata": map[string]any{"resourceVersion": ""}},
		Items:  items,
	}
}
