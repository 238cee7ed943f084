package main

import (
	"fmt"
	"math"
	"strings"
)

// A point is a figure of a fleet of so many nodes.
type point struct{ nodes, value float64 }

// A line is value = fixed + each × nodes, with the least squares of the residuals.
type line struct {
	fixed, each float64
	points      []point
}

// fit wants two points of different fleets.
func fit(points []point) (line, error) {
	var n, sumX, sumY, sumXX, sumXY float64
	for _, p := range points {
		n, sumX, sumY, sumXX, sumXY = n+1, sumX+p.nodes, sumY+p.value, sumXX+p.nodes*p.nodes, sumXY+p.nodes*p.value
	}
	spread := n*sumXX - sumX*sumX
	if n < 2 || spread == 0 {
		return line{}, fmt.Errorf("%d fleets: give the result files of two or more of different size", len(points))
	}
	each := (n*sumXY - sumX*sumY) / spread
	return line{fixed: (sumY - each*sumX) / n, each: each, points: points}, nil
}

func (l line) at(nodes float64) float64 { return l.fixed + l.each*nodes }

// residuals tells what was seen less what the line says, for each fleet.
func (l line) residuals() string {
	var words []string
	for _, p := range l.points {
		words = append(words, signed(p.value-l.at(p.nodes)))
	}
	return strings.Join(words, ", ")
}

// worst is the largest residual, as a share of what was seen there.
func (l line) worst() (share float64) {
	for _, p := range l.points {
		if p.value != 0 {
			share = max(share, math.Abs(p.value-l.at(p.nodes))/math.Abs(p.value))
		}
	}
	return share
}

// model is the line in words.
func (l line) model() string {
	return fmt.Sprintf("%s %s × nodes", strings.TrimPrefix(signed(l.fixed), "+"), strings.Replace(signed(l.each), "+", "+ ", 1))
}

func signed(value float64) string {
	switch value = round(value); {
	case value == 0:
		return "0"
	case value > 0:
		return "+" + figure(value)
	}
	return "− " + figure(-value)
}

// round keeps figure from showing what is nothing but the computer's last digits.
func round(value float64) float64 {
	if rounded := math.Round(value*1e6) / 1e6; rounded == math.Trunc(rounded) {
		return rounded
	}
	return value
}
