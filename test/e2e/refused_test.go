//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

const header = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"

// secret is in payloads and must not come out of them.
var secret = strings.Repeat("S3cr3t-", 30)

// A payload that the kubelet would refuse is refused before it hurts: it becomes assigned, with upstream's error and the
// kubelet's own words on the Node, and what runs, local or the last known good configuration, is not restarted.
func TestRefused(t *testing.T) {
	cases := []struct {
		name  string
		data  func(n *node) map[string]string
		error string
		words string // in the message
	}{
		{"the key is missing", key("other", with("maxPods", 55)), loadError, `key "kubelet" is missing`},
		{"the key is empty", text(""), loadError, `key "kubelet" is empty`},
		{"it does not parse", text("clusterDNS: [\npassword: " + secret), loadError, `key "kubelet" does not decode`},
		{"it is a scalar", text(secret), loadError, "does not decode as YAML or JSON: it is not a mapping"},
		{"another kind", text("apiVersion: v1\nkind: Secret\ndata: {password: " + secret + "}"), loadError, "another kind"},
		{"no kind", text("apiVersion: kubelet.config.k8s.io/v1beta1\nstaticPodURL: https://" + secret), loadError, "no kind"},
		{"another version", text("apiVersion: kubelet.config.k8s.io/v1\nkind: KubeletConfiguration\n"), loadError, "another apiVersion"},
		{"a value of another type", key("kubelet", with("maxPods", "many"), with("providerID", secret)), loadError, "maxPods"},
		{"a value that is invalid", key("kubelet", with("eventRecordQPS", -5), with("providerID", secret)), validateError, "eventRecordQPS"},
		{"a long value that is invalid", key("kubelet", with("hairpinMode", secret)), validateError, "hairpinMode"},
		{"a feature gate that is unknown", key("kubelet", with("featureGates.NoSuchGate", true)), validateError, "unrecognized feature gate: NoSuchGate"},
		{"a feature gate that is locked", key("kubelet", with("featureGates.NodeSwap", false)), validateError, "NodeSwap"},
		{"a logging format that is unknown", key("kubelet", with("logging.format", "bogus")), validateError, "bogus"},
		{"a TLS version that is unknown", key("kubelet", with("tlsMinVersion", "VersionTLS99")), validateError, "VersionTLS99"},
		{"a TLS cipher that is unknown", key("kubelet", with("tlsCipherSuites", []string{"TLS_NO_SUCH"})), validateError, "TLS_NO_SUCH"},
		{"all at once", key("kubelet", with("eventRecordQPS", -5), with("eventBurst", -5), with("registryPullQPS", -5), with("maxPods", -5), with("maxOpenFiles", -5),
			with("kubeAPIQPS", -5), with("kubeAPIBurst", -5), with("podsPerCore", -5), with("oomScoreAdj", -5000), with("healthzPort", -5), with("iptablesDropBit", 99),
			with("imageGCLowThresholdPercent", 101), with("nodeLeaseDurationSeconds", -5), with("enforceNodeAllocatable", []string{secret})), validateError, "invalid configuration"},
	}
	for _, fallback := range []string{"local", "the last known good configuration"} {
		t.Run(fallback+" runs", func(t *testing.T) {
			n := sharedNode(t)
			s := n.startedLocal(t, options{})
			var lastKnownGood *corev1.NodeConfigSource
			using := "using last-known-good (default)"
			if fallback != "local" {
				good := n.putConfigMap(t, "good", map[string]string{"kubelet": n.kubeletConfig(with("maxPods", 54))})
				n.assign(t, good.assignment("kubelet"))
				n.awaitReason(t, good.assignment("kubelet"), "Active")
				lastKnownGood, using = good.source("kubelet"), fmt.Sprintf("using last-known-good (UID: %q)", good.UID)
			}
			kubelet := s.kubelet(t)
			for _, test := range cases {
				t.Run(test.name, func(t *testing.T) {
					bad := n.putConfigMap(t, "bad", test.data(n))
					n.assign(t, bad.assignment("kubelet"))
					v := n.awaitReason(t, bad.assignment("kubelet"), "Refused")
					wantStatus(t, v, bad.source("kubelet"), lastKnownGood, lastKnownGood, test.error)
					wantCondition(t, v, corev1.ConditionFalse, using)
					wantWords(t, v.Condition.Message, test.words)
					n.awaitEvents(t, v.UID, "Warning KubeletConfigRefused: "+bad.assignment("kubelet"))
					for _, line := range n.events(t, v.UID) {
						wantWords(t, line, "")
					}
					if now := s.kubelet(t); now.ID != kubelet.ID {
						t.Errorf("it restarted the kubelet: pid %d, then %d", kubelet.ID, now.ID)
					}
				})
			}
			healed := n.putConfigMap(t, "healed", map[string]string{"kubelet": n.kubeletConfig(with("maxPods", 56))})
			n.assign(t, healed.assignment("kubelet"))
			v := n.awaitReason(t, healed.assignment("kubelet"), "InTrial")
			wantStatus(t, v, healed.source("kubelet"), healed.source("kubelet"), lastKnownGood, "")
		})
	}
}

