//go:build linux

package dashboard

import (
	"strings"
	"testing"
	"time"
)

// A query without an answer is named, and so is what was seen of the others.
func TestLooked(t *testing.T) {
	began := time.Unix(1000, 0)
	l := &Looked{Began: began, End: began.Add(time.Hour), step: 15 * time.Second, rules: 3, failed: 1, alerts: []alert{{"A", "firing", 3, 75 * time.Second}}, panels: []panel{{Title: "Some", answers: []answer{
		{"a|b", "{{x}} of {{ y }}", []Series{{Metric: map[string]string{"x": "1", "y": "2"}, Values: []sample{{1000.0, "2"}, {1015.0, "NaN"}, {1030.0, "4.5"}}}}}, {"c", "", nil}}}}}
	if err := l.Unanswered(); err == nil || err.Error() != `panel "Some", query c: it never had an answer` {
		t.Errorf("it says %v", err)
	}
	for _, want := range []string{"| Some | `a\\|b` | 1 | 4.5 |\n", "| Some | `c` | 0 | never an answer |\n"} {
		if !strings.Contains(l.Queries(), want) {
			t.Errorf("%q is not in\n%s", want, l.Queries())
		}
	}
	if want := "Of 3 rules 2 were evaluated"; !strings.Contains(l.Rules(), want) || !strings.Contains(l.Rules(), "| A | firing | 3 | 1:15 |\n") {
		t.Error(l.Rules())
	}
	a := l.panels[0].answers[0]
	if named := a.named(a.series[0].Metric); named != "1 of 2" {
		t.Errorf("it is named %q", named)
	}
}

// Whatever a run takes, there are two to five marks of time, and an answer has no more points than Prometheus gives.
func TestTimes(t *testing.T) {
	for lasts, want := range map[time.Duration]string{
		3 * time.Minute: "x '%M:%S'; set xtics 60;", 5 * time.Minute: "x '%M:%S'; set xtics 60;", 45 * time.Minute: "x '%M:%S'; set xtics 600;",
		time.Hour: "x '%H:%M'; set xtics 1800;", 4 * time.Hour: "x '%H:%M'; set xtics 3600;",
	} {
		l := &Looked{End: time.Time{}.Add(lasts)}
		if is := l.ticks(); !strings.Contains(is, want) {
			t.Errorf("%s: %s", lasts, is)
		}
	}
	for lasts, want := range map[time.Duration]time.Duration{5 * time.Minute: 15 * time.Second, 40 * time.Hour: 15 * time.Second, 100 * time.Hour: 36 * time.Second} {
		if is := stepOf(lasts, 15*time.Second); is != want {
			t.Errorf("%s: every %s, want %s", lasts, is, want)
		}
	}
}
