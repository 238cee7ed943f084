//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
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

	Kubelets []*kubeletSeen `json:"kubelets,omitempty"` // by bench matrix
	Servers  []*kubeletSeen `json:"servers,omitempty"`  // by bench servers
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
	Missed    bool      `json:"missed,omitempty"`  // by the median
	AtLeast   bool      `json:"atLeast,omitempty"` // it was given up: what was waited for had not come by then

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
	r.Reference = reference.id()
	return r
}

func (r *Row) add(sample float64)             { r.Samples = append(r.Samples, sample) }
func (r *Row) addTime(took time.Duration)     { r.add(milliseconds(took)) }
func milliseconds(took time.Duration) float64 { return float64(took.Microseconds()) / 1000 }

// Median is the middle sample, or the mean of the two in the middle.
func (r *Row) Median() float64 {
	sorted := slices.Sorted(slices.Values(r.Samples))
	if len(sorted) == 0 {
		return 0
	}
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}

// Share is the sample below which so much of them are: 0 is the least, 1 the most.
func (r *Row) Share(of float64) float64 {
	sorted := slices.Sorted(slices.Values(r.Samples))
	return sorted[min(len(sorted)-1, int(of*float64(len(sorted))))]
}

// Value is the median with its unit.
func (r *Row) Value() string {
	text := strings.TrimSpace(figure(r.Median()) + " " + r.Unit)
	if r.AtLeast {
		return "> " + text
	}
	return text
}

// Of is the name of the reference.
func (r *Row) Of() string {
	_, name, _ := strings.Cut(r.Reference, "/")
	return name
}

// row makes a new row.
func (r *Result) row(section, name, unit string) *Row {
	row := &Row{Section: section, Name: name, Unit: unit}
	r.Rows = append(r.Rows, row)
	return row
}

// Row finds a row; one that is not there is an error, and never a 0.
func (r *Result) Row(section, name string) (*Row, error) {
	at := slices.IndexFunc(r.Rows, func(row *Row) bool { return row.Section == section && row.Name == name })
	if at < 0 || len(r.Rows[at].Samples) == 0 {
		return nil, fmt.Errorf("the result of %s has no row %s/%s; measure it again", r.Commit, section, name)
	}
	return r.Rows[at], nil
}

// Of gives the rows of a section.
func (r *Result) Of(section string) (rows []*Row) {
	for _, row := range r.Rows {
		if row.Section == section {
			rows = append(rows, row)
		}
	}
	return rows
}

func (r *Result) has(section string) bool { return len(r.Of(section)) > 0 }

// Missed gives the rows whose budget is missed.
func (r *Result) Missed() (rows []*Row) {
	for _, row := range r.Rows {
		if row.Missed {
			rows = append(rows, row)
		}
	}
	return rows
}

// finish computes what depends on other rows; a row without samples is an error of this program.
func (r *Result) finish() error {
	medians := map[string]float64{}
	for _, row := range r.Rows {
		if len(row.Samples) == 0 {
			return fmt.Errorf("%s was not measured", row.id())
		}
		medians[row.id()] = row.Median()
	}
	for _, row := range r.Rows {
		if reference := medians[row.Reference]; reference > 0 {
			row.Ratio = row.Median() / reference
		}
		switch {
		case row.Budget == "":
		case row.mostRatio > 0:
			row.Missed = row.AtLeast || row.Ratio > row.mostRatio
		default:
			row.Missed = row.AtLeast || row.Median() > row.most
		}
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
		return nil, fmt.Errorf("decoding %s: %w; give a file that bench wrote", path, err)
	}
	return r, nil
}
