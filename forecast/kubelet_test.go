package forecast_test

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/differential"
)

// What the kubelet's own admission made of some hundred nodes is recorded (`make record-forecast`): the forecast has no fault there, and says what
// it said when that was recorded. A forecast that is meant to say something else is recorded anew, and the difference read.
func TestRecordedKubelet(t *testing.T) {
	file, err := os.Open("testdata/kubelet.jsonl.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	records, err := differential.ReadRecords(file)
	if err != nil {
		t.Fatal(err)
	}
	if len(records) < 100 {
		t.Errorf("there are %d records", len(records))
	}
	for _, r := range records {
		said, faults := r.Judge()
		for _, fault := range faults {
			t.Errorf("SEED=%d: %s", r.Seed, fault)
		}
		if diff := cmp.Diff(r.Said, said); diff != "" {
			t.Errorf("SEED=%d (-recorded +now):\n%s", r.Seed, diff)
		}
		if t.Failed() {
			t.Fatalf("the node:\n%s", strings.TrimSpace(r.Case.String()))
		}
	}
}
