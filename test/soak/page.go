//go:build linux

package main

import (
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"text/template"
	"time"
)

//go:embed soak.md.tmpl
var pageTemplate string

// A page is what runs of one commit were, added up.
type page struct {
	Commit     string
	Runs       []*result
	Broken     int // runs
	Total      result
	Kinds      []string // of faults
	Goroutines growth
	Growth     []growth
}

// writePage writes the page from files of results.
func writePage(document string, files []string) error {
	results, err := readResults(files)
	if err == nil && len(results) == 0 {
		err = errors.New("there is no result in it")
	}
	if err != nil {
		return fmt.Errorf("writing %s from %q: %w", document, files, err)
	}
	text, err := addUp(results).render()
	if err != nil {
		return fmt.Errorf("writing %s: %w", document, err)
	}
	return os.WriteFile(document, []byte(text), 0o644)
}

func addUp(results []*result) *page {
	p := &page{Commit: results[0].Commit, Runs: results, Total: result{Steps: map[string]int{}, Recovery: map[string]recovery{}}}
	slices.SortFunc(p.Runs, func(a, b *result) int { return a.Begin.Compare(b.Begin) })
	t := &p.Total
	for _, r := range p.Runs {
		if r.Broken != "" {
			p.Broken++
		}
		t.Seconds, t.Rounds, t.Faults, t.Counted, t.Retries = t.Seconds+r.Seconds, t.Rounds+r.Rounds, t.Faults+r.Faults, t.Counted+r.Counted, t.Retries+r.Retries
		t.Supervisors, t.Kubelets, t.Looks, t.Compared = t.Supervisors+r.Supervisors, t.Kubelets+r.Kubelets, t.Looks+r.Looks, t.Compared+r.Compared
		t.Without, t.Pods, t.Worst = max(t.Without, r.Without), max(t.Pods, r.Pods), t.Worst.or(r.Worst)
		for kind, count := range r.Steps {
			t.Steps[kind] += count
		}
		for kind, worst := range r.Recovery {
			t.Recovery[kind] = t.Recovery[kind].or(worst)
		}
		t.Goroutines, t.Samples = append(t.Goroutines, r.Goroutines...), append(t.Samples, r.Samples...)
	}
	p.Kinds, p.Growth = slices.Sorted(maps.Keys(t.Recovery)), growthOf(t.Samples)
	if len(t.Goroutines) > 0 {
		p.Goroutines = growth{"goroutines", slices.Min(t.Goroutines), slices.Max(t.Goroutines)}
	}
	return p
}

func (p *page) render() (string, error) {
	t, err := template.New("soak").Funcs(template.FuncMap{
		"seconds": seconds, "inc": func(i int) int { return i + 1 },
		"took": func(s int) time.Duration { return time.Duration(s) * time.Second },
		"code": func(text string) string { return strings.NewReplacer("`", "'", "|", "¦").Replace(text) },
	}).Parse(pageTemplate)
	if err != nil {
		return "", err
	}
	var text strings.Builder
	err = t.Execute(&text, p)
	return text.String(), err
}
