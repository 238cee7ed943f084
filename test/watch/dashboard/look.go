//go:build linux

package dashboard

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A panel is what the picture needs of one of the dashboard.
type panel struct {
	Title       string
	Type        string
	FieldConfig struct{ Defaults struct{ Unit string } }
	Targets     []struct{ Expr, LegendFormat string }

	answers []answer
}

// An answer is what Prometheus had for a query.
type answer struct {
	expr, legend string
	series       []Series
}

// An alert is one that was seen in a state.
type alert struct {
	name, state string
	most        int           // at once
	lasted      time.Duration // in all, with any number of them
}

// Looked is all that was seen.
type Looked struct {
	Began, End time.Time
	Series     int // of ours that Prometheus had at the end

	panels []panel
	alerts []alert
	rules  int           // that there are
	failed int           // of them, that could not be evaluated
	step   time.Duration // from one point of an answer to the next
}

// mostPoints is how many points Prometheus answers with, of each series, and a little less.
const mostPoints = 10_000

// Look asks every query of the dashboard over all the time, one by one. A query that is refused is an error; one that never had an answer is not.
func (d *Dashboard) Look(ctx context.Context, began, end time.Time) (*Looked, error) {
	text, err := os.ReadFile(filepath.Join(d.Mixin, "dashboards", "kubelet-supervisor.json"))
	if err != nil {
		return nil, err
	}
	var dashboard struct{ Panels []panel }
	if err := json.Unmarshal(text, &dashboard); err != nil {
		return nil, err
	}
	l := &Looked{panels: dashboard.Panels, Began: began, End: end, step: stepOf(end.Sub(began), d.Every)}
	var failures error
	for i := range l.panels {
		p := &l.panels[i]
		for _, target := range p.Targets {
			found, err := d.over(ctx, target.Expr, l)
			if err != nil {
				failures = errors.Join(failures, fmt.Errorf("panel %q, query %s: %w", p.Title, target.Expr, err))
			}
			p.answers = append(p.answers, answer{target.Expr, target.LegendFormat, found})
		}
	}
	return l, errors.Join(failures, d.lookAtRules(ctx, l), d.lookAtAlerts(ctx, l))
}

// stepOf is how often a query over such a time is asked: as often as everybody is read, where Prometheus lets it.
func stepOf(lasts, every time.Duration) time.Duration {
	return max(every, (lasts / mostPoints).Round(time.Second))
}

// Unanswered is an error that names each query which never had an answer.
func (l *Looked) Unanswered() (failures error) {
	for _, p := range l.panels {
		for _, a := range p.answers {
			if len(a.series) == 0 {
				failures = errors.Join(failures, fmt.Errorf("panel %q, query %s: it never had an answer", p.Title, a.expr))
			}
		}
	}
	return failures
}

func (d *Dashboard) over(ctx context.Context, expr string, l *Looked) ([]Series, error) {
	return d.Ask(ctx, "query_range", url.Values{"query": {expr}, "step": {strconv.Itoa(int(l.step / time.Second))},
		"start": {strconv.FormatInt(l.Began.Unix(), 10)}, "end": {strconv.FormatInt(l.End.Unix(), 10)}})
}

// lookAtRules sees to it that each rule could be evaluated, and counts the series.
func (d *Dashboard) lookAtRules(ctx context.Context, l *Looked) (failures error) {
	var all struct {
		Groups []struct {
			Rules []struct{ Name, Health, LastError string }
		}
	}
	if err := d.get(ctx, "rules", &all); err != nil {
		return err
	}
	for _, g := range all.Groups {
		for _, r := range g.Rules {
			l.rules++
			if r.Health != "ok" {
				l.failed++
				failures = errors.Join(failures, fmt.Errorf("rule %s is %s: %s", r.Name, r.Health, r.LastError))
			}
		}
	}
	count, err := d.Ask(ctx, "query", url.Values{"query": {`count({__name__=~"kubelet_.+|kube_.+|cluster:.+"})`}, "time": {strconv.FormatInt(l.End.Unix(), 10)}})
	if len(count) == 1 {
		l.Series = int(count[0].last())
	}
	return errors.Join(failures, err)
}

// lookAtAlerts notes which there were at any time.
func (d *Dashboard) lookAtAlerts(ctx context.Context, l *Looked) error {
	found, err := d.over(ctx, "count by (alertname, alertstate) (ALERTS)", l)
	for _, s := range found {
		l.alerts = append(l.alerts, alert{s.Metric["alertname"], s.Metric["alertstate"], int(answer{series: []Series{s}}.most()), time.Duration(len(s.Values)) * l.step})
	}
	slices.SortFunc(l.alerts, func(a, b alert) int { return strings.Compare(a.name+a.state, b.name+b.state) })
	return err
}

var words = regexp.MustCompile(`\{\{ *(\w+) *\}\}`)

// named is how Grafana names a series.
func (a answer) named(metric map[string]string) string {
	if a.legend == "" {
		return ""
	}
	return strings.TrimSpace(words.ReplaceAllStringFunc(a.legend, func(word string) string { return metric[words.FindStringSubmatch(word)[1]] }))
}
