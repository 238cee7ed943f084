package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// What is extrapolated to.
var larger = []float64{5000, 15000}

// Growth lays a line through each row and follows it to fleets that are too large to be measured here. A figure that is given for each
// node is multiplied first: what grows is the sum.
func (s *scalePage) Growth() (string, error) {
	lines := [][]string{{"what", "line", "residuals, smallest fleet first", "at 5,000", "at 15,000"}}
	for _, name := range []string{
		waveAssigned + ": until a node runs it", waveEdited + ": until a node runs it", waveEdited + ": requests in the busiest second",
		waveAssigned + ": processor time of the API server", waveEdited + ": processor time of the API server", waveSpread + ": processor time of the API server",
		"supervisors, steady: RSS of the API server", "supervisors, steady: processor time of the API server", "supervisors and Leases: processor time of the API server",
		"all on trial, and Leases: processor time of the API server", "all on trial, and Leases: supervisors' requests",
	} {
		l, unit, err := s.sum(name)
		if err != nil {
			return "", err
		}
		cells := []string{name, l.model() + " " + unit, l.residuals()}
		for _, nodes := range larger {
			cells = append(cells, strings.TrimSpace(figure(round(l.at(nodes)))+" "+unit))
		}
		lines = append(lines, cells)
	}
	return markdownTable(lines), nil
}

// sum is the line of a row; of one for each node, that of all nodes together.
func (s *scalePage) sum(name string) (line, string, error) {
	l, err := s.fit(name)
	if err != nil {
		return l, "", err
	}
	unit := s.Last().find(sectionNodes + "/" + name).Unit
	if each, is := strings.CutSuffix(unit, "/node"); is {
		unit = each
		for i := range l.points {
			l.points[i].value *= l.points[i].nodes
		}
		if l, err = fit(l.points); err != nil {
			return l, "", err
		}
	}
	return l, unit, nil
}

// A demand is what a fleet asks of API servers, by arithmetic from what one node was seen to ask.
type demand struct {
	Nodes float64

	Watches       float64 // the supervisors'
	KubeletWatchs float64
	Memory        float64 // MiB more of the API servers together
	WatchBreaks   float64 // requests/s because watches end after 5 to 10 min
	LeasesAsked   float64 // GETs/s while all are on trial
	LeasesRenewed float64 // PUTs/s, the kubelets'
	Requests      float64 // of one edit of all
	Processor     float64 // s of the API servers for it
	Rate          float64 // requests/s with the default --edit-spread
	Cores         float64 // of the API servers meanwhile
	SpreadForHalf float64 // s of --edit-spread with which it takes half a processor
	Payload       float64 // MB that an edit sends at once
	PayloadMost   float64 // GB, where the ConfigMap is as large as may be
}

// Figures of the arithmetic that are not measured here.
const (
	defaultSpread   = 60.0  // s
	meanWatch       = 450.0 // s: a watch ends after 5 to 10 min
	requestsAtBreak = 2.0   // LIST and watch
	ownWatches      = 2.0
	kubeletWatches  = 5.0  // seen of kubelet 1.36.3 by make bench
	leaseEvery      = 10.0 // s, both the kubelet's renewal and a look at it in a trial
	payloadMost     = 1.0 / 1024
)

// Demand computes it for a fleet of so many nodes.
func (s *scalePage) Demand(nodes float64) (demand, error) {
	d := demand{Nodes: nodes, Watches: ownWatches * nodes, KubeletWatchs: kubeletWatches * nodes,
		WatchBreaks: nodes * ownWatches * requestsAtBreak / meanWatch, LeasesAsked: nodes / leaseEvery, LeasesRenewed: nodes / leaseEvery,
		PayloadMost: nodes * payloadMost}
	memory, err := s.fit("supervisors, steady: RSS of the API server")
	if err != nil {
		return d, err
	}
	d.Memory = memory.each * nodes
	// Of the edit without a spread, which is over sooner: looks at Leases come beside it, in the time that it takes.
	requests, err := s.value(s.Last(), waveEdited+": requests")
	if err != nil {
		return d, err
	}
	processor, _, err := s.sum(waveEdited + ": processor time of the API server")
	if err != nil {
		return d, err
	}
	d.Requests = requests*nodes - s.asked(s.Last(), waveEdited, "get leases")*nodes/s.nodes(s.Last())
	d.Processor = processor.each * nodes / 1000
	d.Rate, d.Cores = d.Requests/defaultSpread, d.Processor/defaultSpread
	d.SpreadForHalf = d.Processor / 0.5
	d.Payload = nodes * payloadHere / 1e6
	return d, nil
}

// asked gives how many requests of a kind there were in a wave; 0 where there were none.
func (s *scalePage) asked(r *Result, wave, kind string) float64 {
	for _, line := range r.Asked {
		kinds, is := strings.CutPrefix(line, wave+": ")
		if !is {
			continue
		}
		for _, words := range strings.Split(kinds, ", ") {
			if count, of, _ := strings.Cut(words, " "); of == kind {
				n, _ := strconv.ParseFloat(count, 64)
				return n
			}
		}
	}
	return 0
}

// payloadHere is about what the ConfigMap of the measurement has as an event of a watch, in bytes.
const payloadHere = 1800

// Demands are the rows of the arithmetic.
func (s *scalePage) Demands() (string, error) {
	lines := [][]string{{"of the API servers together"}}
	var all []demand
	for _, nodes := range append([]float64{s.nodes(s.Last())}, larger...) {
		d, err := s.Demand(nodes)
		if err != nil {
			return "", err
		}
		lines[0] = append(lines[0], fmt.Sprintf("%g nodes", nodes))
		all = append(all, d)
	}
	for _, row := range []struct {
		name string
		of   func(demand) string
	}{
		{"open watches: supervisors' + kubelets'", func(d demand) string { return fmt.Sprintf("%g + %g", d.Watches, d.KubeletWatchs) }},
		{"memory for the supervisors' connections and watches", func(d demand) string { return figure(d.Memory) + " MiB" }},
		{"steady: supervisors' requests (LIST and watch anew)", func(d demand) string { return figure(d.WatchBreaks) + " /s" }},
		{"steady: kubelets' renewals of Leases", func(d demand) string { return figure(d.LeasesRenewed) + " /s" }},
		{"all on trial: looks at Leases", func(d demand) string { return figure(d.LeasesAsked) + " /s" }},
		{"an edit for all: requests, but for looks at Leases", func(d demand) string { return figure(math.Round(d.Requests)) }},
		{"an edit for all: processor time of the API server", func(d demand) string { return figure(d.Processor) + " s" }},
		{"… with --edit-spread=1m: requests", func(d demand) string { return figure(d.Rate) + " /s" }},
		{"… with --edit-spread=1m: processors in use for it", func(d demand) string { return figure(d.Cores) }},
		{"… the spread with which half a processor does", func(d demand) string { return figure(d.SpreadForHalf) + " s" }},
		{"an edit for all: sent at once, whatever the spread, a ConfigMap as here", func(d demand) string { return figure(d.Payload) + " MB" }},
		{"… a ConfigMap of 1 MiB", func(d demand) string { return figure(d.PayloadMost) + " GiB" }},
	} {
		line := []string{row.name}
		for _, d := range all {
			line = append(line, row.of(d))
		}
		lines = append(lines, line)
	}
	return markdownTable(lines), nil
}
