//go:build linux

package supervisor

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/core"
)

func aChange() core.LastChange {
	at := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	return core.LastChange{To: golden().Assigned, Began: at, Phase: core.PhaseStart,
		Took: core.Phases{Download: core.Span(40 * time.Millisecond), Stop: core.Span(1234567 * time.Microsecond)}}
}

// What one supervisor has noted the next one reads, whatever became of the file between them.
func TestTheChangeOfTheSupervisorBefore(t *testing.T) {
	record := goldenRecord()
	record.LastChange = &RecordedChange{aChange()}
	record.Status.Reason, record.Status.Since = "InTrial", aChange().Began
	data, err := encodeRecord(record)
	if err != nil {
		t.Fatal(err)
	}
	cut := string(data)
	for name, row := range map[string]struct {
		content string
		want    core.LastChange
	}{
		"as it was written":      {cut, aChange()},
		"of an earlier program":  {strings.Replace(cut, `"lastChange"`, `"somethingElse"`, 1), core.LastChange{}},
		"of a later program":     {strings.Replace(cut, `"download": "40ms"`, `"download": 40`, 1), core.LastChange{}},
		"with more":              {strings.Replace(cut, `"download": "40ms"`, `"download": "40ms", "invented": 1`, 1), aChange()},
		"with a time below zero": {strings.Replace(cut, `"40ms"`, `"-40ms"`, 1), core.LastChange{}},
		"with another status":    {strings.Replace(cut, `"reason": "InTrial",`+"\n    ", `"reason": 7, `, 1), aChange()},
		"cut off":                {cut[:len(cut)/2], core.LastChange{}},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			if err := os.WriteFile(filepath.Join(folder, recordFile), []byte(row.content), 0o600); err != nil {
				t.Fatal(err)
			}
			got, said := wire(Options{RunDir: folder}).recordBefore()
			if diff := cmp.Diff(row.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if want := (core.Said{Reason: "InTrial", Since: aChange().Began}); name != "cut off" && name != "with another status" && said != want {
				t.Errorf("said %+v", said)
			}
			before, _, err := ReadRecord(folder)
			if name != "cut off" && (err != nil || before.Child == nil) {
				t.Errorf("the rest of it: %v, %+v", err, before)
			}
		})
	}
}

// A program that does not know of it reads the rest: every field but this one is what it was.
func TestAnEarlierProgramReadsTheRecord(t *testing.T) {
	record := goldenRecord()
	record.LastChange = &RecordedChange{aChange()}
	data, err := json.Marshal(record)
	if err != nil {
		t.Fatal(err)
	}
	type earlier struct {
		Record
		LastChange bool `json:"-"`
	}
	var read earlier
	if err := json.Unmarshal(data, &read); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(goldenRecord(), read.Record, cmpopts.IgnoreFields(Record{}, "LastChange")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
