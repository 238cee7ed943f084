//go:build e2e && long

package fleet

import (
	"encoding/json"
	"os"
	"testing"
	"time"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/cluster"
)

// A real supervisor with a real kubelet says what is recorded. With UPDATE=1 it is recorded anew.
func TestLongRealWords(t *testing.T) {
	t.Parallel()
	c := newCrew(t, name(t), 0, nil)
	c.f.steady(t)
	c.makeReal("")
	r := c.record(cluster.NodeName)
	c.sayAll(r, 2*time.Minute)
	if os.Getenv("UPDATE") != "" {
		text, err := json.MarshalIndent(r.words, "", "  ")
		if err == nil {
			err = os.WriteFile(recorded, append(text, '\n'), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	r.compare(t)
}
