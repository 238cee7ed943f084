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
	"text/template"
	"time"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/scale/pools"
)

//go:embed soak-pools.md.tmpl
var pageText string

// settled is after which time of a process its memory is looked at.
const settled = 30 * time.Minute

// A page is all runs of one commit.
type page struct {
	Commit string
	Runs   []result
	Took   time.Duration
	Acts   []counted
	Says   []counted
	Growth []string
}

type counted struct {
	Name  string
	Times int
}

// writePage writes the page from files of results. Runs of different commits are no sum, and an error.
func writePage(file string, from []string) error {
	var p page
	acts, says := map[string]int{}, map[string]int{}
	for _, name := range from {
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		for lines := bufio.NewReader(bytes.NewReader(text)); ; {
			line, err := lines.ReadBytes('\n')
			if err != nil {
				break
			}
			var r result
			if err := json.Unmarshal(line, &r); err != nil {
				return fmt.Errorf("reading %s: %w", name, err)
			}
			if p.Commit != "" && p.Commit != r.Commit {
				return fmt.Errorf("%s is of commit %s, and what comes before of %s: give the files of one commit", name, r.Commit, p.Commit)
			}
			p.Commit = r.Commit
			p.Runs, p.Took = append(p.Runs, r), p.Took+r.Took
			for act, times := range r.Acts {
				acts[act] += times
			}
			for reason, times := range r.Reasons {
				says[reason] += times
			}
			p.Growth = append(p.Growth, growth(r.Samples)...)
		}
	}
	if len(p.Runs) == 0 {
		return fmt.Errorf("there are no results in %v: run make soak-pools before", from)
	}
	p.Acts, p.Says = sorted(acts), sorted(says)
	var text bytes.Buffer
	if err := template.Must(template.New("").Parse(pageText)).Execute(&text, p); err != nil {
		return err
	}
	return os.WriteFile(file, text.Bytes(), 0o644) //nolint:gosec // anybody may read it
}

func sorted(all map[string]int) (list []counted) {
	for _, name := range slices.Sorted(maps.Keys(all)) {
		list = append(list, counted{name, all[name]})
	}
	return list
}

// growth says of each process that was looked at for longer than settled what it took at the first look after that, and at the last.
func growth(samples []pools.Sample) (words []string) {
	type look struct {
		at time.Duration
		pools.Taken
	}
	for name, of := range map[string]func(pools.Sample) pools.Taken{"controller": func(s pools.Sample) pools.Taken { return s.Controller },
		"supervisor": func(s pools.Sample) pools.Taken { return s.Supervisor }} {
		lives := map[int][]look{}
		for _, s := range samples {
			if t := of(s); t.Process != 0 {
				lives[t.Process] = append(lives[t.Process], look{s.At, t})
			}
		}
		for _, life := range lives {
			first := slices.IndexFunc(life, func(l look) bool { return l.at-life[0].at >= settled })
			if first < 0 || first == len(life)-1 {
				continue
			}
			a, b := life[first], life[len(life)-1]
			words = append(words, fmt.Sprintf("%s: from %.1f to %.1f MiB of anonymous memory, and from %d to %d descriptors, in %s", name, a.Anonymous, b.Anonymous,
				a.Files, b.Files, (b.at-a.at).Round(time.Minute)))
		}
	}
	slices.Sort(words)
	return words
}
