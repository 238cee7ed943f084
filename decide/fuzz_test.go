package decide

import (
	"encoding/json"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/kubelet-supervisor/kubelet-supervisor/config"
)

// remembered is a disk with an entry of every kind.
func remembered() Durable {
	good := version("good", "1", "good")
	another := testKubelet
	another.Binary = "binary-2"
	return Durable{
		Assigned: good, LastKnownGood: good, Account: Account{Active: good, Text: "kube-system/good/kubelet", NodeUID: "node-1", Retry: "2026-01-01",
			Trial:    Trial{Content: "good", Kubelet: another, Healthy: Span(90 * time.Second), Unhealthy: 1, Tries: 2, Open: true, HadHealth: true, Longest: Span(time.Hour), Baseline: true, Renewed: true},
			Promoted: Promotion{Content: "good", Kubelet: testKubelet},
			Suspects: []Suspect{{Version: *version("deadly", "2", "deadly"), Kubelet: another, Cause: Exited, Words: "exited 3 times in its trial", Life: Span(time.Second), Excused: true}}},
		Rejected: []Rejection{{Content: "deadly", Binary: testKubelet.Binary, Arguments: testKubelet.Arguments, Cause: StartTimeout, Words: "not healthy"}},
		Proofs:   []Proof{{Content: "good", Kubelet: testKubelet, Outcome: config.Accepted, Warnings: []string{"unknown field"}}},
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
