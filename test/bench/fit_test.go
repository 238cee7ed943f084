package main

import (
	"math"
	"testing"
)

func TestFitFindsTheLine(t *testing.T) {
	l, err := fit([]point{{1, 5}, {100, 203}, {500, 1003}, {1000, 2003}})
	if err != nil || math.Abs(l.fixed-3) > 1e-6 || math.Abs(l.each-2) > 1e-9 || math.Abs(l.at(15000)-30003) > 1e-4 {
		t.Errorf("the line is %+v, %v; expected was 3 + 2 × nodes", l, err)
	}
	if words := l.residuals(); words != "0, 0, 0, 0" {
		t.Errorf("the residuals of points on the line are %q", words)
	}
	l, err = fit([]point{{0, 1}, {10, 0}, {20, 2}})
	if err != nil || l.residuals() != "+0.500, − 1, +0.500" || l.worst() != 0.5 {
		t.Errorf("residuals %q, the worst %g, %v", l.residuals(), l.worst(), err)
	}
	if _, err := fit([]point{{100, 1}, {100, 2}}); err == nil {
		t.Error("two runs with as many nodes make a line")
	}
}
