//go:build e2e && long

package fleet

import (
	"encoding/json"
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

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
	for _, name := range []string{"older", "younger"} {
		c.pod(name, cluster.NodeName, nil)
		c.awaitThat(name+" runs", time.Minute, func() bool { return c.podNow(name).Status.Phase == corev1.PodRunning })
		wait(t.Context(), 1100*time.Millisecond) // the API dates pods by the second, and the youngest is refused first
	}
	c.sayHeld(r, 2*time.Minute)
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
