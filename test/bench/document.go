package main

import (
	_ "embed" // of document.md
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/template"
)

// The tables, in the order in which they are printed.
var sections = []struct{ name, title string }{
	{sectionChange, "A change of the configuration"},
	{sectionStart, "A start of the supervisor"},
	{sectionFootprint, "Footprint"},
	{sectionTraffic, "What it costs the API server"},
}

//go:embed document.md
var documentText string

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
	if row.AtLeast {
		cells[1] = "> " + cells[1]
	}
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

// Table formats a section's rows as Markdown that is aligned, so that it is one on a terminal, too.
func (r *Result) Table(name string) string {
	lines := [][]string{heading}
	for _, row := range r.Rows {
		if row.Section == name {
			lines = append(lines, r.cells(row))
		}
	}
	return markdownTable(lines)
}

// markdownTable aligns the lines of a table; the first is its heading.
func markdownTable(lines [][]string) string {
	widths := make([]int, len(lines[0]))
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

// TraceText formats the trace, for a block of code.
func (r *Result) TraceText() string { return phasesText(r.Trace) }

// StartTraceText is the same of a start.
func (r *Result) StartTraceText() string { return phasesText(r.StartTrace) }

func phasesText(phases []Phase) string {
	lines := []string{"   at ms  took ms  what had happened then"}
	for _, phase := range phases {
		lines = append(lines, phase.String())
	}
	return strings.Join(lines, "\n") + "\n"
}

// tables are for the terminal.
func (r *Result) tables() string {
	var text strings.Builder
	for _, s := range sections {
		text.WriteString("\n" + s.title + "\n\n" + r.Table(s.name))
		if s.name == sectionChange {
			text.WriteString("\nOne good configuration, the median one:\n\n" + r.TraceText())
		}
		if s.name == sectionStart {
			text.WriteString("\nOne start, API server down, the median one:\n\n" + r.StartTraceText())
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
func (r *Result) document() (string, error) {
	page, err := template.New("document.md").Parse(documentText)
	if err != nil {
		return "", err
	}
	var text strings.Builder
	err = page.Execute(&text, r)
	return text.String(), err
}

func (r *Result) saveDocument(path string) error {
	text, err := r.document()
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return os.WriteFile(path, []byte(text), 0o644)
}

// MissedWords names the budgets that are missed.
func (r *Result) MissedWords() string {
	var missed []string
	for _, row := range r.Rows {
		if row.Missed {
			missed = append(missed, fmt.Sprintf("- %s: %s (%s), budget %s\n", row.Section, row.Name, r.cells(row)[1], row.Budget))
		}
	}
	if len(missed) == 0 {
		return "Every budget is met.\n"
	}
	return "**Budgets that are missed:**\n\n" + strings.Join(missed, "")
}
