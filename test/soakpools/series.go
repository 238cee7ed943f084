//go:build linux

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// writeSeries writes all looks at processes, and the writes of each minute, as CSV.
func writeSeries(to string, runs []result) error {
	var processes, writes bytes.Buffer
	processes.WriteString("seed,minute,process,name,residentMiB,anonymousMiB,descriptors,threads,diskKiB\n")
	writes.WriteString("seed,minute,byControllers,byNodes,byPeople\n")
	for _, r := range runs {
		for _, s := range r.Samples {
			for _, t := range s.Of {
				_, _ = fmt.Fprintf(&processes, "%d,%.2f,%d,%s,%.2f,%.2f,%d,%d,%.0f\n", r.Seed, s.At.Minutes(), t.Process, strings.ReplaceAll(t.Name, ",", ""),
					t.Resident, t.Anonymous, t.Files, t.Threads, t.Written)
			}
		}
		for i, m := range r.Minutes {
			_, _ = fmt.Fprintf(&writes, "%d,%d,%d,%d,%d\n", r.Seed, i, m.Controller, m.Nodes, m.People)
		}
	}
	return errors.Join(os.WriteFile(to+".csv", processes.Bytes(), 0o644), os.WriteFile(to+"-writes.csv", writes.Bytes(), 0o644)) //nolint:gosec // anybody may read them
}

// A panel is one of the picture: a value of each look.
type panel struct {
	title string
	name  string // of the process
	value func(look) float64
}

// draw has gnuplot draw memory, descriptors and writes over the time, a line for each process of a run.
func draw(file string, runs []result) error {
	var panels []panel
	for _, name := range namesOf(runs) {
		panels = append(panels, panel{name + ": anonymous memory [MiB]", name, func(l look) float64 { return l.Anonymous }},
			panel{name + ": descriptors", name, func(l look) float64 { return float64(l.Files) }},
			panel{name + ": written to the disk [KiB]", name, func(l look) float64 { return l.Written }})
	}
	var script bytes.Buffer
	say := func(format string, words ...any) { _, _ = fmt.Fprintf(&script, format+"\n", words...) }
	const columns, width, height = 3, 1500, 260
	say("set terminal png size %d,%d font 'DejaVuSans,9' background '#ffffff'", width, (len(panels)/columns+1)*height)
	say("set output '%s'", file)
	say("set multiplot layout %d,%d", len(panels)/columns+1, columns)
	say("set grid lc rgb '#dddddd'; set border 3; set tics nomirror; set key off; set xlabel 'minutes'; set yrange [0:*]")
	for _, p := range panels {
		var of []curve
		for _, r := range runs {
			for _, life := range livesOf(r) {
				var c curve
				for _, l := range life {
					if l.Name == p.name {
						c.point(l.at.Minutes(), p.value(l))
					}
				}
				of = append(of, c)
			}
		}
		plot(say, p.title, of)
	}
	for i, title := range []string{"writes of Nodes in a minute, by controllers", "the same, by nodes", "the same, by people"} {
		var of []curve
		for _, r := range runs {
			var c curve
			for minute, m := range r.Minutes {
				c.point(float64(minute), float64([]int{m.Controller, m.Nodes, m.People}[i]))
			}
			of = append(of, c)
		}
		plot(say, title, of)
	}
	say("unset multiplot")
	command := exec.Command("gnuplot")
	command.Stdin = &script
	if output, err := command.CombinedOutput(); err != nil || len(output) > 0 {
		return fmt.Errorf("gnuplot: %w: %s", err, output)
	}
	return nil
}

// namesOf are those of the processes that were looked at, in the order in which they were seen.
func namesOf(runs []result) (names []string) {
	for _, r := range runs {
		for _, life := range livesOf(r) {
			if !slices.Contains(names, life[0].Name) {
				names = append(names, life[0].Name)
			}
		}
	}
	return names
}

// A curve is points as gnuplot reads them.
type curve struct {
	points []byte
	most   float64
}

func (c *curve) point(minute, value float64) {
	c.points, c.most = fmt.Appendf(c.points, "%.2f %g\n", minute, value), max(c.most, value)
}

// plot draws one panel, a line for each curve. One of nothing but 0 has no height of its own.
func plot(say func(string, ...any), title string, of []curve) {
	of = slices.DeleteFunc(of, func(c curve) bool { return len(c.points) == 0 })
	say("set title '%s'", title)
	if len(of) == 0 {
		say("set label 1 'nothing was seen' at graph 0.4,0.5; set yrange [0:1]; plot [0:1] -1 notitle; unset label 1; set yrange [0:*]")
		return
	}
	var lines []string
	for i := range of {
		lines = append(lines, fmt.Sprintf("'-' using 1:2 with linespoints pt 7 ps 0.2 lc %d", i+1))
	}
	if !slices.ContainsFunc(of, func(c curve) bool { return c.most > 0 }) {
		say("set yrange [0:1]")
	}
	say("plot %s", strings.Join(lines, ", "))
	for _, c := range of {
		say("%se", c.points)
	}
	say("set yrange [0:*]")
}
