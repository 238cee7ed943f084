//go:build linux

package supervisor

import (
	"strings"
	"testing"

	"github.com/kubelet-supervisor/kubelet-supervisor/store"
	"github.com/kubelet-supervisor/kubelet-supervisor/test/fakenode"
)

// A pre-flight comes before the first start, and the log file with it: it must be followed all the same.
func TestTheLogIsFollowedWhenAPreflightComesFirst(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.seed(store.Assigned, "a", fakenode.Configuration("mode: ok"))
	r := n.run()
	r.awaitHealthy()
	n.await("the kubelet's log", func() bool { return strings.Contains(r.log.String(), `"Starting kubelet"`) })
}
