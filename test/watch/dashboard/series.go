//go:build linux

package dashboard

import (
	"fmt"
	"math"
)

// A Series is one that Prometheus has answered with.
type Series struct {
	Metric map[string]string `json:"metric"`
	Value  *sample           `json:"value"`
	Values []sample          `json:"values"`
}

// A sample is a time in seconds, and a value as text.
type sample [2]any

func (s sample) at() float64 { at, _ := s[0].(float64); return at }

func (s sample) value() float64 {
	var value float64
	text, _ := s[1].(string)
	if _, err := fmt.Sscan(text, &value); err != nil || math.IsNaN(value) {
		return 0 // drawPanel leaves NaN out
	}
	return value
}

func (s Series) last() float64 {
	if s.Value != nil {
		return s.Value.value()
	}
	if len(s.Values) == 0 {
		return 0
	}
	return s.Values[len(s.Values)-1].value()
}

// most is the largest value of an answer.
func (a answer) most() (most float64) {
	for _, s := range a.series {
		for _, v := range s.Values {
			most = max(most, v.value())
		}
	}
	return most
}
