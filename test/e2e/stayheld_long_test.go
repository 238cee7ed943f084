//go:build e2e && long

package e2e

import (
	"fmt"
	"syscall"
	"testing"
	"time"
)

// An API server that is away for longer than the pause between two looks releases nothing: not while it is away, and not when it is back.
func TestSlowHeldOverAnOutage(t *testing.T) {
	t.Parallel()
	n := ownNode(t, "held")
	h := n.hold(t, options{})
	before := approvalOf(t, h.awaitHeld(t))
	const apiServer = "kube-apiserver"
	if err := n.Signal(apiServer, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = n.Revive(apiServer) })
	holds(t, 80*time.Second, "what is held stays held while the API server is away", func() error {
		if now := n.kubelets(t); len(now) != 1 || now[0].ID != h.kubelet.ID {
			return fmt.Errorf("kubelets %v, before: pid %d", now, h.kubelet.ID)
		}
		return nil
	})
	if err := n.Revive(apiServer); err != nil {
		t.Fatal(err)
	}
	if err := n.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	h.looked(t, `"known": true, "lost": 2`, func() { h.retry(t) })
	h.stays(t, 70*time.Second, "the API server was away")
	if after := approvalOf(t, h.awaitHeld(t)); after != before {
		t.Errorf("it asks for %s, before for %s", after, before)
	}
}
