package supervisor

import (
	"slices"
	"strings"
	"testing"

	"github.com/kubelet-supervisor/kubelet-supervisor/decide"
	"github.com/kubelet-supervisor/kubelet-supervisor/forecast"
)

// What is certain holds, what is not is said, and a line is a line.
func TestForeseen(t *testing.T) {
	change := decide.Change{Content: "one"}
	be1, be2 := forecast.Loss{Namespace: "default", Name: "be1", Reason: "OutOfpods", Certain: true}, forecast.Loss{Namespace: "default", Name: "be2", Reason: "OutOfpods"}
	static := be1
	static.Static = true
	for _, row := range []struct {
		name           string
		f              forecast.Forecast
		troubles       []string
		lost           int
		words, unknown string
	}{
		{"nothing", forecast.Forecast{Running: 7}, nil, 0, "", ""},
		{"a pod", forecast.Forecast{Running: 7, Losses: []forecast.Loss{be1}, Least: 1, LeastOfAll: 1}, nil, 1, "1 of 7 running pods would be killed at the restart: default/be1 (OutOfpods)", ""},
		{"an uncertain pod", forecast.Forecast{Running: 7, Losses: []forecast.Loss{be2}}, nil, 0, "", "up to 1 of 7 running pods would be killed at the restart: default/be2 (OutOfpods?)"},
		{"a static pod", forecast.Forecast{Static: []forecast.Loss{static}}, nil, 1, "none of 0 running pods would be killed at the restart; of static pods: default/be1 (OutOfpods)", ""},
		{"by any restart", forecast.Forecast{Running: 7, Anyway: []forecast.Loss{be1}, LeastOfAll: 1}, nil, 1,
			"none of 7 running pods would be killed by the change; any restart would kill, with the configuration that runs too: default/be1 (OutOfpods)", ""},
		{"perhaps by any restart", forecast.Forecast{Running: 7, Anyway: []forecast.Loss{be2}}, nil, 0, "",
			"none of 7 running pods would be killed by the change; any restart would kill, with the configuration that runs too: default/be2 (OutOfpods?)"},
		{"an API server that is away", forecast.Forecast{}, []string{"reading Node n1: no\nanswer"}, 0, "", "reading Node n1: no answer"},
		{"what the kubelet does not tell", forecast.Forecast{Doubts: []forecast.Unknown{{What: "featureGates", Why: "X changes"}}}, nil, 0, "", "featureGates: X changes"},
	} {
		t.Run(row.name, func(t *testing.T) {
			want := decide.Foreseen{Change: change, Lost: row.lost, Words: row.words, Unknown: row.unknown}
			if got := foreseen(change, row.f, row.troubles); got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
	long := forecast.Forecast{Losses: slices.Repeat([]forecast.Loss{{Namespace: "default", Name: strings.Repeat("x", 253), Reason: "OutOfpods", Certain: true}}, 9), Least: 9, LeastOfAll: 9}
	if got := foreseen(change, long, nil); len(got.Words) > foreseenLimit {
		t.Errorf("%d bytes: %s", len(got.Words), got.Words)
	}
}
