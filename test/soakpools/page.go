//go:build linux

package main

import (
	"bufio"
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"text/template"
	"time"
)

//go:embed soak-pools.md.tmpl
var pageText string

// A page is all runs of one commit.
type page struct {
	Commit string
	Runs   []result
	Took   time.Duration
	Acts   []counted
	Says   []counted
	Growth []growth
}

type counted struct {
	Name  string
	Times int
}

// writePage writes the page, and the series beside it, from files of results, and gives the runs. Runs of different commits are no sum, and an error.
func writePage(file string, from []string) ([]result, error) {
	var p page
	acts, says := map[string]int{}, map[string]int{}
	for _, name := range from {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		for lines := bufio.NewReader(bytes.NewReader(text)); ; {
			line, err := lines.ReadBytes('\n')
			if err != nil {
				break
			}
			var r result
			if err := json.Unmarshal(line, &r); err != nil {
				return nil, fmt.Errorf("reading %s: %w", name, err)
			}
			r.Failure, _, _ = strings.Cut(r.Failure, "\n") // what follows are logs
			if p.Commit != "" && p.Commit != r.Commit {
				return nil, fmt.Errorf("%s is of commit %s, and what comes before of %s: give the files of one commit", name, r.Commit, p.Commit)
			}
			p.Commit = r.Commit
			p.Runs, p.Took = append(p.Runs, r), p.Took+r.Took
			for act, times := range r.Acts {
				acts[act] += times
			}
			for reason, times := range r.Reasons {
				says[reason] += times
			}
			p.Growth = append(p.Growth, growths(r)...)
		}
	}
	if len(p.Runs) == 0 {
		return nil, fmt.Errorf("there are no results in %v: run make soak-pools before", from)
	}
	p.Acts, p.Says = sorted(acts), sorted(says)
	var text bytes.Buffer
	if err := template.Must(template.New("").Parse(pageText)).Execute(&text, p); err != nil {
		return nil, err
	}
	if err := os.WriteFile(file, text.Bytes(), 0o644); err != nil { //nolint:gosec // anybody may read it
		return nil, err
	}
	return p.Runs, writeSeries(strings.TrimSuffix(file, ".md"), p.Runs)
}

func sorted(all map[string]int) (list []counted) {
	for _, name := range slices.Sorted(maps.Keys(all)) {
		list = append(list, counted{name, all[name]})
	}
	return list
}
