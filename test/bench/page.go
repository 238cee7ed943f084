//go:build linux

package main

import (
	"embed"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/template"
)

//go:embed pages
var pages embed.FS

// A page is what a page of docs/ is rendered from: every result by what it is of. What is not there is nil.
type page struct {
	Note           string
	Bench          *Result // what make bench measures
	Upstream, Long *Result
	Matrix         *Result
	Servers        *Result   // what API servers were tried
	Scale          []*Result // runs with many nodes, the fewest first
	Storms         []*Result // of several commits, in the order of the files
	Pools          []*Result // of the controller, the fewest nodes first
	Rollout        *Result   // of a pool
	RolloutNote    string
}

// writePage renders the page of a document's name. A result file that is not there is left out, and the page says so, unless it is
// about nothing else.
func writePage(document, note string, files []string) error {
	p, err := readPage(files)
	if err != nil {
		return err
	}
	p.Note = note
	text, err := p.render(filepath.Base(document), filepath.Base(document))
	if err != nil {
		return fmt.Errorf("writing %s from %q: %w", document, files, err)
	}
	return os.WriteFile(document, []byte(text), 0o644)
}

func readPage(files []string) (*page, error) {
	p := &page{}
	for _, file := range files {
		r, err := load(file)
		switch {
		case errors.Is(err, os.ErrNotExist):
			continue
		case err != nil:
			return nil, err
		case len(r.Kubelets) > 0:
			p.Matrix = r
		case len(r.Servers) > 0:
			p.Servers = r
		case r.has(sectionNodes):
			p.Scale = append(p.Scale, r)
		case r.has(sectionPools):
			p.Pools = append(p.Pools, r)
		case r.has(sectionRollout):
			p.Rollout = r
		case r.has(sectionStorm):
			p.Storms = append(p.Storms, r)
		case r.has(sectionUpstream):
			p.Upstream = r
		case r.has(sectionProgram):
			p.Long = r
		default:
			p.Bench = r
		}
	}
	slices.SortFunc(p.Scale, func(a, b *Result) int { return int(nodesOf(a) - nodesOf(b)) })
	slices.SortFunc(p.Pools, func(a, b *Result) int {
		return int(a.Of(sectionPools)[0].Median() - b.Of(sectionPools)[0].Median())
	})
	return p, nil
}

// render renders a template of the page's files: the page itself, or a part.
func (p *page) render(name, part string) (string, error) {
	functions := template.FuncMap{
		"list": func(words ...string) []string { return words }, "numbers": func(values ...float64) []float64 { return values },
		"mul": func(a, b float64) float64 { return a * b }, "div": func(a, b float64) float64 { return a / b },
		"figure": figure, "took": took, "spread": spread, "ratio": ratioOf, "nodes": nodesOf, "round": math.Round,
		"upstreamFigures": upstreamFigures, "processesUpTo": func() int { return processesUpTo },
		"code": func(text string) string { return strings.ReplaceAll(text, "`", "'") },
	}
	t, err := template.New(name).Funcs(functions).ParseFS(pages, "pages/rows.tmpl", "pages/rollout.tmpl", "pages/servers.tmpl", "pages/"+name)
	if err != nil {
		return "", err
	}
	var text strings.Builder
	if err := t.ExecuteTemplate(&text, part, p); err != nil {
		return "", err
	}
	if strings.TrimSpace(text.String()) == "" {
		return "", errors.New("there is no result of it")
	}
	return alignTables(text.String()), nil
}

// alignTables makes the tables of a Markdown text ones for a terminal, too. The line below a heading is added.
func alignTables(text string) string {
	var aligned strings.Builder
	var table [][]string
	for line := range strings.Lines(text) {
		if inner, is := strings.CutPrefix(line, "| "); is {
			cells := strings.Split(strings.TrimSuffix(strings.TrimRight(inner, " \n"), "|"), " | ")
			for i := range cells {
				cells[i] = strings.TrimSpace(cells[i])
			}
			table = append(table, cells)
			continue
		}
		writeTable(&aligned, table)
		table = nil
		aligned.WriteString(line)
	}
	writeTable(&aligned, table)
	return aligned.String()
}

func writeTable(to *strings.Builder, table [][]string) {
	var widths []int
	for _, line := range table {
		for i, cell := range line {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], len([]rune(cell)))
		}
	}
	for i, line := range table {
		for j, width := range widths {
			cell := ""
			if j < len(line) {
				cell = line[j]
			}
			to.WriteString("| " + cell + strings.Repeat(" ", width-len([]rune(cell))+1))
		}
		to.WriteString("|\n")
		if i == 0 {
			for _, width := range widths {
				to.WriteString("|" + strings.Repeat("-", width+2))
			}
			to.WriteString("|\n")
		}
	}
}

// figure formats a number with three digits that count, or all before the point.
func figure(value float64) string {
	if value == math.Trunc(value) || math.Abs(value) >= 100 {
		return strconv.FormatFloat(value, 'f', 0, 64)
	}
	return strconv.FormatFloat(value, 'f', max(0, 2-int(math.Floor(math.Log10(math.Abs(value))))), 64)
}

// took is a time in ms; from a second on in seconds.
func took(value float64) string {
	if value >= 1000 {
		return figure(value/1000) + " s"
	}
	return figure(value) + " ms"
}

// spread is the median, and the least and the most of several samples.
func spread(row *Row) string {
	show := figure
	if row.Unit == "ms" {
		show = took
	}
	least, most := row.Share(0), row.Share(1)
	switch {
	case row.AtLeast && strings.Contains(row.Name, untilBack):
		return "never, in " + show(most)
	case row.AtLeast:
		return "> " + show(most)
	case least == most:
		return show(least)
	}
	return fmt.Sprintf("%s (%s – %s)", show(row.Median()), show(least), show(most))
}

// ratioOf is that of the medians, where they are times and there is one.
func ratioOf(row, to *Row) string {
	if to.Median() == 0 || row.Unit == "" {
		return ""
	}
	ratio := figure(row.Median() / to.Median())
	if to.AtLeast {
		ratio = "< " + ratio
	}
	return ratio
}
