//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/core"
)

// resolvConf writes a resolv.conf with this name server, and gives its path.
func (n *node) resolvConf(t *testing.T, name, server string) string {
	t.Helper()
	path := filepath.Join(n.Folder, name)
	if err := os.WriteFile(path, []byte("nameserver "+server+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// A resolvConf that the node does not have is refused, though the kubelet would start with it and be healthy. One that leads pods to themselves is
// a warning.
func TestResolvConf(t *testing.T) {
	n := sharedNode(t)
	own := n.resolvConf(t, "own.conf", "10.0.0.1")
	s := n.startedLocal(t, options{Local: n.kubeletConfig(with("resolvConf", own))})
	running := s.kubelet(t)

	gone := filepath.Join(n.Folder, "gone.conf")
	config := n.putConfigMap(t, "resolver", map[string]string{"kubelet": n.kubeletConfig(with("resolvConf", gone))})
	n.assign(t, config.assignment("kubelet"))
	v := n.awaitReason(t, config.assignment("kubelet"), "Refused")
	wantStatus(t, v, config.source("kubelet"), nil, nil, core.ValidateError)
	if want := "resolvConf names " + gone + ", and this node does not have that file"; !strings.Contains(v.Condition.Message, want) {
		t.Errorf("the message lacks %q: %s", want, v.Condition.Message)
	}
	if now := s.kubelet(t); now.ID != running.ID {
		t.Errorf("the kubelet was restarted: pid %d, then %d", running.ID, now.ID)
	}

	stub := n.putConfigMap(t, "stub", map[string]string{"kubelet": n.kubeletConfig(with("resolvConf", n.resolvConf(t, "stub.conf", "127.0.0.53")))})
	n.assign(t, stub.assignment("kubelet"))
	n.awaitReason(t, stub.assignment("kubelet"), "Active")
	n.awaitMessage(t, "DNS of new pods that use the node's resolver will loop, CoreDNS's too: ")
}

// While no pod that comes in a trial can be started, the configuration does not become last known good.
func TestLongPodsThatCannotStart(t *testing.T) {
	n := sharedNode(t)
	s := n.startedLocal(t, options{Flags: []string{"--trial-period=15s"}})
	resolver := n.resolvConf(t, "resolver.conf", "10.0.0.1")
	config := n.putConfigMap(t, "no-sandbox", map[string]string{"kubelet": n.kubeletConfig(with("resolvConf", resolver))})
	n.assign(t, config.assignment("kubelet"))
	n.awaitReason(t, config.assignment("kubelet"), "InTrial")
	k := n.bareKubelet(t) // for its pods alone
	t.Cleanup(func() { k.removePods(t) })
	if err := os.Remove(resolver); err != nil { // the kubelet reads it for each sandbox
		t.Fatal(err)
	}
	k.must(t, http.MethodPost, podsFolder, podManifest("stuck"), nil)
	n.awaitMessage(t, "no pod could be started since this configuration was: these have no sandbox: default/stuck")
	holds(t, 10*time.Second, "it does not become last known good", func() error {
		v, err := n.view()
		if err == nil && (v.Condition.Reason != "InTrial" || v.Config.LastKnownGood != nil) {
			err = fmt.Errorf("%s: %s", v.Condition.Reason, v.Condition.Message)
		}
		return err
	})
	n.resolvConf(t, "resolver.conf", "10.0.0.1")
	await(t, "the pod runs", func() error {
		if seen := k.seen(t)["stuck"]; seen.Phase != string(corev1.PodRunning) {
			return errors.New(seen.Phase)
		}
		return nil
	})
	n.awaitReason(t, config.assignment("kubelet"), "Active")
	s.kubelet(t)
}
