//go:build linux

package dashboard

import (
	"bytes"
	"fmt"
	"os/exec"
	"strings"
	"time"
)

const (
	columns       = 3
	width, height = 1500, 300 // of the picture, and of one row of it; in pixels
)

// ticks are how the time is marked: four times or so.
func (l *Looked) ticks() string {
	lasts, format := l.End.Sub(l.Began), "%M:%S"
	if lasts >= time.Hour {
		format = "%H:%M"
	}
	every := 24 * time.Hour
	for _, d := range []time.Duration{6 * time.Hour, 2 * time.Hour, time.Hour, 30 * time.Minute, 10 * time.Minute, 5 * time.Minute, 2 * time.Minute, time.Minute} {
		if lasts/d <= 5 {
			every = d
		}
	}
	return fmt.Sprintf("set xdata time; set timefmt '%%s'; set format x '%s'; set xtics %d; ", format, int(every.Seconds()))
}

// Draw has gnuplot draw the panels, as they follow each other in the dashboard. A line ends where there is no answer.
func (l *Looked) Draw(file string) error {
	rows := (len(l.panels) + columns - 1) / columns
	var script bytes.Buffer
	say := func(format string, words ...any) { _, _ = fmt.Fprintf(&script, format+"\n", words...) }
	say("set terminal png size %d,%d font 'DejaVuSans,9' background '#ffffff'", width, rows*height)
	say("set output %s", quoted(file))
	say("set multiplot layout %d,%d", rows, columns)
	say("%sset xrange [0:%d]; set grid lc rgb '#dddddd'; set border 3; set tics nomirror; set key below horizontal; set bmargin 6", l.ticks(), int(l.End.Sub(l.Began).Seconds()))
	for _, p := range l.panels {
		l.drawPanel(say, p)
	}
	say("unset multiplot")
	command := exec.Command("gnuplot")
	command.Stdin = &script
	if output, err := command.CombinedOutput(); err != nil || len(output) > 0 {
		return fmt.Errorf("gnuplot: %w: %s", err, output)
	}
	return nil
}

func (l *Looked) drawPanel(say func(string, ...any), p panel) {
	var lines, points []string
	most := 0.0
	for _, a := range p.answers {
		for _, s := range a.series {
			lines = append(lines, fmt.Sprintf("'-' using 1:2 with lines lw 2 lc %d title %s", len(lines)+1, quoted(a.named(s.Metric))))
			var text strings.Builder
			before := 0.0
			for _, v := range s.Values {
				if v[1] == "NaN" {
					continue
				}
				if before > 0 && v.at()-before > 1.5*l.step.Seconds() {
					text.WriteString("\n")
				}
				before, most = v.at(), max(most, v.value())
				_, _ = fmt.Fprintf(&text, "%.0f %g\n", v.at()-float64(l.Began.UnixMilli())/float64(time.Second/time.Millisecond), v.value())
			}
			points = append(points, text.String()+"e")
		}
	}
	unit := p.FieldConfig.Defaults.Unit
	if unit == "short" {
		unit = ""
	} else {
		unit = " [" + unit + "]"
	}
	say("set title %s", quoted(p.Title+unit))
	say("set yrange [0:%g]", max(most*1.1, 1e-3))
	if len(lines) == 0 {
		say("set label 1 'no answer' at graph 0.4,0.5; plot 0 notitle; unset label 1")
		return
	}
	say("plot %s", strings.Join(lines, ", "))
	for _, text := range points {
		say("%s", text)
	}
}

// quoted is a text for gnuplot, which reads no escapes in single quotes.
func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }
