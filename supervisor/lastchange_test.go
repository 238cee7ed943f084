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

	"github.com/kubelet-supervisor/kubelet-supervisor/decide"
	"github.com/kubelet-supervisor/kubelet-supervisor/status"
)

func aChange() decide.LastChange {
	at := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	return decide.LastChange{To: golden().Assigned, Began: at, Phase: decide.PhaseStart,
		Took: decide.Phases{Download: decide.Span(40 * time.Millisecond), Stop: decide.Span(1234567 * time.Microsecond)}}
}

// What one supervisor has noted the next one reads, whatever became of the file between them.
func TestTheChangeOfTheSupervisorBefore(t *testing.T) {
	record := goldenRecord()
	record.LastChange = &RecordedChange{aChange()}
	data, err := encodeRecord(record)
	if err != nil {
		t.Fatal(err)
	}
	cut := string(data)
	for name, row := range map[string]struct {
		content string
		want    decide.LastChange
	}{
		"as it was written":      {cut, aChange()},
		"of an earlier program":  {strings.Replace(cut, `"lastChange"`, `"somethingElse"`, 1), decide.LastChange{}},
		"of a later program":     {strings.Replace(cut, `"download": "40ms"`, `"download": 40`, 1), decide.LastChange{}},
		"with more":              {strings.Replace(cut, `"download": "40ms"`, `"download": "40ms", "invented": 1`, 1), aChange()},
		"with a time below zero": {strings.Replace(cut, `"40ms"`, `"-40ms"`, 1), decide.LastChange{}},
		"cut off":                {cut[:len(cut)/2], decide.LastChange{}},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			if err := os.WriteFile(filepath.Join(folder, recordFile), []byte(row.content), 0o600); err != nil {
				t.Fatal(err)
			}
			got := (&loop{Options: Options{RunDir: folder}}).changeBefore()
			if diff := cmp.Diff(row.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
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

func TestWhatTheNodeSaysOfAChange(t *testing.T) {
	var none, open, over, told status.Report
	reportChange(&none, decide.LastChange{})
	if none.LastChange != "" || none.LastChangeGist != "" || !none.ChangeToReport.IsZero() {
		t.Errorf("without a change: %+v", none)
	}
	c := aChange()
	reportChange(&open, c)
	const want = `{"from":"local","to":"kube-system/workers/kubelet","resourceVersion":"4711","began":"2026-01-02T03:04:05Z",` +
		`"phases":[{"name":"download","took":"40ms"},{"name":"stop","took":"1.235s"}],"phase":"start"}`
	if open.LastChange != want || !open.ChangeToReport.IsZero() {
		t.Errorf("open: %+v", open)
	}
	c.Phase, c.Ended, c.Outcome = decide.PhaseReport, c.Began.Add(time.Second), "InTrial"
	reportChange(&over, c)
	if !over.ChangeToReport.Equal(c.Began) || over.LastChangeGist == open.LastChangeGist || strings.Contains(over.LastChange, "report") {
		t.Errorf("over: %+v", over)
	}
	c.Phase, c.Took.Report = "", decide.Span(10*time.Millisecond)
	reportChange(&told, c)
	if !told.ChangeToReport.IsZero() || told.LastChangeGist != over.LastChangeGist || !strings.Contains(told.LastChange, `{"name":"report","took":"10ms"}`) {
		t.Errorf("told: %+v", told)
	}
}
