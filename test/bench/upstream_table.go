package main

import (
	"fmt"
	"slices"
	"strings"
)

// upstreamFigures names the figures of all kinds of changes.
func upstreamFigures() (names []string) {
	for _, kind := range []string{"good configuration", "in-place edit", "equal content", "removal", "refused payload", deadlyName} {
		first := untilSaid
		if kind == deadlyName {
			first = untilBack
		}
		for _, figure := range []string{first, notHealthy, starts} {
			names = append(names, kind+": "+figure)
		}
	}
	return names
}

func unitOf(figure string) string {
	if strings.HasSuffix(figure, starts) {
		return ""
	}
	return "ms"
}

// UpstreamBare is how long the kubelet of all of them takes by itself.
func (r *Result) UpstreamBare() string {
	return spread(r.find(sectionUpstream + "/bare restart: " + untilHealthy))
}

// UpstreamTable has a line for each figure and a column for each subject, as Markdown that is one on a terminal, too.
func (r *Result) UpstreamTable() string {
	names := []string{atOnceName, withDelayName, oursName}
	lines := [][]string{slices.Concat([]string{"what"}, names, []string{"ours : at once", "ours : after 10 s"})}
	for _, name := range upstreamFigures() {
		line := []string{name}
		var rows []*Row
		for _, subject := range names {
			row := r.find(sectionUpstream + "/" + name + ", " + subject)
			rows = append(rows, row)
			line = append(line, spread(row))
		}
		lines = append(lines, append(line, ratioOf(rows[2], rows[0]), ratioOf(rows[2], rows[1])))
	}
	return markdownTable(lines)
}

// spread is the median, and the least and the most of several samples; times from a second on in seconds.
func spread(row *Row) string {
	if row == nil || len(row.Samples) == 0 {
		return "-"
	}
	if row.AtLeast {
		words := "> "
		if strings.Contains(row.Name, untilBack) {
			words = "never, in "
		}
		return words + inSeconds(row, slices.Max(row.Samples))
	}
	text := inSeconds(row, row.median())
	if least, most := slices.Min(row.Samples), slices.Max(row.Samples); least != most {
		text += fmt.Sprintf(" (%s – %s)", inSeconds(row, least), inSeconds(row, most))
	}
	return text
}

func inSeconds(row *Row, value float64) string {
	switch {
	case row.Unit != "ms":
		return figure(value)
	case value >= 1000:
		return figure(value/1000) + " s"
	}
	return figure(value) + " ms"
}

// ratioOf is that of the medians, where they are times and there is one.
func ratioOf(row, to *Row) string {
	if row == nil || to == nil || to.median() == 0 || row.Unit == "" {
		return ""
	}
	less := ""
	if to.AtLeast {
		less = "< "
	}
	return less + figure(row.median()/to.median())
}
