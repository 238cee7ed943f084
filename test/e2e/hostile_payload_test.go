//go:build e2e

package e2e

import (
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// memoryBound is the most memory that a supervisor may ever have had, in KiB, whatever it was given. It is far more than it needs:
// 1 MiB of the worst YAML was seen to take 280 MiB for a moment.
const memoryBound = 512 << 10

// A payload is what an attacker puts into a ConfigMap, below the key "kubelet" or another.
type hostilePayload struct {
	name   string
	data   func(n *node) map[string]string
	binary func(n *node) map[string][]byte
	key    string // "": kubelet
	runs   bool   // the kubelet takes it; else it is refused
	reason string // "": Refused
	error  string // "": loadError
	words  string // in the message
	long   bool   // of make test-e2e-long: another of its kind is in make test
}

var longKey = strings.Repeat("k", 253)

var hostilePayloads = []hostilePayload{
	{name: "1 MiB of values", long: true, runs: true, data: func(n *node) map[string]string {
		config := n.kubeletConfig()
		return map[string]string{"kubelet": config, "more": strings.Repeat("x", 1<<20-len(config))}
	}},
	{name: "1 MiB of comments", long: true, runs: true, data: func(n *node) map[string]string {
		config := n.kubeletConfig(with("maxPods", 31))
		return map[string]string{"kubelet": config + strings.Repeat("#", 1<<20-len(config))}
	}},
	{name: "odd keys", key: longKey, runs: true, data: func(n *node) map[string]string {
		data := map[string]string{longKey: n.kubeletConfig(with("maxPods", 32))}
		for _, key := range []string{"-", "_", ".a", "a..", "tmp_kubelet", "kubelet.sha256", "a.corrupt-20260101T000000.000000000Z", "KUBELET", "kubelet.yaml.new"} {
			data[key] = key
		}
		return data
	}},
	{name: "a key that is only a dash", long: true, key: "-", runs: true, data: func(n *node) map[string]string {
		return map[string]string{"-": n.kubeletConfig(with("maxPods", 33))}
	}},
	{name: "binaryData", runs: true, binary: func(n *node) map[string][]byte {
		return map[string][]byte{"kubelet": []byte(n.kubeletConfig(with("maxPods", 34))), "b": {0xff, 0}}
	}},
	{name: "no UTF-8", long: true, binary: func(n *node) map[string][]byte {
		return map[string][]byte{"kubelet": append([]byte(n.kubeletConfig()), "resolvConf: \"\xff\xfe\"\n"...)}
	}, words: "does not decode"},
	{name: "an executable", binary: func(*node) map[string][]byte {
		binary, _ := os.ReadFile("/proc/self/exe")
		return map[string][]byte{"kubelet": binary[:1<<20]}
	}, words: "does not decode"},
	{name: "1,024 keys", long: true, runs: true, data: func(n *node) map[string]string {
		data := keys(1023)
		data["kubelet"] = n.kubeletConfig(with("maxPods", 35))
		return data
	}},
	{name: "5,000 keys", reason: "SyncFailed", error: downloadError, words: "has 5000 keys, at most 1024", data: func(n *node) map[string]string { return keys(5000) }},
	{name: "a billion laughs", data: appended(laughs()), words: "excessive aliasing"},
	{name: "aliases to a long text", long: true, data: appended("a: &a " + strings.Repeat("x", 500<<10) + "\nb: [" + strings.Repeat("*a,", 100<<10) + "*a]\n"), words: "larger than 8 MiB when it is written out"},
	{name: "1 MiB of aliases", long: true, data: appended("a: &a {b: 1}\nb: [" + strings.Repeat("*a,", 300<<10) + "*a]\n"), words: "has more than 100000 values"},
	{name: "deep brackets", long: true, data: appended("a: " + strings.Repeat("[", 9_900) + strings.Repeat("]", 9_900)), words: "nested deeper than 100 levels"},
	{name: "deeper brackets", data: appended("a: " + strings.Repeat("[", 500<<10)), words: "exceeded max depth"},
	{name: "deep JSON", long: true, data: func(*node) map[string]string {
		return map[string]string{"kubelet": strings.Repeat(`{"a":`, 150<<10)}
	}, words: "is not valid JSON"},
	{name: "an anchor in itself", long: true, data: appended("a: &a [*a]\n"), words: "not valid YAML"},
	{name: "1 MiB of mappings", data: appended("hostile: [" + strings.Repeat("{},", 300<<10) + "{}]\n"), words: "has more than 100000 values"},
	{name: "thousands of unknown fields", long: true, runs: true, data: func(n *node) map[string]string {
		var fields strings.Builder
		for i := range 30_000 {
			fmt.Fprintf(&fields, "hostile%d: %d\n", i, i)
		}
		return map[string]string{"kubelet": n.kubeletConfig() + fields.String()}
	}, words: "unknown to"},
	{name: "the same field thousands of times", long: true, runs: true, data: appended(strings.Repeat("maxPods: 36\n", 50_000)), words: "appears twice"},
	{name: "a number of 100,000 digits", long: true, data: appended("maxPods: 1" + strings.Repeat("0", 100_000) + "\n"), words: "maxPods"},
	{name: "1e400", long: true, data: appended("eventBurst: 1e400\n"), words: "eventBurst"},
	{name: "a value that its error quotes", error: validateError, data: appended("topologyManagerPolicy: " + strings.Repeat("secret", 100_000) + "\n"), words: "topologyManagerPolicy"},
	{name: "a name with line breaks and colours", error: validateError, data: appended("topologyManagerPolicy: \"a\\nb\\e[31m\\u202e\"\n"), words: "topologyManagerPolicy"},
}

// Whatever somebody puts into a ConfigMap, the kubelet runs on, the Node says in short what is wrong, and the supervisor needs no
// memory to speak of. The same supervisor hears all of it.
func TestHostilePayloads(t *testing.T)     { wantHostilePayloads(t, false) }
func TestLongHostilePayloads(t *testing.T) { wantHostilePayloads(t, true) }

func wantHostilePayloads(t *testing.T, long bool) {
	n := sharedNode(t)
	s := n.startedLocal(t, options{Flags: []string{"--trial-period=1h"}})
	for _, test := range hostilePayloads {
		if test.long != long {
			continue
		}
		t.Run(test.name, func(t *testing.T) {
			before := s.kubelet(t)
			config := test.put(t, n)
			if test.key == "" {
				test.key = "kubelet"
			}
			n.assign(t, config.assignment(test.key))
			if test.runs {
				v := n.awaitReason(t, config.assignment(test.key), "InTrial")
				wantStatus(t, v, config.source(test.key), config.source(test.key), nil, "")
				wantHarmless(t, s, v, test.words)
				return
			}
			test.wantRefused(t, n, s, config)
			if now := s.kubelet(t); !wasDynamic(before) && now.ID != before.ID {
				t.Errorf("the kubelet was restarted: pid %d, then %d", before.ID, now.ID)
			}
		})
	}
	good := n.putConfigMap(t, "good", map[string]string{"kubelet": n.kubeletConfig(with("maxPods", 37))})
	n.assign(t, good.assignment("kubelet"))
	v := n.awaitReason(t, good.assignment("kubelet"), "InTrial")
	wantStatus(t, v, good.source("kubelet"), good.source("kubelet"), nil, "")
}

// wantRefused waits until the payload is refused.
func (p hostilePayload) wantRefused(t *testing.T, n *node, s *supervised, config *configMap) {
	t.Helper()
	reason, statusError, assigned := "Refused", loadError, config.source(p.key)
	if p.reason != "" {
		reason = p.reason
	}
	if p.error != "" {
		statusError = p.error
	}
	v := n.awaitReason(t, config.assignment(p.key), reason)
	if reason == "SyncFailed" { // it was not taken: assigned stays
		assigned = v.Config.Assigned
	}
	wantStatus(t, v, assigned, v.Config.Active, nil, statusError)
	wantHarmless(t, s, v, p.words)
}

func wasDynamic(p process) bool {
	return strings.Contains(strings.Join(p.Arguments, " "), "/effective/kubelet.yaml")
}

// wantHarmless checks what the Node shows, that one kubelet answers, and the supervisor's memory.
func wantHarmless(t *testing.T, s *supervised, v nodeView, words string) {
	t.Helper()
	wantCondition(t, v, v.Condition.Status, "using ")
	if !strings.Contains(v.Condition.Message, words) {
		t.Errorf("the message does not have %q: %s", words, v.Condition.Message)
	}
	if strings.Contains(v.Condition.Message, strings.Repeat("secret", 11)) {
		t.Errorf("the message quotes the payload: %s", v.Condition.Message)
	}
	s.kubelet(t)
	used := s.mostMemory(t)
	t.Logf("the supervisor never had more than %d MiB", used>>10)
	if used > memoryBound {
		t.Errorf("the supervisor had %d KiB of memory, more than %d", used, memoryBound)
	}
}

// mostMemory is the most memory, in KiB, that the supervisor had at any time.
func (s *supervised) mostMemory(t *testing.T) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.pid()))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	used, err := strconv.Atoi(strings.Fields(rest)[0])
	if err != nil {
		t.Fatal(err)
	}
	return used
}

