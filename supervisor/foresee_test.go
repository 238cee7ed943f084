//go:build linux

package supervisor

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/forecast"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/core"
)

// What is certain holds, what is not is said, who has not answered is waited for, and a line is a line.
func TestForeseen(t *testing.T) {
	change := core.Change{Content: "one"}
	loss := func(name string, changes ...func(*forecast.Loss)) forecast.Loss {
		l := forecast.Loss{Namespace: "default", Name: name, UID: "uid-" + name, Reason: "OutOfpods", Certain: true}
		for _, change := range changes {
			change(&l)
		}
		return l
	}
	told := func(name string) nodev1.Loss {
		return nodev1.Loss{Pod: "default/" + name, UID: "uid-" + name, Reason: "OutOfpods"}
	}
	perhaps := func(l *forecast.Loss) { l.Certain = false }
	static := func(l *forecast.Loss) { l.Static = true }
	restarted := func(l *forecast.Loss) { l.Restarted, l.DaemonSet = true, true }
	a, b := loss("a"), loss("b", perhaps)
	const aWords = "1 of 7 running pods would be killed at the restart: default/a (OutOfpods)"
	unknown := forecast.Forecast{Missing: []forecast.Unknown{{What: "the Node", Why: "it is not known"}}}
	never := unknowable{errors.New("the kubelet is a script")}
	for name, row := range map[string]struct {
		f        forecast.Forecast
		troubles []error
		want     core.Foreseen
	}{
		"nothing": {forecast.Forecast{Running: 7}, nil, core.Foreseen{Known: true}},
		"a pod": {forecast.Forecast{Running: 7, Losses: []forecast.Loss{a}, Least: 1, LeastOfAll: 1}, nil,
			core.Foreseen{Known: true, Lost: 1, Losses: []nodev1.Loss{told("a")}, Words: aWords}},
		"a cgroup": {forecast.Forecast{Running: 7, Cgroups: []forecast.Overfull{{Cgroup: "/system.slice", Field: "systemReserved.pid", Used: 20, Limit: 5}}}, nil,
			core.Foreseen{Known: true, Lost: 1, Losses: []nodev1.Loss{{Pod: "cgroup /system.slice", Reason: "OutOfpid"}},
				Words: "none of 7 running pods would be killed at the restart; cgroup /system.slice would be limited by systemReserved.pid to 5 processes and threads, and has 20: none could begin in it, and the kubelet and the container runtime may be in it"}},
		"an uncertain pod": {forecast.Forecast{Running: 7, Losses: []forecast.Loss{b}}, nil,
			core.Foreseen{Known: true, InDoubt: []nodev1.Loss{told("b")}, Warning: "up to 1 of 7 running pods would be killed at the restart: default/b (OutOfpods?)"}},
		"one of two, and not which": {forecast.Forecast{Running: 7, Losses: []forecast.Loss{b, loss("c", perhaps)}, Least: 1, LeastOfAll: 1}, nil,
			core.Foreseen{Known: true, Lost: 1, Losses: []nodev1.Loss{told("b"), told("c")}, InDoubt: []nodev1.Loss{told("b"), told("c")}, Words: "1 or more of 7 running pods would be killed at the restart: default/b (OutOfpods?), default/c (OutOfpods?)"}},
		"a static pod": {forecast.Forecast{Static: []forecast.Loss{loss("a", static)}}, nil,
			core.Foreseen{Known: true, Lost: 1, Losses: []nodev1.Loss{told("a")}, Words: "none of 0 running pods would be killed at the restart; of static pods: default/a (OutOfpods)"}},
		"a pod that any restart would kill": {forecast.Forecast{Running: 7, Anyway: []forecast.Loss{a}, LeastOfAll: 1}, nil,
			core.Foreseen{Known: true, Lost: 1, Losses: []nodev1.Loss{told("a")},
				Words: "none of 7 running pods would be killed by the change; any restart would kill, with the configuration that runs too: default/a (OutOfpods)"}},
		"one that any restart may kill": {forecast.Forecast{Running: 7, Anyway: []forecast.Loss{b}}, nil,
			core.Foreseen{Known: true, InDoubt: []nodev1.Loss{told("b")}, Warning: "none of 7 running pods would be killed by the change; any restart would kill, with the configuration that runs too: default/b (OutOfpods?)"}},
		"one that may be evicted, which cannot be measured": {forecast.Forecast{Running: 7, Unmeasured: []forecast.Loss{b}, Doubts: []forecast.Unknown{{What: "evictionHard", Why: "not measured"}}}, nil,
			core.Foreseen{Known: true, InDoubt: []nodev1.Loss{told("b")}, Warning: "evictionHard: not measured"}},
		"containers of a DaemonSet that begin anew": {forecast.Forecast{Running: 7, Losses: []forecast.Loss{loss("d", restarted)}, Least: 1, LeastOfAll: 1}, nil,
			core.Foreseen{Known: true, Warning: "1 of 7 running pods would be restarted at the restart: default/d (OutOfpods)"}},
		"and another pod": {forecast.Forecast{Running: 7, Losses: []forecast.Loss{loss("d", restarted), a}, Least: 2, LeastOfAll: 2}, nil,
			core.Foreseen{Known: true, Lost: 1, Losses: []nodev1.Loss{told("a")}, Words: "2 of 7 running pods would be killed or restarted at the restart: default/d (OutOfpods), default/a (OutOfpods)"}},
		"a certain one, and a doubt about the Node": {forecast.Forecast{Running: 7, Losses: []forecast.Loss{a}, Least: 1, LeastOfAll: 1, Doubts: []forecast.Unknown{{What: "the Node's allocatable pods", Why: "it is 20"}}}, nil,
			core.Foreseen{Known: true, Lost: 1, Losses: []nodev1.Loss{told("a")}, Words: aWords, Warning: "the Node's allocatable pods: it is 20"}},
		"an API server that is away":     {unknown, []error{errors.New("reading Node n1: no\nanswer"), errors.New("no pods")}, core.Foreseen{WaitsFor: "reading Node n1: no answer; no pods"}},
		"an old container runtime":       {forecast.Forecast{Running: 7}, []error{unknowable{errors.New("no CRI v1")}}, core.Foreseen{Known: true, Warning: "no CRI v1"}},
		"what nobody can say":            {unknown, []error{fmt.Errorf("what runs: %w", never)}, core.Foreseen{Warning: "what runs: the kubelet is a script"}},
		"both":                           {unknown, []error{never, errors.New("no pods")}, core.Foreseen{WaitsFor: "no pods", Warning: "the kubelet is a script"}},
		"what the kubelet does not tell": {forecast.Forecast{Doubts: []forecast.Unknown{{What: "featureGates", Why: "X changes"}}}, nil, core.Foreseen{Known: true, Warning: "featureGates: X changes"}},
	} {
		t.Run(name, func(t *testing.T) {
			row.want.Change = change
			if diff := cmp.Diff(row.want, foreseen(change, row.f, row.troubles)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	long := forecast.Forecast{Losses: slices.Repeat([]forecast.Loss{{Namespace: "default", Name: strings.Repeat("x", 253), Reason: "OutOfpods", Certain: true}}, 9), Least: 9, LeastOfAll: 9}
	if got := foreseen(change, long, nil); len(got.Words) > foreseenLimit {
		t.Errorf("%d bytes: %s", len(got.Words), got.Words)
	}
}
