//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
)

// What flags and drop-in files go before has no effect: the Node says so, an edit of it restarts nothing, and a trial goes on.
func TestShadowed(t *testing.T) {
	n := sharedNode(t)
	dropIns := filepath.Join(n.Folder, uniqueName("drop-ins"))
	writeFile(t, filepath.Join(dropIns, "10-site.conf"), header+"containerLogMaxFiles: 9\n")
	s := n.startedLocal(t, options{KubeletFlags: []string{"--max-pods=33", "--config-dir=" + dropIns}, Flags: []string{"--trial-period=10s"}})
	payload := func(maxPods, logFiles int, more ...func(object)) string {
		return n.kubeletConfig(append(more, with("maxPods", maxPods), with("containerLogMaxFiles", logFiles))...)
	}
	config := n.putConfigMap(t, "shadowed", map[string]string{"kubelet": payload(60, 4)})
	n.assign(t, config.assignment("kubelet"))
	v := n.awaitReason(t, config.assignment("kubelet"), "InTrial")
	wantWords(t, v.Condition.Message, "Shadowed: containerLogMaxFiles (4) by 10-site.conf (9), maxPods (60) by --max-pods (33)")
	kubelet := s.kubelet(t)

	config.set(t, "kubelet", payload(61, 4))
	v = n.awaitNode(t, "the pointers move", func(v nodeView) bool { return config.is(v.Config.Active) && v.Condition.Status == corev1.ConditionTrue })
	wantStatus(t, v, config.source("kubelet"), config.source("kubelet"), v.Config.LastKnownGood, "")
	wantWords(t, v.Condition.Message, "maxPods (61) by --max-pods (33)")
	v = n.awaitReason(t, config.assignment("kubelet"), "Active")
	wantStatus(t, v, config.source("kubelet"), config.source("kubelet"), config.source("kubelet"), "")

	config.set(t, "kubelet", payload(62, 5))
	v = n.awaitNode(t, "the pointers move again", func(v nodeView) bool { return config.is(v.Config.LastKnownGood) && v.Condition.Reason == "Active" })
	wantStatus(t, v, config.source("kubelet"), config.source("kubelet"), config.source("kubelet"), "")
	if now := s.kubelet(t); now.ID != kubelet.ID {
		t.Errorf("the kubelet was restarted for what has no effect: pid %d, then %d", kubelet.ID, now.ID)
	}
	if got := s.configz(t); got["maxPods"] != 33.0 || got["containerLogMaxFiles"] != 9.0 {
		t.Errorf("the kubelet runs with maxPods %v and containerLogMaxFiles %v, want 33 and 9", got["maxPods"], got["containerLogMaxFiles"])
	}
	wantShadowedStatus(t, s, "containerLogMaxFiles (5) by 10-site.conf (9)", "maxPods (62) by --max-pods (33)")

	// Drop-in files that come to the same are nothing that waits for a restart.
	writeFile(t, filepath.Join(dropIns, "20-site.conf"), header+"# the site's\ncontainerLogMaxFiles: 9\n")
	if err := os.Remove(filepath.Join(dropIns, "10-site.conf")); err != nil {
		t.Fatal(err)
	}
	await(t, "the drop-in files of now are known to come to the same", func() error {
		r := s.record(t)
		if r.LocalPending || !strings.Contains(fmt.Sprint(r.Status.Shadowed), "containerLogMaxFiles (5) by 20-site.conf (9)") {
			return fmt.Errorf("a local change is pending: %v; shadowed are %q", r.LocalPending, r.Status.Shadowed)
		}
		return nil
	})
	if now := s.kubelet(t); now.ID != kubelet.ID {
		t.Errorf("the kubelet was restarted for drop-in files: pid %d, then %d", kubelet.ID, now.ID)
	}

	config.set(t, "kubelet", payload(62, 5, with("registryBurst", 12)))
	v = n.awaitNode(t, "what has an effect is applied", func(v nodeView) bool { return config.is(v.Config.Active) && v.Condition.Status == corev1.ConditionTrue })
	wantStatus(t, v, config.source("kubelet"), config.source("kubelet"), v.Config.LastKnownGood, "")
	if now := s.kubelet(t); now.ID == kubelet.ID {
		t.Error("the kubelet was not restarted")
	}
}

// wantShadowedStatus looks at what kubelet-supervisor status says, for people and for machines.
func wantShadowedStatus(t *testing.T, s *supervised, fields ...string) {
	t.Helper()
	text, _, _ := s.run(t, "status")
	for _, field := range fields {
		if !strings.Contains(text, field+"\n") {
			t.Errorf("%q is not in\n%s", field, text)
		}
	}
	document, _, _ := s.run(t, "status", "-o", "json")
	var told struct{ Status nodev1.Status }
	if err := json.Unmarshal([]byte(document), &told); err != nil {
		t.Fatal(err)
	}
	var shadowed []string
	for _, field := range told.Status.Shadowed {
		shadowed = append(shadowed, field.String())
	}
	if !slices.Equal(shadowed, fields) || told.Status.Shadowed[0].Inferred {
		t.Errorf("for machines: %+v", told)
	}
}