// put makes the ConfigMap, which goes with the test.
func (p hostilePayload) put(t *testing.T, n *node) *configMap {
	t.Helper()
	body := object{"metadata": object{"name": uniqueName("hostile")}}
	if p.data != nil {
		body["data"] = p.data(n)
	}
	if p.binary != nil {
		body["binaryData"] = p.binary(n)
	}
	c := &configMap{node: n, ConfigMap: &corev1.ConfigMap{}}
	n.must(t, http.MethodPost, fmt.Sprintf(configFolder, "kube-system"), body, c.ConfigMap)
	t.Cleanup(func() { c.delete(t) })
	n.allow(t, c.Namespace, c.Name)
	return c
}

// The API server has a limit of its own, which is ours.
func TestPayloadOverTheLimit(t *testing.T) {
	n := sharedNode(t)
	code, err := n.request(http.MethodPost, fmt.Sprintf(configFolder, "kube-system"), object{
		"metadata": object{"name": uniqueName("large")}, "data": map[string]string{"kubelet": strings.Repeat("x", 1<<20+1)},
	}, nil)
	if code != http.StatusUnprocessableEntity || err == nil || !strings.Contains(err.Error(), "1048576") {
		t.Errorf("answered with %d: %v", code, err)
	}
}

// appended puts text behind the node's own configuration.
func appended(text string) func(*node) map[string]string {
	return func(n *node) map[string]string { return map[string]string{"kubelet": n.kubeletConfig() + text} }
}

func keys(count int) map[string]string {
	data := map[string]string{}
	for i := range count {
		data[fmt.Sprintf("key%d", i)] = strconv.Itoa(i)
	}
	return data
}

// laughs is a billion of them.
func laughs() string {
	document := "laughs0: &laughs0 [ha]\n"
	for level := range 9 {
		document += fmt.Sprintf("laughs%d: &laughs%d [%s*laughs%d]\n", level+1, level+1, strings.Repeat(fmt.Sprintf("*laughs%d,", level), 9), level)
	}
	return document
}
