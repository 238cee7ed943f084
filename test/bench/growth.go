//go:build linux

package main

import (
	"errors"
	"fmt"
	"math"
	"strings"
)

// A line is value = Fixed + Each × nodes, with the least squares of the residuals.
type line struct {
	Fixed, Each float64
	Unit        string
	Residuals   string // what was seen less what the line says, the fewest nodes first
}

// Fit lays a line through what all runs have of a row. A figure that is given for each node is multiplied first: what grows is the sum.
func (p *page) Fit(name string) (l line, err error) {
	var xs, ys []float64
	var n, sumX, sumY, sumXX, sumXY float64
	for _, r := range p.Scale {
		row, err := r.Row(sectionNodes, name)
		if err != nil {
			return l, err
		}
		x, y := nodesOf(r), row.Median()
		var each bool
		if l.Unit, each = strings.CutSuffix(row.Unit, "/node"); each {
			y *= x
		}
		xs, ys = append(xs, x), append(ys, y)
		n, sumX, sumY, sumXX, sumXY = n+1, sumX+x, sumY+y, sumXX+x*x, sumXY+x*y
	}
	width := n*sumXX - sumX*sumX
	if n < 2 || width == 0 {
		return l, fmt.Errorf("%g runs with many nodes: give the result files of two or more with different numbers", n)
	}
	l.Each = (n*sumXY - sumX*sumY) / width
	l.Fixed = (sumY - l.Each*sumX) / n
	var residuals []string
	for i, x := range xs {
		residuals = append(residuals, signed(ys[i]-l.at(x)))
	}
	l.Residuals = strings.Join(residuals, ", ")
	return l, nil
}

func (l line) at(nodes float64) float64 { return l.Fixed + l.Each*nodes }

// At is what the line says of so many nodes.
func (l line) At(nodes float64) string { return figure(rounded(l.at(nodes))) + " " + l.Unit }

// Model is the line in words.
func (l line) Model() string {
	return fmt.Sprintf("%s %s × nodes", strings.TrimPrefix(signed(l.Fixed), "+"), strings.Replace(signed(l.Each), "+", "+ ", 1))
}

func signed(value float64) string {
	switch value = rounded(value); {
	case value == 0:
		return "0"
	case value > 0:
		return "+" + figure(value)
	}
	return "− " + figure(-value)
}

// rounded keeps figure from showing what is nothing but the computer's last digits.
func rounded(value float64) float64 {
	if r := math.Round(value*1e6) / 1e6; r == math.Trunc(r) {
		return r
	}
	return value
}

// Last is the run with the most nodes, for what is the same in all.
func (p *page) Last() (*Result, error) {
	if len(p.Scale) == 0 {
		return nil, errors.New("there is no result of bench nodes")
	}
	return p.Scale[len(p.Scale)-1], nil
}

// A rowLine is a row of all runs with many nodes.
type rowLine struct {
	Name string
	Rows []*Row
}

// Line finds a row in all of them.
func (p *page) Line(name string) (l rowLine, err error) {
	l.Name = name
	for _, r := range p.Scale {
		row, err := r.Row(sectionNodes, name)
		if err != nil {
			return l, err
		}
		l.Rows = append(l.Rows, row)
	}
	return l, nil
}

// StartsTooMany are those of kubelets that should not have been started.
func (p *page) StartsTooMany() (total float64, err error) {
	l, err := p.Line("kubelet starts too many")
	for _, row := range l.Rows {
		total += row.Median()
	}
	return total, err
}

// nodesOf is how many nodes a run had.
func nodesOf(r *Result) float64 {
	row, err := r.Row(sectionNodes, "nodes")
	if err != nil {
		return 0
	}
	return row.Median()
}
