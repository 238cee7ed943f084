//go:build linux

package main

import (
	"strings"
	"testing"
	"time"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/scale/pools"
)

// A process grows where the line through its memory rises by more than it may, however ragged that is, or its descriptors do.
func TestGrowth(t *testing.T) {
	for name, c := range map[string]struct {
		anonymous func(minute int) float64
		files     func(minute int) int
		grows     bool
	}{
		"at rest":                {func(int) float64 { return 20 }, func(int) int { return 12 }, false},
		"up and down":            {func(m int) float64 { return 20 + float64(m%7) }, func(m int) int { return 12 + m%2 }, false},
		"0.5 MiB in an hour":     {func(m int) float64 { return 20 + float64(m)/120 }, func(int) int { return 12 }, false},
		"3 MiB in an hour":       {func(m int) float64 { return 20 + float64(m)/20 + float64(m%3) }, func(int) int { return 12 }, true},
		"1.2 MiB, and chance":    {func(m int) float64 { return 20 + float64(m)/50 + 3*float64(m%2) }, func(int) int { return 12 }, true},
		"3 MiB in the beginning": {func(m int) float64 { return 20 + float64(min(m, 25))/8 }, func(int) int { return 12 }, false},
		"a descriptor more":      {func(int) float64 { return 20 }, func(m int) int { return 12 + m/60 }, true},
	} {
		var r result
		for m := range 91 {
			r.Samples = append(r.Samples, pools.Sample{At: time.Duration(m) * time.Minute,
				Of: []pools.Taken{{Name: "controller", Process: 7, Anonymous: c.anonymous(m), Files: c.files(m)}, {Name: "young", Process: 100 + m/40, Anonymous: float64(m)}}})
		}
		all := growths(r)
		if len(all) != 1 || all[0].Name != "controller" || all[0].Grows() != c.grows {
			t.Errorf("%s: %+v, want one of the controller that grows: %t", name, all, c.grows)
		}
	}
}

// A run that is long enough fails for each process that grows, in words that name it, its growth and the limit. Any other one has no verdict.
func TestVerdict(t *testing.T) {
	at := func(minutes int, each ...pools.Taken) pools.Sample {
		return pools.Sample{At: time.Duration(minutes) * time.Minute, Of: each}
	}
	of := func(name string, process int, anonymous float64, files int) pools.Taken {
		return pools.Taken{Name: name, Process: process, Anonymous: anonymous, Files: files}
	}
	run := func(minutes int, spares bool, controller float64, files int) (r result) {
		r.Seed, r.Spared, r.Took = 7, spares, time.Duration(minutes)*time.Minute
		for m := range minutes + 1 {
			r.Samples = append(r.Samples, at(m, of(pools.LeadController, 1, 20+controller*float64(m)/60, 10), of(pools.FakeSupervisor, 2, 7, 18+files*m/60), of(pools.RealSupervisor, 3, 7, 19)))
		}
		return r
	}
	young := run(60, true, 0, 0)
	for i := range young.Samples {
		young.Samples[i].Of[0].Process = 100 + i/30
	}
	for name, c := range map[string]struct {
		run          result
		words, fails string
	}{
		"at rest":               {run(46, true, 0, 0), "no process grows: each by 1.00 MiB in an hour at most", ""},
		"as much as it may":     {run(60, true, 0.99, 0), "no process grows", ""},
		"a controller grows":    {run(60, true, 1.5, 0), "", "controller grows by 1.50 ± 0.00 MiB in an hour (from 20.88 to 21.38 MiB in 30m0s): 1.00 MiB in an hour is the most"},
		"descriptors":           {run(90, true, 0, 1), "", "supervisor, fake kubelet has 19 descriptors after 1h0m0s, and had 18"},
		"short":                 {run(44, true, 5, 9), "no verdict on growth: a run of 44m0s is shorter than the 45m0s", ""},
		"nobody is spared":      {run(60, false, 5, 0), "no verdict on growth: in a run of an even seed", ""},
		"it was another one":    {young, "no verdict on the growth of controller: no process of it was looked at for 15m0s after its first 30m0s", ""},
		"nobody was looked at":  {result{Soaked: pools.Soaked{Spared: true, Took: time.Hour}}, "supervisor, real kubelet", ""},
		"it ended in its first": {result{}, "no verdict on growth: a run of 0s", ""},
	} {
		words, failure := verdict(c.run)
		said := ""
		if failure != nil {
			said = failure.Error()
		}
		if !strings.Contains(words, c.words) || (failure != nil) != (c.fails != "") || !strings.Contains(said, c.fails) {
			t.Errorf("%s: it says %q, and fails with %q", name, words, said)
		}
	}
}
