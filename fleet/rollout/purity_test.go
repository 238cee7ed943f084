package rollout

import (
	"testing"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/purity"
)

// Nothing of the core reaches a clock, a disk, the net or a process, nor a client.
func TestTheCoreIsPure(t *testing.T) {
	purity.Rules{
		Imports: []string{"bytes", "cmp", "crypto/sha256", "encoding/hex", "encoding/json", "errors", "fmt", "path", "reflect", "slices", "strconv",
			"strings", "time", "k8s.io/api/core/v1", "k8s.io/apimachinery/pkg/api/meta", "k8s.io/apimachinery/pkg/apis/meta/v1",
			"github.com/robfig/cron/v3", "k8s.io/apimachinery/pkg/labels", "k8s.io/apimachinery/pkg/selection", "k8s.io/apimachinery/pkg/types", "k8s.io/apimachinery/pkg/util/intstr",
			"github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1",
			"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig", "github.com/kubelet-supervisor/kubelet-supervisor/internal/bounded",
			"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"},
		Only: map[string][]string{
			"fmt":                       {"Sprint", "Sprintf", "Errorf", "Sscanf"},
			"github.com/robfig/cron/v3": {"SpecSchedule", "ParseStandard"},
			"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig":    {"Decode", "UnknownFields", "MaskedFields", "Mask"},
			"github.com/kubelet-supervisor/kubelet-supervisor/internal/bounded": {"Line", "Text"},
		},
	}.Check(t)
}
