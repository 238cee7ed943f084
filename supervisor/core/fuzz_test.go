package core

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
)

// remembered is a disk with an entry of every kind.
func remembered() Durable {
	good := version("good", "1", "good")
	another := testKubelet
	another.Binary = "binary-2"
	return Durable{
		Assigned: good, LastKnownGood: good, Account: Account{Active: good, Text: "kube-system/good/kubelet", NodeUID: "node-1", Retry: "2026-01-01", Before: Conditions{Known: true},
			Trial:    Trial{Content: "good", Kubelet: another, Healthy: Span(90 * time.Second), Unhealthy: 1, Tries: 2, Open: true, HadHealth: true, Longest: Span(time.Hour), Baseline: true, Renewed: true, Before: Conditions{true, "DiskPressure, Ready"}},
			Promoted: Promotion{Content: "good", Kubelet: testKubelet},
			Suspects: []Suspect{{Version: *version("deadly", "2", "deadly"), Kubelet: another, Cause: Exited, Words: "exited 3 times in its trial", Life: Span(time.Second), Excused: true}}},
		Rejected: []Rejection{{Content: "deadly", Binary: testKubelet.Binary, Arguments: testKubelet.Arguments, Cause: StartTimeout, Words: "not healthy"}},
		Proofs:   []Proof{{Content: "good", Kubelet: testKubelet, Outcome: kubeletconfig.Accepted, Warnings: []string{"unknown field"}}},
	}
}

// The forms of the lists below STATE_DIR/meta.
type (
	rejectedOnDisk struct {
		Rejections []Rejection `json:"rejections"`
	}
	provedOnDisk struct {
		Proofs []Proof `json:"proofs"`
	}
)

// What is kept is written for people, and nothing is read that would not have been written.
func TestFormat(t *testing.T) {
	disk := remembered()
	for _, cause := range []Cause{Exited, StartTimeout, PortHeld, LeaseLost} {
		disk.Suspects[0].Cause = cause
		data, err := json.Marshal(disk)
		if err != nil {
			t.Fatal(err)
		}
		for _, words := range []string{`"healthy":"1m30s"`, `"unhealthy":"1ns"`, `"longest":"1h0m0s"`, `"life":"1s"`} {
			if !strings.Contains(string(data), words) {
				t.Errorf("%s lacks %s", data, words)
			}
		}
		var read Durable
		if err := json.Unmarshal(data, &read); err != nil {
			t.Error(err)
		}
		if read.Trial != disk.Trial || !reflect.DeepEqual(read.Suspects, disk.Suspects) {
			t.Errorf("%+v\nread as\n%+v", disk, read)
		}
	}
	for text, want := range map[string]string{
		`{}`:                              "",
		`{"trial":{"tries":0}}`:           "",
		`{"trial":{"healthy":"0s"}}`:      "",
		`{"trial":{"tries":-1}}`:          "-1 is no count",
		`{"trial":{"tries":"x"}}`:         "cannot unmarshal string",
		`{"trial":{"healthy":"-1ns"}}`:    `"-1ns" is not a time such as 1m30s`,
		`{"trial":{"longest":"soon"}}`:    `"soon" is not a time such as 1m30s`,
		`{"suspects":[{"life":"-1s"}]}`:   `"-1s" is not a time such as 1m30s`,
		`{"suspects":[{"cause":"Moon"}]}`: `"Moon" is not one of the causes Exited, StartTimeout, PortHeld and LeaseLost`,
	} {
		var read Durable
		err := json.Unmarshal([]byte(text), &read)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// Whatever was decoded from the state folder, the core comes to a decision and shows something.
func FuzzStateOnDisk(f *testing.F) {
	trial, err := json.Marshal(remembered().Account)
	if err != nil {
		f.Fatal(err)
	}
	rejected, err := json.Marshal(rejectedOnDisk{remembered().Rejected})
	if err != nil {
		f.Fatal(err)
	}
	preflight, err := json.Marshal(provedOnDisk{remembered().Proofs})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(trial, rejected, preflight)
	f.Add([]byte(`{"trial":{"content":"x","tries":9223372036854775807,"open":true,"healthy":"2562047h"},"active":{}}`), []byte(`{"rejections":null}`), []byte(`{"proofs":[{}]}`))
	f.Fuzz(func(t *testing.T, trial, rejected, preflight []byte) {
		disk := Durable{Assigned: remembered().Assigned, LastKnownGood: version("other", "1", "other")}
		var r rejectedOnDisk
		var p provedOnDisk
		for data, into := range map[string]any{string(trial): &disk.Account, string(rejected): &r, string(preflight): &p} {
			if json.Unmarshal([]byte(data), into) != nil {
				return
			}
		}
		disk.Rejected, disk.Proofs = r.Rejections, p.Proofs
		d := newDrive(t)
		d.disk = disk
		d.boot().pass(time.Hour)
		if !d.s.Child.Alive {
			t.Errorf("no kubelet runs: %s", d.shown())
		}
		shown, due := Report(d.s)
		if !due || shown.Reason == "" || !utf8.ValidString(shown.Reason) {
			t.Errorf("shows %+v", shown)
		}
	})
}
