package core

import (
	"testing"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/purity"
)

// Nothing of the core reaches a clock, a disk, the net or a process. Of package config it uses types and words, and no function that reads
// a file.
func TestTheCoreIsPure(t *testing.T) {
	purity.Rules{
		Imports: []string{"cmp", "encoding/json", "fmt", "hash/fnv", "reflect", "slices", "strings", "time", "k8s.io/api/core/v1",
			"github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1",
			"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig", "github.com/kubelet-supervisor/kubelet-supervisor/internal/bounded"},
		Only: map[string][]string{
			"fmt": {"Sprint", "Sprintf", "Errorf", "Fprintf"}, // the last to a hash
			"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig":    {"Identity", "ShadowLines", "StateFile", "Outcome", "Accepted", "Refused", "Environment", "Unknown"},
			"github.com/kubelet-supervisor/kubelet-supervisor/internal/bounded": {"Text", "Parts"},
		},
	}.Check(t)
}
