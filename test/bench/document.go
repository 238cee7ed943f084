package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A section is a table of the document and what has to be known to read it.
type section struct{ name, title, words string }

var sections = []section{
	{sectionChange, "A change of the configuration", `The reference is the **bare restart**: the same kubelet with the same flags and local file, without a
supervisor; SIGTERM, wait for its end, start, until healthz answers 200. Half of its rounds come before the others and half after, each time
after one that is not counted.

A change begins when the request that makes it is sent, and ends when a watch of the Node delivers what the row waits for. *Not healthy* is what polls of
healthz every 5 ms saw: from the begin of the first poll that failed to the end of the first that did not. Each good, refused and deadly payload is a new one, so that no
verdict of an earlier pre-flight is kept; edits are applied at once (` + "`--edit-spread=0`" + `); before each change the kubelet was left alone for a while, as the bare one was.

- *in-place edit*: of the assigned ConfigMap, while its last version is on trial. *equal content*: a new label, so a new resourceVersion.
- *refused payload*: a negative eventRecordQPS, while local runs. Its way to the Node has nothing to do with a restart; the ratio is for scale.
- *deadly payload*: a clientCAFile that is not there, which pre-flight accepts and the kubelet ends of at once. Three quick exits, with backoff between them, roll back to the last known
good one (here local): four starts. Half as many rounds.
- *removal*: of the Node's annotation; back to local.`},
	{sectionStart, "A start of the supervisor", `From just before the fork of the supervisor's process, so with about 2 ms of the test's own (nsenter), until the process table has the
kubelet's program; polled every millisecond. An assigned configuration is on disk. *Black-holed*: the kubeconfig names an address that takes packets and never answers. Warm, so with supervisor and kubelet in
the page cache, unless the row says cold; a cold start is mostly the disk's.`},
	{sectionFootprint, "Footprint", `Of the supervisor's process, from ` + "`/proc/PID`" + `: RSS holds the pages of the program's file that are in use, which several processes would share; anonymous memory is its own.
Steady is with an assigned configuration that passed its trial, and the real kubelet; its own figures, in the same minute, are the reference. Processor time is counted in steps of 10 ms. The many changes are
edits of the assigned ConfigMap under a fake kubelet, which starts and stops at once: the supervisor does with it all that it does with a real one.`},
	{sectionTraffic, "What it costs the API server", `Requests are from the API server's audit log, by user agent; a watch is a request when it begins. Bytes are both directions of all connections that are open, TLS included, as the
kernel counts them. The reference is the kubelet that the supervisor runs, in the same time. Steady is as above. A change is an in-place edit, and the time for it 6 s, in which the new kubelet does
most of what a start brings; of the kubelet's bytes those of the old one's last moments are missing. The trial is 1 s here, so that a change has its promotion, too. During a trial there is one more GET (of the Lease) in 10 s.`},
}

// notMeasured is what no run measures.
var notMeasured = []string{
	"The removed feature itself (kubelet 1.23.17 with DynamicKubeletConfig, restarted by its service manager): not part of this run, so nothing here is a comparison with it.",
	"Goroutines: a production build has no way to count them from outside; `make soak` counts those of supervisors that it ends by SIGQUIT.",
	"What it would cost to watch the whole Node where its metadata is enough.",
	"More than one node, and the load of a fleet on an API server.",
}

// figure formats a number with three digits that count, or all before the point.
func figure(value float64) string {
	if value == math.Trunc(value) || math.Abs(value) >= 100 {
		return strconv.FormatFloat(value, 'f', 0, 64)
	}
	return strconv.FormatFloat(value, 'f', max(0, 2-int(math.Floor(math.Log10(math.Abs(value))))), 64)
}

var heading = []string{"what", "median", "min – max", "runs", "ratio", "of", "budget", ""}

// cells are those of a row, as heading has them.
func (r *Result) cells(row *Row) []string {
	cells := []string{row.Name, strings.TrimSpace(figure(row.median()) + " " + row.Unit), "", fmt.Sprint(len(row.Samples)), "", "", row.Budget, ""}
	if len(row.Samples) > 1 {
		cells[2] = figure(slices.Min(row.Samples)) + " – " + figure(slices.Max(row.Samples))
	}
	if row.Ratio > 0 {
		cells[4], cells[5] = fmt.Sprintf("%.2f", row.Ratio), r.find(row.Reference).Name
	}
	if row.Budget != "" {
		cells[7] = map[bool]string{true: "MISSED", false: "met"}[row.Missed]
	}
	return cells
}

