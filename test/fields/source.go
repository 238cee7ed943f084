package main

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"iter"
	"os"
	"slices"
	"strings"
)

// A row is what kubeletconfig/fields.csv says of one field.
type row struct {
	Path         string
	Type         string // as it looks in JSON; this, Since and Until are made from the kubelets' types
	Since, Until string // minor versions: it came with, it went with; empty: with or before the first of kubelets, not yet
	Default      string
	Class        string // empty: that of the nearest field that it is in
	Effect       string // what a change does, for one line
	Details      string // more of it, for the page
	TakesEffect  string
	RunningPods  string
	Drain        string
	StateFile    string
	With         string // what else has to follow
	Flags        string // of the kubelet that win over the field, with spaces between
	Source       string
	Checked      string
	Secret       string // yes: its values, and those in it, may be secrets
}

// columns are the names of the columns, in order.
var columns = []string{
	"path", "type", "since", "until", "default", "class", "effect", "details",
	"takes_effect", "running_pods", "drain", "state_file", "with", "flags", "source", "checked", "secret",
}

// cells are where the columns are kept, in the same order.
func (r *row) cells() []*string {
	return []*string{
		&r.Path, &r.Type, &r.Since, &r.Until, &r.Default, &r.Class, &r.Effect, &r.Details,
		&r.TakesEffect, &r.RunningPods, &r.Drain, &r.StateFile, &r.With, &r.Flags, &r.Source, &r.Checked, &r.Secret,
	}
}

// readRows reads the file; the comment is what stands above its table.
func readRows(path string) (comment string, rows []row, err error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return "", nil, err
	}
	reader := csv.NewReader(bytes.NewReader(content))
	reader.Comment = '#'
	records, err := reader.ReadAll()
	if err != nil {
		return "", nil, fmt.Errorf("reading %s: %w", path, err)
	}
	if len(records) == 0 || !slices.Equal(records[0], columns) {
		return "", nil, fmt.Errorf("reading %s: its columns are not %s", path, strings.Join(columns, ","))
	}
	for line := range strings.Lines(string(content)) {
		if !strings.HasPrefix(line, "#") {
			break
		}
		comment += line
	}
	for _, record := range records[1:] {
		var r row
		for i, cell := range r.cells() {
			*cell = record[i]
		}
		rows = append(rows, r)
	}
	return comment, rows, nil
}

func writeRows(path, comment string, rows []row) error {
	records := [][]string{columns}
	for _, r := range rows {
		var record []string
		for _, cell := range r.cells() {
			record = append(record, *cell)
		}
		records = append(records, record)
	}
	text := bytes.NewBufferString(comment)
	if err := csv.NewWriter(text).WriteAll(records); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return os.WriteFile(path, text.Bytes(), 0o644)
}

func sorted(rows iter.Seq[row]) []row {
	return slices.SortedFunc(rows, func(a, b row) int { return strings.Compare(a.Path, b.Path) })
}
