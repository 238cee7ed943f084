package main

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
)

// worseBy is the least change that is called one: noise of a quiet machine stays below it.
const worseBy = 0.10

// A comparison is one row of two runs. Where the row has a reference, before and after are multiples of it, so that runs of
// different machines can be compared.
type comparison struct {
	row           *Row
	before, after float64
	verdict       string // "", "better" or "WORSE"; the last two only where the samples of the runs do not overlap
}

// compareFiles prints the comparison and gives the exit code: 1 where a row is worse, 2 for a wrong command line.
func compareFiles(to io.Writer, files []string) int {
	if len(files) != 2 {
		_, _ = fmt.Fprintln(to, "usage: bench compare BEFORE.json AFTER.json")
		return 2
	}
	before, err := load(files[0])
	if err != nil {
		_, _ = fmt.Fprintln(to, err)
		return 2
	}
	after, err := load(files[1])
	if err != nil {
		_, _ = fmt.Fprintln(to, err)
		return 2
	}
	rows, alone := compare(before, after)
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintf(table, "what\t%s\t%s\tin\tchange\t\n", before.Commit, after.Commit)
	code := 0
	for _, c := range rows {
		unit := c.row.Unit
		if c.row.Reference != "" {
			unit = "× " + c.row.Reference
		}
		change := "-"
		if c.before != 0 {
			change = fmt.Sprintf("%+.0f %%", 100*(c.after/c.before-1))
		}
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", c.row.id(), figure(c.before), figure(c.after), unit, change, c.verdict)
		if c.verdict == "WORSE" {
			code = 1
		}
	}
	_ = table.Flush()
	for _, id := range alone {
		_, _ = fmt.Fprintf(to, "only in one of them: %s\n", id)
	}
	return code
}

// compare gives the rows that both have, and the names of those that one has alone.
func compare(before, after *Result) (rows []comparison, alone []string) {
	for _, row := range after.Rows {
		old := before.find(row.id())
		// A row that has another reference now is another row.
		if old == nil || old.Reference != row.Reference {
			alone = append(alone, row.id())
			continue
		}
		rows = append(rows, compareRow(before.scaled(old), after.scaled(row)))
	}
	for _, row := range before.Rows {
		if after.find(row.id()) == nil {
			alone = append(alone, row.id())
		}
	}
	return rows, alone
}

// scaled gives the row with its samples as multiples of the reference's median, if there is one.
func (r *Result) scaled(row *Row) *Row {
	reference := r.find(row.Reference)
	if reference == nil || reference.median() == 0 {
		return row
	}
	scaled := *row
	scaled.Samples = nil
	for _, sample := range row.Samples {
		scaled.add(sample / reference.median())
	}
	return &scaled
}

func compareRow(before, after *Row) comparison {
	c := comparison{row: after, before: before.median(), after: after.median()}
	if len(before.Samples) == 0 || len(after.Samples) == 0 {
		return c
	}
	switch {
	case after.Yardstick:
	case c.after > c.before*(1+worseBy) && slices.Min(after.Samples) > slices.Max(before.Samples):
		c.verdict = "WORSE"
	case c.after < c.before*(1-worseBy) && slices.Max(after.Samples) < slices.Min(before.Samples):
		c.verdict = "better"
	}
	return c
}
