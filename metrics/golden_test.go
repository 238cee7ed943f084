//go:build linux

package metrics

import (
	"errors"
	"flag"
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubelet-supervisor/kubelet-supervisor/config"
	"github.com/kubelet-supervisor/kubelet-supervisor/decide"
)

var update = flag.Bool("update", false, "write testdata anew")

// eventful is a supervisor of which every metric tells something.
func eventful() *world {
	w := newWorld(Counts{})
	version := decide.Version{Content: "c", Source: corev1.ConfigMapNodeConfigSource{Namespace: "kube-system", Name: "workers", UID: "u", ResourceVersion: "7", KubeletConfigKey: "kubelet"}}
	w.hear(decide.Ticked{}, decide.Start{}, func(s *decide.State) { s.Booted = true }).hear(decide.Started{}, nil, nil)
	w.hear(decide.Healthy{}, nil, healthy(true)).hear(decide.Ticked{}, decide.Prove{}, func(s *decide.State) { s.Assigned = &version })
	w.hear(decide.Proved{Proof: decide.Proof{Outcome: config.Accepted}}, decide.Stop{}, nil)
	w.hear(decide.ChildExited{Asked: true}, decide.Start{}, healthy(false)).hear(decide.Started{}, nil, nil).hear(decide.Healthy{}, nil, healthy(true))
	w.hear(decide.PodsLost{New: map[string]int{"OutOfpods": 2}}, nil, nil)
	w.hear(decide.ChildExited{Code: 1}, decide.Start{}, func(s *decide.State) { s.Suspects = []decide.Suspect{{Cause: decide.Exited}} }, "KubeletConfigRolledBack")
	w.hear(decide.Ticked{}, nil, nil, "KubeletConfigPromoted", "KubeletConfigRejected", "KubeletStateFileSetAside")
	w.Answered(200, time.Unix(1700000000, 0))
	w.Answered(0, time.Time{})
	return w
}

// The text is as it was. The test of the mixin has Prometheus' own promtool look at this file: "go test ./metrics -update" writes it anew.
func TestTheGoldenText(t *testing.T) {
	const path = "testdata/node.prom"
	text := eventful().Text()
	if *update {
		if err := errors.Join(os.MkdirAll("testdata", 0o755), os.WriteFile(path, text, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	golden, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(golden) != string(text) {
		t.Errorf("%s has\n%s\nand the text is\n%s", path, golden, text)
	}
}
