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

// A table is printed as kubectl's are, with cells that are lines, and short, whoever wrote them.
type table struct{ writer *tabwriter.Writer }

func NewTable(to io.Writer, header ...string) table {
	t := table{tabwriter.NewWriter(to, 6, 4, 3, ' ', 0)}
	if len(header) > 0 {
		t.Row(header...)
	}
	return t
}

func (t table) Row(cells ...string) {
	shown := make([]string, len(cells))
	for i, cell := range cells {
		shown[i] = Shorten(bounded.Cell(cell), MaxCell)
	}
	_, _ = fmt.Fprintln(t.writer, strings.TrimRight(strings.Join(shown, "\t"), "\t"))
}

func (t table) Flush() error { return t.writer.Flush() }

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
