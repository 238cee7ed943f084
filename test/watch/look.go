package main

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
	series       []series
}

// A looked is all that was seen.
type looked struct {
	panels     []panel
	alerts     []string // NAME state, as they were seen at any time
	rules      int      // that were evaluated
	began, end time.Time
	series     int // that Prometheus had
}

// look asks every query of the dashboard over all the time, one by one.
func (s *stage) look(ctx context.Context, began time.Time) (*looked, error) {
	text, err := os.ReadFile(filepath.Join(s.mixin, "dashboards", "kubelet-supervisor.json"))
	if err != nil {
		return nil, err
	}
	var dashboard struct{ Panels []panel }
	if err := json.Unmarshal(text, &dashboard); err != nil {
		return nil, err
	}
	l := &looked{panels: dashboard.Panels, began: began, end: time.Now()}
	var failures error
	for i := range l.panels {
		p := &l.panels[i]
		for _, target := range p.Targets {
			found, err := s.over(ctx, target.Expr, l)
			if err == nil && len(found) == 0 {
				err = errors.New("it never had an answer")
			}
			if err != nil {
				failures = errors.Join(failures, fmt.Errorf("panel %q, query %s: %w", p.Title, target.Expr, err))
			}
			p.answers = append(p.answers, answer{target.Expr, target.LegendFormat, found})
		}
	}
	return l, errors.Join(failures, s.lookAtRules(ctx, l))
}

func (s *stage) over(ctx context.Context, expr string, l *looked) ([]series, error) {
	return s.ask(ctx, "query_range", url.Values{"query": {expr}, "step": {strconv.Itoa(int(readEvery / time.Second))},
		"start": {strconv.FormatInt(l.began.Unix(), 10)}, "end": {strconv.FormatInt(l.end.Unix(), 10)}})
}

// lookAtRules sees to it that each rule could be evaluated, and which alerts there were.
func (s *stage) lookAtRules(ctx context.Context, l *looked) error {
	var all struct {
		Groups []struct {
			Rules []struct{ Name, Health, LastError string }
		}
	}
	if err := s.get(ctx, "rules", &all); err != nil {
		return err
	}
	var failures error
	for _, g := range all.Groups {
		for _, r := range g.Rules {
			l.rules++
			if r.Health != "ok" {
				failures = errors.Join(failures, fmt.Errorf("rule %s is %s: %s", r.Name, r.Health, r.LastError))
			}
		}
	}
	alerts, err := s.over(ctx, "count by (alertname, alertstate) (ALERTS)", l)
	for _, a := range alerts {
		l.alerts = append(l.alerts, a.Metric["alertname"]+" "+a.Metric["alertstate"])
	}
	slices.Sort(l.alerts)
	count, countErr := s.ask(ctx, "query", url.Values{"query": {`count({__name__=~"kubelet_.+|kube_.+|cluster:.+"})`}})
	if len(count) == 1 {
		l.series = int(count[0].last())
	}
	return errors.Join(failures, err, countErr)
}

var words = regexp.MustCompile(`\{\{ *(\w+) *\}\}`)

// named is how Grafana names a series.
func (a answer) named(metric map[string]string) string {
	if a.legend == "" {
		return ""
	}
	return strings.TrimSpace(words.ReplaceAllStringFunc(a.legend, func(word string) string { return metric[words.FindStringSubmatch(word)[1]] }))
}