// table formats a section's rows as Markdown that is aligned, so that it is one on a terminal, too.
func (r *Result) table(name string) string {
	lines := [][]string{heading}
	for _, row := range r.Rows {
		if row.Section == name {
			lines = append(lines, r.cells(row))
		}
	}
	widths := make([]int, len(heading))
	for _, line := range lines {
		for i, cell := range line {
			widths[i] = max(widths[i], len([]rune(cell)))
		}
	}
	var text strings.Builder
	for i, line := range lines {
		for j, cell := range line {
			text.WriteString("| " + cell + strings.Repeat(" ", widths[j]-len([]rune(cell))+1))
		}
		text.WriteString("|\n")
		if i == 0 {
			for _, width := range widths {
				text.WriteString("|" + strings.Repeat("-", width+2))
			}
			text.WriteString("|\n")
		}
	}
	return text.String()
}

func (r *Result) trace() string {
	lines := []string{"   at ms  took ms  what had happened then"}
	for _, phase := range r.Trace {
		lines = append(lines, phase.String())
	}
	return strings.Join(lines, "\n") + "\n"
}

// tables are for the terminal.
func (r *Result) tables() string {
	var text strings.Builder
	for _, s := range sections {
		text.WriteString("\n" + s.title + "\n\n" + r.table(s.name))
		if s.name == sectionChange {
			text.WriteString("\nOne good configuration, the median one:\n\n" + r.trace())
		}
		if s.name == sectionTraffic {
			text.WriteString("\nThe requests of one change:\n" + strings.Join(r.Asked, "\n") + "\n")
		}
	}
	for _, line := range r.Unproved {
		text.WriteString("\nNot measured: " + line + "\n")
	}
	return text.String()
}

// document is docs/benchmarks.md.
func (r *Result) document() string {
	var text strings.Builder
	text.WriteString("# Benchmarks\n\n`make bench` wrote this page, in one run; run it to have it for your machine. It takes about six minutes, root, and a machine that does nothing else.\n\n")
	fmt.Fprintf(&text, "Commit %s, %s.\n\n", r.Commit, r.Date.Format(time.DateTime+" MST"))
	for _, line := range r.Machine {
		text.WriteString("- " + line + "\n")
	}
	text.WriteString("\nLess is better in every row. The median tells whether a budget is met; the ratio is that of the medians, to a figure of the same run.\n" + r.missedWords())
	for _, s := range sections {
		fmt.Fprintf(&text, "\n## %s\n\n%s\n\n%s", s.title, s.words, r.table(s.name))
		if s.name == sectionChange {
			text.WriteString("\nThe good configuration whose time was the median, phase by phase. `log:` is a line of the supervisor's, which says what is done next or was just seen, with a time in whole milliseconds; all else was seen from outside.\n\n```\n" + r.trace() + "```\n")
		}
		if s.name == sectionTraffic {
			text.WriteString("\nThe requests of one change, the last:\n\n- " + strings.Join(r.Asked, "\n- ") + "\n")
		}
	}
	text.WriteString("\n## Not measured\n\n")
	for _, line := range append(slices.Clone(r.Unproved), notMeasured...) {
		text.WriteString("- " + line + "\n")
	}
	text.WriteString("\n## Comparing runs\n\n`make bench` leaves `bin/bench.json`, with every sample. `go run ./test/bench compare BEFORE.json AFTER.json` prints the rows of two such files; a row that has a reference is compared as its multiple, so the machines need not be the same, and what is not of the supervisor is not judged. " +
		"A row is `WORSE` or `better` where the medians differ by more than 10 % and the samples of the two runs do not overlap; with a `WORSE` it ends with 1.\n")
	return text.String()
}

// missedWords names the budgets that are missed.
func (r *Result) missedWords() string {
	var missed []string
	for _, row := range r.Rows {
		if row.Missed {
			missed = append(missed, fmt.Sprintf("- %s: %s (%s), budget %s\n", row.Section, row.Name, r.cells(row)[1], row.Budget))
		}
	}
	if len(missed) == 0 {
		return "Every budget is met.\n"
	}
	return "\n**Budgets that are missed:**\n\n" + strings.Join(missed, "")
}
