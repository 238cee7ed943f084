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

// A Table is printed like kubectl's, with short cells on one line.
//
// ¶ It does not use printers.GetNewTabWriter: that remembers the widths of the rows above, and would align
// unrelated rows, such as those of describe.
type Table struct{ writer *tabwriter.Writer }

// NewTable begins a table, with a header if one is given.
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

// Age returns how long ago something was, in kubectl's format.
func Age(now, then time.Time) string {
	if then.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(now.Sub(then))
}

// NewList returns a List of kind v1, as kubectl prints it.
func NewList(items []unstructured.Unstructured) *unstructured.UnstructuredList {
	return &unstructured.UnstructuredList{
		Object: map[string]any{"apiVersion": "v1", "kind": "List", "metadata": map[string]any{"resourceVersion": ""}},
		Items:  items,
	}
}
