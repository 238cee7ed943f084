//go:build linux

package cli

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubelet-supervisor/kubelet-supervisor/internal/bounded"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor"
)

const hostileWords = "x\nINJECTED\x1b]0;owned\a\x1b[2J\u202egpj\u200b\U000e0041"

// What a ConfigMap or a kubelet says is printable in what people read on the node, and escaped in what programs read (rule 28).
func TestNodeCommandsPrintLines(t *testing.T) {
	record := supervisor.Record{Assignment: hostileWords, Written: time.Now(), Config: corev1.NodeConfigStatus{Error: hostileWords}}
	record.Condition.Message = hostileWords
	var text strings.Builder
	if err := writeStatus(bounded.NewWriter(&text, 0), record, true); err != nil {
		t.Fatal(err)
	}
	if !bounded.Shows(text.String()) || strings.Contains(text.String(), "\nINJECTED") {
		t.Errorf("status prints %q", text.String())
	}
	var document strings.Builder
	if err := writeJSON(&document, record, true); err != nil {
		t.Fatal(err)
	}
	var read struct{ Assignment string }
	if err := json.Unmarshal([]byte(document.String()), &read); err != nil || read.Assignment != hostileWords || !bounded.Shows(document.String()) {
		t.Errorf("%v: status -o json prints %q", err, document.String())
	}
	if line := printableLine(hostileWords + "\n"); !bounded.Shows(line) || strings.Count(line, "\n") != 1 {
		t.Errorf("the log has %q", line)
	}
}
