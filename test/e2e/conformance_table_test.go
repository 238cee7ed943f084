//go:build e2e && conformance

package e2e

import (
	"bytes"
	"fmt"
	"os"
	"sync"
	"testing"
	"text/tabwriter"
)

// tableVariable names a file that the table is written to as it grows. At the end it goes to the standard output.
const tableVariable = "KUBELET_SUPERVISOR_CONFORMANCE_TABLE"

// A conformanceTable has one row per step. Each is told as it comes, and written, so that also a run that is cut short has a table.
type conformanceTable struct {
	mutex sync.Mutex
	rows  []*conformanceRow
}

// A conformanceRow says what was expected, and what was seen in the end.
type conformanceRow struct {
	what, carrier, expected, seen string
	unlike                        string // the known difference from upstream that the row shows, if any
	skipped                       bool   // the carrier cannot express it
}

func (r *conformanceRow) verdict() string {
	switch {
	case r.skipped:
		return "-"
	case r.seen == r.expected:
		return "ok"
	}
	return "FAILED"
}

func (c *conformanceTable) add(t *testing.T, row *conformanceRow) {
	t.Helper()
	c.mutex.Lock()
	c.rows = append(c.rows, row)
	_, _ = fmt.Fprintf(os.Stderr, "%4d %-6s %s, %s\n", len(c.rows), row.verdict(), row.carrier, row.what)
	c.mutex.Unlock()
	if file := os.Getenv(tableVariable); file != "" {
		if err := os.WriteFile(file, []byte(c.String()), 0o644); err != nil {
			t.Error(err)
		}
	}
}

func (c *conformanceTable) String() string {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	var text bytes.Buffer
	writer := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	line := func(r conformanceRow, verdict string) {
		_, _ = fmt.Fprintf(writer, "%s\t%s\t%s\t%s\t%s\t%s\n", verdict, r.what, r.carrier, r.expected, r.seen, r.unlike)
	}
	line(conformanceRow{what: "case", carrier: "carrier", expected: "expected", seen: "seen", unlike: "known difference"}, "")
	count := map[string]int{}
	for _, row := range c.rows {
		line(*row, row.verdict())
		count[row.verdict()]++
	}
	_ = writer.Flush()
	_, _ = fmt.Fprintf(&text, "\n%d rows: %d ok, %d FAILED, %d that the carrier cannot express\n", len(c.rows), count["ok"], count["FAILED"], count["-"])
	return text.String()
}
