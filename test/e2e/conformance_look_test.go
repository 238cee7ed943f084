//go:build e2e && conformance

package e2e

import (
	"fmt"
	"io"
	"maps"
	"os"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"
)

// look reads the Node, and where that is as wanted also events and kubelet, which takes longer.
func (c *conformance) look(t *testing.T, want shown) shown {
	t.Helper()
	v, err := c.view()
	if err != nil {
		return shown{more: " " + err.Error()}
	}
	s := shown{
		assigned: c.named(v.Config.Assigned), active: c.named(v.Config.Active), lastKnownGood: c.named(v.Config.LastKnownGood),
		error: errorName(v.Config.Error, want.error), restarts: c.log.count(t) - c.starts, runs: "?", event: "?",
	}
	observed := ""
	if v.Observed != nil {
		observed = *v.Observed
	}
	if observed != c.reference.observed() {
		s.more = fmt.Sprintf(" observed=%q", observed)
	}
	if kept := c.carrier.byAssignment; kept != (v.Field != nil) || kept && !equality.Semantic.DeepEqual(*v.Field, v.Config) {
		s.more += fmt.Sprintf(" status.config=%+v", v.Field)
	}
	s.more += unlikeStatus(c.metrics, v.Config)
	if s.assigned == want.assigned && s.active == want.active && s.error == want.error && s.restarts == want.restarts {
		s.runs, s.event = c.running(t), c.newestEvent(t, v.UID)
	}
	return s
}

// errorName is upstream's name of an error that is one of its strings, to the letter; of another one, the words looked for.
func errorName(text, want string) string {
	switch text {
	case "":
		return none
	case loadError:
		return "LoadError"
	case validateError:
		return "ValidateError"
	case downloadError:
		return "DownloadError"
	}
	if words, is := strings.CutPrefix(text, "failed to sync: "); is {
		return "sync: " + wanted(words, strings.TrimPrefix(want, "sync: "))
	}
	return text
}

// wanted is what was looked for, where the text has it, as upstream compared; else all of the text.
func wanted(text, want string) string {
	if want != "" && strings.Contains(text, want) {
		return want
	}
	return text
}

// running names the content that the kubelet says it runs with: all of configz counts.
func (c *conformance) running(t *testing.T) string {
	t.Helper()
	config, err := c.Configz(t.Context())
	if err != nil {
		return err.Error()
	}
	if reflect.DeepEqual(config, c.baseline) {
		return "local"
	}
	for name, value := range c.values {
		expected := maps.Clone(c.baseline)
		expected["eventRecordQPS"] = float64(value)
		if reflect.DeepEqual(config, expected) {
			return name
		}
	}
	return fmt.Sprintf("%v", config)
}

// newestEvent names what the newest KubeletConfigChanged of this step speaks of, by upstream's message, to the letter.
func (c *conformance) newestEvent(t *testing.T, uid string) string {
	t.Helper()
	const message = "Normal KubeletConfigChanged: Kubelet restarting to use "
	var changes []string
	for _, event := range c.node.events(t, uid) {
		if words, is := strings.CutPrefix(event, message); is {
			changes = append(changes, words)
		}
	}
	switch {
	case len(changes) == c.events:
		return none
	case len(changes) > c.events+1:
		return fmt.Sprintf("%d events: %v", len(changes)-c.events, changes[c.events:])
	}
	words := changes[len(changes)-1]
	if words == "local config" {
		return "local"
	}
	if name, is := c.versions[words]; is {
		return name
	}
	return words
}

// A startLog counts the starts of kubelets in a supervisor's log, and reads every line once.
type startLog struct {
	file   string
	offset int64
	part   string // of a line
	starts int
}

func (l *startLog) count(t *testing.T) int {
	t.Helper()
	file, err := os.Open(l.file)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	content, err := io.ReadAll(io.NewSectionReader(file, l.offset, 1<<62))
	if err != nil {
		t.Fatal(err)
	}
	l.offset += int64(len(content))
	text := l.part + string(content)
	end := strings.LastIndex(text, "\n") + 1
	l.starts += strings.Count(text[:end], "starting the kubelet with ")
	l.part = text[end:]
	return l.starts
}
