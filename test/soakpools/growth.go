//go:build linux

package main

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/scale/pools"
)

const (
	settled   = 30 * time.Minute // of a process' life, after which its memory is looked at
	lookedFor = 15 * time.Minute // at least, from then on
	mostPer   = 1.0              // MiB of anonymous memory in an hour
)

// A growth is of one process, after settled.
type growth struct {
	Seed         uint64
	Name         string
	Took         time.Duration // from settled to the last look
	Looks        int
	Begin, End   float64 // MiB of anonymous memory: the mean of the first and of the last ten minutes
	Slope, Error float64 // MiB in an hour: the line of least squares, and its standard error as if the looks knew nothing of each other
	Files, Last  int     // descriptors: the median of the first ten minutes and of the last
}

// Grows: it takes more than it may. What is above the budget is above it: an error of the line is no excuse. Descriptors may not grow at all.
func (g growth) Grows() bool { return g.Slope > mostPer || g.Last > g.Files }

// spared are the processes that nobody harms in a run of an odd seed.
var spared = []string{pools.LeadController, pools.FakeSupervisor, pools.RealSupervisor}

// verdict is an error that names each process of a run that grows. Its words say of which there is no verdict, and why: most often the run was
// shorter than a verdict takes.
func verdict(r result) (words string, failure error) {
	switch least := settled + lookedFor; {
	case r.Took < least:
		return fmt.Sprintf("no verdict on growth: a run of %s is shorter than the %s that it takes", r.Took.Round(time.Second), least), nil
	case !r.Spared:
		return fmt.Sprintf("no verdict on growth: in a run of an even seed, such as %d, every process may be killed", r.Seed), nil
	}
	seen := map[string]bool{}
	for _, g := range growths(r) {
		seen[g.Name] = true
		if g.Slope > mostPer {
			failure = errors.Join(failure, fmt.Errorf("%s grows by %.2f ± %.2f MiB in an hour (from %.2f to %.2f MiB in %s): %.2f MiB in an hour is the most that it may",
				g.Name, g.Slope, g.Error, g.Begin, g.End, g.Took.Round(time.Second), mostPer))
		}
		if g.Last > g.Files {
			failure = errors.Join(failure, fmt.Errorf("%s has %d descriptors after %s, and had %d: it may have none more", g.Name, g.Last, g.Took.Round(time.Second), g.Files))
		}
	}
	for _, name := range spared {
		if seen[name] {
			continue
		}
		words += fmt.Sprintf("no verdict on the growth of %s: no process of it was looked at for %s after its first %s\n", name, lookedFor, settled)
	}
	if words = strings.TrimSuffix(words, "\n"); words == "" && failure == nil {
		words = fmt.Sprintf("no process grows: each by %.2f MiB in an hour at most, and by no descriptor", mostPer)
	}
	return words, failure
}

// A look is one at a process, at a time of its run.
type look struct {
	at time.Duration
	pools.Taken
}

// livesOf are the looks at each process, in the order in which they began.
func livesOf(r result) (lives [][]look) {
	at := map[int]int{}
	for _, s := range r.Samples {
		for _, t := range s.Of {
			i, known := at[t.Process]
			if !known {
				i, lives = len(lives), append(lives, nil)
				at[t.Process] = i
			}
			lives[i] = append(lives[i], look{s.At, t})
		}
	}
	return lives
}

// growths are of all processes of a run that were looked at for long enough.
func growths(r result) (all []growth) {
	for _, life := range livesOf(r) {
		first := slices.IndexFunc(life, func(l look) bool { return l.at-life[0].at >= settled })
		if first < 0 || life[len(life)-1].at-life[first].at < lookedFor {
			continue
		}
		life = life[first:]
		g := growth{Seed: r.Seed, Name: life[0].Name, Took: life[len(life)-1].at - life[0].at, Looks: len(life)}
		var hours, memory []float64
		for _, l := range life {
			hours, memory = append(hours, l.at.Hours()), append(memory, l.Anonymous)
		}
		g.Slope, g.Error = line(hours, memory)
		const ends = 10 * time.Minute
		g.Begin, g.Files = middle(life, life[0].at, life[0].at+ends)
		g.End, g.Last = middle(life, life[len(life)-1].at-ends, life[len(life)-1].at)
		all = append(all, g)
	}
	return all
}

// middle is the mean of the memory and the median of the descriptors from one time to another.
func middle(life []look, from, to time.Duration) (memory float64, files int) {
	var looks int
	var descriptors []int
	for _, l := range life {
		if l.at >= from && l.at <= to {
			memory, looks, descriptors = memory+l.Anonymous, looks+1, append(descriptors, l.Files)
		}
	}
	slices.Sort(descriptors)
	return memory / float64(looks), descriptors[looks/2]
}

// line is the slope of the line of least squares through these points, and its standard error.
func line(x, y []float64) (slope, deviation float64) {
	n := float64(len(x))
	var meanX, meanY float64
	for i := range x {
		meanX, meanY = meanX+x[i]/n, meanY+y[i]/n
	}
	var xx, xy float64
	for i := range x {
		xx, xy = xx+(x[i]-meanX)*(x[i]-meanX), xy+(x[i]-meanX)*(y[i]-meanY)
	}
	slope = xy / xx
	var rest float64
	for i := range x {
		d := y[i] - meanY - slope*(x[i]-meanX)
		rest += d * d
	}
	return slope, math.Sqrt(rest / (n - 2) / xx)
}
