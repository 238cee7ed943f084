package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/cluster"
)

// A Result is all that one run measured; its JSON is the result file.
type Result struct {
	Commit  string    `json:"commit"`
	Date    time.Time `json:"date"`
	Machine []string  `json:"machine"` // lines for people
	Rounds  int       `json:"rounds"`

	OOMScore cluster.OOMScore `json:"oomScoreAdj"` // what the kubelets may do with theirs, and so were given

	Settle     string   `json:"settle"` // how long a kubelet was left alone
	Steady     string   `json:"steady"` // how long nothing happened
	Window     string   `json:"window"` // of a change
	Rows       []*Row   `json:"rows"`
	Trace      []Phase  `json:"trace"`      // of one change
	StartTrace []Phase  `json:"startTrace"` // of one start
	Asked      []string `json:"asked"`      // of the API server in one change: who, and what
	Unproved   []string `json:"unproved"`   // what could not be measured, and why

	Upstream *Result `json:"-"` // of another run, for the document
}

// A Row is one figure. Less is better in all of them.
type Row struct {
	Section   string    `json:"section"`
	Name      string    `json:"name"` // with the section the row's identity
	Unit      string    `json:"unit"`
	Samples   []float64 `json:"samples"`
	Reference string    `json:"reference,omitempty"` // Section/Name of another row
	Ratio     float64   `json:"ratio,omitempty"`     // of the medians
	Budget    string    `json:"budget,omitempty"`
	Missed    bool      `json:"missed,omitempty"`    // by the median
	Yardstick bool      `json:"yardstick,omitempty"` // it is not of the supervisor: nothing of ours is better or worse by it
	AtLeast   bool      `json:"atLeast,omitempty"`   // it was given up: what was waited for had not come by then

	mostRatio, most float64 // what the budget allows; 0 = no budget of this kind
}

// A Phase is a part of a change, in the order in which they happened.
type Phase struct {
	Name string  `json:"name"` // what its end is
	At   float64 `json:"at"`   // ms since the begin: the request that changed the Node was sent, or the supervisor was about to be forked
	Took float64 `json:"took"` // ms since the end of the one before
}

func (r *Row) id() string { return r.Section + "/" + r.Name }

// within gives the row a budget in its own unit.
func (r *Row) within(most float64, words string) *Row {
	r.most, r.Budget = most, words
	return r
}

// withinTimes gives the row a reference and a budget as a multiple of it.
func (r *Row) withinTimes(times float64, reference *Row) *Row {
	r.mostRatio, r.Budget = times, fmt.Sprintf("%g × the bare restart", times)
	return r.against(reference)
}

// against gives the row a reference.
func (r *Row) against(reference *Row) *Row {
	r.Reference = reference.yardstick().id()
	return r
}

func (r *Row) yardstick() *Row {
	r.Yardstick = true
	return r
}

func (r *Row) add(sample float64)             { r.Samples = append(r.Samples, sample) }
func (r *Row) addTime(took time.Duration)     { r.add(milliseconds(took)) }
func milliseconds(took time.Duration) float64 { return float64(took.Microseconds()) / 1000 }

// median is the middle sample, or the mean of the two in the middle.
func (r *Row) median() float64 {
	sorted := slices.Sorted(slices.Values(r.Samples))
	if len(sorted) == 0 {
		return 0
	}
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}

// row makes a new row.
func (r *Result) row(section, name, unit string) *Row {
	row := &Row{Section: section, Name: name, Unit: unit}
	r.Rows = append(r.Rows, row)
	return row
}

func (r *Result) find(id string) *Row {
	for _, row := range r.Rows {
		if row.id() == id {
			return row
		}
	}
	return nil
}

// finish computes what depends on other rows; a row without samples is an error of this program.
func (r *Result) finish() error {
	for _, row := range r.Rows {
		if len(row.Samples) == 0 {
			return fmt.Errorf("%s was not measured", row.id())
		}
		if reference := r.find(row.Reference); reference != nil && reference.median() > 0 {
			row.Ratio = row.median() / reference.median()
		}
		row.Missed = row.mostRatio > 0 && row.Ratio > row.mostRatio || row.Budget != "" && row.mostRatio == 0 && row.median() > row.most || row.Budget != "" && row.AtLeast
	}
	return nil
}

func (r *Result) save(path string) error {
	content, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding the results: %w", err)
	}
	return os.WriteFile(path, append(content, '\n'), 0o644)
}

func load(path string) (*Result, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	r := &Result{}
	if err := json.Unmarshal(content, r); err != nil {
		return nil, fmt.Errorf("decoding %s: %w; give a file that make bench wrote", path, err)
	}
	return r, nil
}
