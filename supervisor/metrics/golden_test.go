//go:build linux

package metrics

import (
	"errors"
	"flag"
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/core"
)

var update = flag.Bool("update", false, "write testdata anew")

// eventful is a supervisor of which every metric tells something.
func eventful() *world {
	w := newWorld(Counts{})
	version := core.Version{Content: "c", Source: corev1.ConfigMapNodeConfigSource{Namespace: "kube-system", Name: "workers", UID: "u", ResourceVersion: "7", KubeletConfigKey: "kubelet"}}
	w.hear(core.Ticked{}, core.Start{}, func(s *core.State) { s.Booted = true }).hear(core.Started{}, nil, nil)
	w.hear(core.Healthy{}, nil, healthy(true)).hear(core.Ticked{}, core.Prove{}, func(s *core.State) { s.Assigned = &version })
	w.hear(core.Proved{Proof: core.Proof{Outcome: kubeletconfig.Accepted}}, core.Stop{}, nil)
	w.hear(core.ChildExited{Asked: true}, core.Start{}, healthy(false)).hear(core.Started{}, nil, nil).hear(core.Healthy{}, nil, healthy(true))
	w.hear(core.PodsLost{New: map[string]int{"OutOfpods": 2}}, nil, nil)
	w.hear(core.ChildExited{Code: 1}, core.Start{}, func(s *core.State) { s.Suspects = []core.Suspect{{Cause: core.Exited}} }, "KubeletConfigRolledBack")
	w.hear(core.Ticked{}, nil, nil, "KubeletConfigPromoted", "KubeletConfigRejected", "KubeletStateFileSetAside")
	w.Answered(200, time.Unix(1700000000, 0))
	w.Answered(0, time.Time{})
	return w
}

// The text is as it was. The test of the mixin has Prometheus' own promtool look at this file: "go test ./supervisor/metrics -update" writes it anew.
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
