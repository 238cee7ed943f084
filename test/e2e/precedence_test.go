//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// What wins, read back from the kubelet itself: flags, then drop-ins, then the dynamic configuration, which replaces the file
// of --config as a whole, then the kubelet's defaults. Feature gates add up, as upstream's did.
func TestPrecedence(t *testing.T) {
	n := sharedNode(t)
	dropIns := filepath.Join(n.Folder, uniqueName("drop-ins"))
	writeFile(t, filepath.Join(dropIns, "50-files.conf"), "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\ncontainerLogMaxFiles: 9\n")
	s := n.startedLocal(t, options{
		KubeletFlags: []string{"--max-pods=33", "--feature-gates=EventedPLEG=false", "--config-dir=" + dropIns},
		Local:        n.kubeletConfig(with("registryPullQPS", 8), with("containerLogMaxFiles", 3), with("featureGates", object{"CRIListStreaming": true, "CPUManagerPolicyAlphaOptions": true})),
	})
	local := s.configz(t)
	config := n.putConfigMap(t, "precedence", map[string]string{
		"kubelet": n.kubeletConfig(with("maxPods", 44), with("containerLogMaxFiles", 4), with("registryBurst", 12), with("eventRecordQPS", nil),
			with("authentication.x509.clientCAFile", "ca.crt"),
			with("featureGates", object{"EventedPLEG": true, "ContainerStopSignals": true, "CPUManagerPolicyAlphaOptions": false})),
		"ca.crt": readFile(t, filepath.Join(n.Folder, "pki/ca.crt")),
	})
	n.assign(t, config.assignment("kubelet"))
	v := n.awaitReason(t, config.assignment("kubelet"), "InTrial")
	// That configz answers this client at all shows that clientCAFile is found: anonymous requests are refused.
	dynamic := s.configz(t)
	checkpoint := filepath.Join(s.StateDir, "checkpoints", string(config.UID), config.ResourceVersion)

	for _, test := range []struct {
		name, field         string
		wantLocal, wantThen any
	}{
		{"a flag beats the dynamic configuration", "maxPods", 33.0, 33.0},
		{"a drop-in beats the dynamic configuration", "containerLogMaxFiles", 9.0, 9.0},
		{"a field of the dynamic configuration", "registryBurst", 10.0, 12.0},
		{"a field of the local file alone gets its default", "registryPullQPS", 8.0, 5.0},
		{"another one", "eventRecordQPS", 7.0, 50.0},
		{"a relative path names another key", "authentication.x509.clientCAFile", filepath.Join(n.Folder, "pki/ca.crt"), filepath.Join(checkpoint, "ca.crt")},
		{"a gate of the local file", "featureGates.CRIListStreaming", true, true},
		{"a gate of the dynamic configuration", "featureGates.ContainerStopSignals", nil, true},
		{"a gate of both: the dynamic configuration's", "featureGates.CPUManagerPolicyAlphaOptions", true, false},
		{"a gate of a flag", "featureGates.EventedPLEG", false, false},
	} {
		if got := field(local, test.field); got != test.wantLocal {
			t.Errorf("%s: %s is locally %v, want %v", test.name, test.field, got, test.wantLocal)
		}
		if got := field(dynamic, test.field); got != test.wantThen {
			t.Errorf("%s: %s is %v, want %v", test.name, test.field, got, test.wantThen)
		}
	}
	wantStatus(t, v, config.source("kubelet"), config.source("kubelet"), nil, "")
}

// Another key of the ConfigMap is part of the content: its change is a change.
func TestSiblingKey(t *testing.T) {
	n := sharedNode(t)
	s := n.startedLocal(t, options{})
	ca := readFile(t, filepath.Join(n.Folder, "pki/ca.crt"))
	config := n.putConfigMap(t, "sibling", map[string]string{"kubelet": n.kubeletConfig(with("authentication.x509.clientCAFile", "./ca.crt")), "ca.crt": ca})
	n.assign(t, config.assignment("kubelet"))
	n.awaitReason(t, config.assignment("kubelet"), "InTrial")
	kubelet := s.kubelet(t)
	config.set(t, "ca.crt", "# The same authority.\n"+ca)
	v := n.awaitNode(t, "the edit of the other key is active", func(v nodeView) bool { return config.is(v.Config.Active) && v.Condition.Status == corev1.ConditionTrue })
	wantCondition(t, v, corev1.ConditionTrue, fmt.Sprintf("using current (UID: %q)", config.UID))
	if now := s.kubelet(t); now.ID == kubelet.ID {
		t.Errorf("the kubelet was not restarted: pid %d", now.ID)
	}
	got := field(s.configz(t), "authentication.x509.clientCAFile")
	if want := filepath.Join(s.StateDir, "checkpoints", string(config.UID), config.ResourceVersion, "ca.crt"); got != want {
		t.Errorf("clientCAFile is %v, want %s", got, want)
	}
}

// field reads a field by its dotted path; nil when it is not there.
func field(config object, path string) any {
	names := strings.Split(path, ".")
	for _, name := range names[:len(names)-1] {
		config, _ = config[name].(object)
	}
	return config[names[len(names)-1]]
}

// writeFile writes a file and the folder it is in.
func writeFile(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
