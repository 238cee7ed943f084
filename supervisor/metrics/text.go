//go:build linux

package metrics

import (
	"bytes"
	"strconv"
	"strings"
)

// The types of metrics.
const (
	counter   = "counter"
	gauge     = "gauge"
	histogram = "histogram"
)

// page is text in the exposition format, version 0.0.4.
type page struct {
	bytes.Buffer
	name string // of the present family
}

type label struct{ name, value string }

var (
	helpEscapes  = strings.NewReplacer(`\`, `\\`, "\n", `\n`)
	valueEscapes = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)
)

// family begins a metric, all samples of which follow.
func (p *page) family(name, kind, help string) {
	p.name = name
	p.WriteString("# HELP " + name + " " + helpEscapes.Replace(help) + "\n# TYPE " + name + " " + kind + "\n")
}

func (p *page) sample(value float64, labels ...label) { p.line("", value, labels) }

// bars writes a histogram: of all buckets, and the last is everything.
func (p *page) bars(h Histogram, labels ...label) {
	total := uint64(0)
	for i, n := range h.Buckets {
		total += n
		le := "+Inf"
		if i < len(bounds) {
			le = number(bounds[i])
		}
		p.line("_bucket", float64(total), append(labels[:len(labels):len(labels)], label{"le", le}))
	}
	p.line("_sum", h.Sum, labels)
	p.line("_count", float64(total), labels)
}

func (p *page) line(suffix string, value float64, labels []label) {
	p.WriteString(p.name + suffix)
	for i, l := range labels {
		before := ","
		if i == 0 {
			before = "{"
		}
		p.WriteString(before + l.name + `="` + valueEscapes.Replace(strings.ToValidUTF8(l.value, "\uFFFD")) + `"`)
	}
	if len(labels) > 0 {
		p.WriteByte('}')
	}
	p.WriteString(" " + number(value) + "\n")
}

func number(value float64) string { return strconv.FormatFloat(value, 'g', -1, 64) }

func truth(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