// A refusal while another configuration is on trial ends that trial without verdict: one restart, into the last known good
// configuration (upstream's T1 and T6).
func TestRefusedDuringATrial(t *testing.T) {
	n := sharedNode(t)
	s := n.startedLocal(t, options{Flags: []string{"--trial-period=1h"}})
	first := n.putConfigMap(t, "on-trial", map[string]string{"kubelet": n.kubeletConfig(with("maxPods", 57))})
	n.assign(t, first.assignment("kubelet"))
	n.awaitReason(t, first.assignment("kubelet"), "InTrial")
	bad := n.putConfigMap(t, "bad", map[string]string{"kubelet": n.kubeletConfig(with("maxPods", -1))})
	n.assign(t, bad.assignment("kubelet"))
	v := n.awaitNode(t, "the refusal", func(v nodeView) bool {
		return v.is(bad.assignment("kubelet"), "Refused") && v.Config.Active == nil
	})
	wantStatus(t, v, bad.source("kubelet"), nil, nil, validateError)
	if got := s.configz(t)["maxPods"]; got != 20.0 {
		t.Errorf("the kubelet runs with maxPods %v, want the local 20", got)
	}
	if got := s.starts(t); got != 3 {
		t.Errorf("%d starts of the kubelet, want 3: local, the one on trial, local", got)
	}
	n.assign(t, first.assignment("kubelet"))
	v = n.awaitReason(t, first.assignment("kubelet"), "InTrial")
	wantStatus(t, v, first.source("kubelet"), first.source("kubelet"), nil, "")
}

// An edit that mends a refused payload is applied, and one that brings the last known good content back restarts nothing.
func TestRefusedThenMended(t *testing.T) {
	n, s, config := assigned(t, options{}, "Active")
	kubelet := s.kubelet(t)
	good := config.source("kubelet")
	config.set(t, "kubelet", n.kubeletConfig(with("maxPods", -1)))
	v := n.awaitReason(t, config.assignment("kubelet"), "Refused")
	wantStatus(t, v, config.source("kubelet"), good, good, validateError)
	config.set(t, "kubelet", n.kubeletConfig(with("maxPods", 50)))
	v = n.awaitReason(t, config.assignment("kubelet"), "Active")
	wantStatus(t, v, config.source("kubelet"), config.source("kubelet"), config.source("kubelet"), "")
	if now := s.kubelet(t); now.ID != kubelet.ID {
		t.Errorf("the kubelet was restarted: pid %d, then %d", kubelet.ID, now.ID)
	}
}

// The kubelet runs with a misspelt field left out, so it is no refusal; but it is said.
func TestUnknownField(t *testing.T) {
	for _, test := range []struct {
		name, payloadEnd string
		changes          []func(object)
		words            string
	}{
		{"one that is misspelt", "", []func(object){with("maxPods", 58), with("maxPodz", 59)}, `"maxPodz" is unknown to v0.37`},
		{"one that appears twice", "\nmaxPods: 58\n", []func(object){with("maxPods", 59)}, `"maxPods" appears twice`},
		{"a flood of them", "", append(floodOfUnknownFields(), with("maxPods", 58)), "is unknown to v0.37"},
	} {
		t.Run(test.name, func(t *testing.T) {
			n := sharedNode(t)
			s := n.startedLocal(t, options{})
			config := n.putConfigMap(t, "unknown-field", map[string]string{"kubelet": n.kubeletConfig(test.changes...) + test.payloadEnd})
			n.assign(t, config.assignment("kubelet"))
			v := n.awaitReason(t, config.assignment("kubelet"), "InTrial")
			wantStatus(t, v, config.source("kubelet"), config.source("kubelet"), nil, "")
			wantCondition(t, v, corev1.ConditionTrue, fmt.Sprintf("using current (UID: %q)", config.UID))
			wantWords(t, v.Condition.Message, test.words)
			if got := s.configz(t)["maxPods"]; got != 58.0 {
				t.Errorf("the kubelet runs with maxPods %v, want 58", got)
			}
		})
	}
}

// However much there is to say, the message begins with what runs and ends with what to do.
func TestLongMessage(t *testing.T) {
	n := sharedNode(t)
	n.startedLocal(t, options{Flags: []string{"--trial-failures=1"}})
	changes := append(floodOfUnknownFields(), with("systemReserved", object{"memory": "1Ti"}))
	config := n.putConfigMap(t, strings.Repeat("long-name.", 20)+"x", map[string]string{"kubelet": n.kubeletConfig(changes...)})
	n.assign(t, config.assignment("kubelet"))
	v := n.awaitReason(t, config.assignment("kubelet"), "RolledBack")
	wantCondition(t, v, corev1.ConditionFalse, "using last-known-good (default)")
	wantWords(t, v.Condition.Message, "exit code 1")
	wantWords(t, v.Condition.Message, "correct the configuration")
}

func floodOfUnknownFields() []func(object) {
	var flood []func(object)
	for i := range 30 {
		flood = append(flood, with(fmt.Sprintf("field%d-%s", i, strings.Repeat("x", 200)), true))
	}
	return flood
}

// text is a payload of this text.
func text(content string) func(*node) map[string]string {
	return func(*node) map[string]string { return map[string]string{"kubelet": content} }
}

// key is a payload with the node's own configuration, changed, below a key.
func key(name string, changes ...func(object)) func(*node) map[string]string {
	return func(n *node) map[string]string { return map[string]string{name: n.kubeletConfig(changes...)} }
}

// wantWords checks that a message says something, and no secret.
func wantWords(t *testing.T, message, words string) {
	t.Helper()
	if !strings.Contains(message, words) {
		t.Errorf("the message does not say %q: %s", words, message)
	}
	if strings.Contains(message, secret[:70]) {
		t.Errorf("the message tells the secret: %s", message)
	}
}
