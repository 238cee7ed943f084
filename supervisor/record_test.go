//go:build linux

package supervisor

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/core"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/kubelet"
)

func TestReadRecord(t *testing.T) {
	self := kubelet.ProcessOf(os.Getpid())
	encode := func(change func(r *Record)) string {
		r := Record{APIVersion: recordVersion, Supervisor: self, BootID: kubelet.BootID()}
		change(&r)
		data, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	for name, test := range map[string]struct {
		content string
		running bool
		err     string
	}{
		"of a supervisor that runs":         {encode(func(*Record) {}), true, ""},
		"of one that is gone":               {encode(func(r *Record) { r.Supervisor.StartTime-- }), false, ""},
		"of one before the last boot":       {encode(func(r *Record) { r.BootID = "another" }), false, ""},
		"without a supervisor":              {encode(func(r *Record) { r.Supervisor = kubelet.Process{} }), false, ""},
		"of another version":                {encode(func(r *Record) { r.APIVersion = "kubelet-supervisor.io/v9" }), false, `it is of version "kubelet-supervisor.io/v9", and this program reads "kubelet-supervisor.io/v1"`},
		"cut off":                           {`{"apiVersion": "kub`, false, "decoding: unexpected end of JSON input"},
		"empty":                             {"", false, "decoding: unexpected end of JSON input"},
		"of a program that knew more of it": {strings.Replace(encode(func(*Record) {}), "{", `{"invented": 1,`, 1), true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			path := filepath.Join(folder, recordFile)
			if err := os.WriteFile(path, []byte(test.content), 0o600); err != nil {
				t.Fatal(err)
			}
			record, running, err := ReadRecord(folder)
			if running != test.running {
				t.Errorf("running: %t", running)
			}
			if test.err != "" && (err == nil || err.Error() != "reading "+path+": "+test.err) || test.err == "" && err != nil {
				t.Errorf("error %v", err)
			}
			if err != nil && !cmp.Equal(record, Record{}) {
				t.Errorf("with an error comes %+v", record)
			}
		})
	}
	if _, _, err := ReadRecord(t.TempDir()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an absent record gives %v", err)
	}
}

func TestAnUnchangedRecordIsNotWritten(t *testing.T) {
	folder := t.TempDir()
	r := newRecord(folder)
	before := r.write()
	written, _, err := ReadRecord(folder)
	if errors.Join(before, err) != nil {
		t.Fatal(before, err)
	}
	if err := os.Remove(r.path); err != nil {
		t.Fatal(err)
	}
	if err := r.write(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := ReadRecord(folder); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it was written again: %v", err)
	}
	r.Generation++
	if err := r.write(); err != nil {
		t.Fatal(err)
	}
	again, running, err := ReadRecord(folder)
	if err != nil || !running || again.Generation != written.Generation+1 || again.Written.Before(written.Written) {
		t.Errorf("running %t, %v, %+v", running, err, again)
	}
}

func TestARecordOfAnotherChildIsNotThatOfTheOneBefore(t *testing.T) {
	folder := t.TempDir()
	r := newRecord(folder)
	r.Healthy = true
	command := exec.Command("sleep", "1000")
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = command.Process.Kill(); _ = command.Wait() })
	r.started(kubelet.ProcessOf(command.Process.Pid))
	record, _, err := ReadRecord(folder)
	if err != nil || record.Healthy || record.Child == nil || !record.Child.Alive() || record.Child.PID != command.Process.Pid {
		t.Errorf("%v, %+v", err, record)
	}
}

func TestARecordThatCannotBeWritten(t *testing.T) {
	r := newRecord(filepath.Join(t.TempDir(), "absent"))
	if err := r.write(); err == nil || !strings.HasPrefix(err.Error(), "writing ") {
		t.Errorf("got %v", err)
	}
}

func TestOnlyTheNewestExitsAreRecorded(t *testing.T) {
	r, s := newRecord(t.TempDir()), core.New(core.Settings{TrialPeriod: 10 * time.Minute, TrialFailures: 3, StartTimeout: 2 * time.Minute})
	for i := range recordedExits + 3 {
		s.Wall = time.Unix(int64(i), 0)
		r.ended(&s, core.ChildExited{Words: "exit code 1"})
	}
	if len(r.Exits) != recordedExits || r.Exits[0].Time != time.Unix(3, 0) || r.Exits[recordedExits-1].Time != s.Wall {
		t.Errorf("recorded %+v", r.Exits)
	}
}

func FuzzDecodeRecord(f *testing.F) {
	seed, err := json.Marshal(Record{APIVersion: recordVersion, Child: &kubelet.Process{PID: 1}, Exits: []RecordedExit{{Words: "exit code 1"}}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(seed)
	f.Add([]byte(`{"apiVersion":"kubelet-supervisor.io/v1","config":null,"trial":{"of":{}},"written":"2026-01-01T00:00:00Z"}`))
	f.Add([]byte(`{"apiVersion":"kubelet-supervisor.io/v2"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		record, err := decodeRecord(data)
		if err != nil {
			return
		}
		once, err := json.Marshal(record)
		if err != nil {
			t.Fatalf("%+v was read and cannot be written: %v", record, err)
		}
		again, err := decodeRecord(once)
		if err != nil {
			t.Fatal(err)
		}
		if twice, err := json.Marshal(again); err != nil || !bytes.Equal(once, twice) {
			t.Errorf("not the same when read again: %s, %s, %v", once, twice, err)
		}
	})
}
