//go:build e2e

package fleet

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/rollout"
)

// word is what a supervisor says in one state, without what differs from node to node and from time to time.
type word struct {
	// Condition and Message are for people, Says is for programs.
	Condition, Message string
	Says               nodev1.Status
	// Config has the members of config-status, and what each names.
	Config map[string]string
}

// recording is what a Node has been seen to say, the first of each reason. What goes on for a moment only is left out: it is said or not.
type recording struct {
	mutex sync.Mutex
	words map[string]word
}

// record looks on until the test ends.
func (c *crew) record(node string) *recording {
	c.t.Helper()
	r := &recording{words: map[string]word{}}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ; ctx.Err() == nil; wait(ctx, 20*time.Millisecond) {
			var n corev1.Node
			if c.f.admin.Get(ctx, client.ObjectKey{Name: node}, &n) == nil {
				r.hear(&n)
			}
		}
	}()
	c.t.Cleanup(func() { cancel(); <-done })
	return r
}

func (r *recording) hear(n *corev1.Node) {
	is := rollout.ReadNode(n)
	if !is.Supervised || is.Reason == "" || is.Reason == "Applying" || is.Observed != is.Source {
		return
	}
	key := is.Reason
	if is.Observed == nodev1.Local {
		key += " again"
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if _, known := r.words[key]; !known {
		r.words[key] = wordOf(n)
	}
}

func wordOf(n *corev1.Node) word {
	read := nodev1.Read(n)
	w := word{Condition: string(read.Condition.Status) + " " + read.Condition.Reason, Message: shapeOf(read.Condition.Message), Says: sayingOf(read.Status), Config: map[string]string{}}
	var config map[string]any
	if err := json.Unmarshal([]byte(n.Annotations[nodev1.ConfigStatusAnnotation]), &config); err != nil {
		w.Config["error"] = err.Error()
	}
	for key, value := range config {
		text, err := json.Marshal(value)
		if w.Config[key] = shapeOf(string(text)); err != nil {
			w.Config[key] = err.Error()
		}
	}
	return w
}

// sayingOf keeps of a status what a pool reads.
func sayingOf(s nodev1.Status) nodev1.Status {
	kept := nodev1.Status{Observed: shapeOf(s.Observed), Reason: s.Reason, Features: s.Features, Retry: shapeOf(s.Retry), Failure: s.Failure, Hold: s.Hold}
	if kept.Failure != nil {
		kept.Failure.Message = shapeOf(kept.Failure.Message)
	}
	if kept.Hold != nil {
		kept.Hold.Approval, kept.Hold.AsOf = shapeOf("allow-disruption="+kept.Hold.Approval), time.Time{}
		for i, loss := range kept.Hold.Losses {
			kept.Hold.Losses[i] = nodev1.Loss{Pod: shapeOf(loss.Pod + " "), Reason: loss.Reason}
		}
	}
	return kept
}

// shapeOf leaves out names, versions and times.
func shapeOf(text string) string {
	for _, each := range shapes {
		text = each.from.ReplaceAllString(text, each.to)
	}
	return text
}

var shapes = []struct {
	from *regexp.Regexp
	to   string
}{
	{regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`), "UID"},
	{regexp.MustCompile(`pool-[a-z0-9-]+-[0-9a-f]{10}`), "pool-POOL-HASH"},
	{regexp.MustCompile(`^[a-z0-9-]+/([0-9a-f]{10}|local)/\d+$`), "POOL/HASH/ATTEMPT"},
	{regexp.MustCompile(`(resourceVersion"?[ :]"?)\d+`), "${1}VERSION"},
	{regexp.MustCompile(`capacity of \{\{\d+`), "capacity of {{BYTES"},
	{regexp.MustCompile(`default/[a-z0-9-]+ `), "default/POD "},
	{regexp.MustCompile(`allow-disruption=[0-9a-f]{12}`), "allow-disruption=DIGEST"},
	{regexp.MustCompile(`on trial for [0-9a-z.]+ of`), "on trial for DURATION of"},
}

const recorded = "testdata/words.json"

func readRecorded(t *testing.T) map[string]word {
	t.Helper()
	text, err := os.ReadFile(recorded)
	if err != nil {
		t.Fatal(err)
	}
	var words map[string]word
	if err := json.Unmarshal(text, &words); err != nil {
		t.Fatal(err)
	}
	return words
}

// compare holds what was heard against what a real supervisor was recorded to say, of all reasons.
func (r *recording) compare(t *testing.T) {
	t.Helper()
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if diff := cmp.Diff(readRecorded(t), r.words); diff != "" {
		t.Errorf("what is said is not what was recorded of a real supervisor (-recorded +said):\n%s", diff)
	}
}

// await waits until a reason has been heard.
func (r *recording) await(t *testing.T, key string, within time.Duration) {
	t.Helper()
	for deadline := time.Now().Add(within); ; wait(t.Context(), 50*time.Millisecond) {
		r.mutex.Lock()
		_, heard := r.words[key]
		all := slices.Sorted(maps.Keys(r.words))
		r.mutex.Unlock()
		if heard {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("waited %v in vain for %s; heard were %v", within, key, all)
		}
	}
}

// sayAll lets a lone node go through all that a pool may do to it.
func (c *crew) sayAll(r *recording, within time.Duration) {
	c.t.Helper()
	r.await(c.t, "Local", within)
	c.roll(quick, func(p *v1alpha1.KubeletPool) { p.Spec.Layers[0].Inline.Raw = []byte(`{"maxPods":60}`) })
	r.await(c.t, "InTrial", within)
	c.awaitReason(v1alpha1.ConditionReady, "Completed", within)
	r.await(c.t, "Active", within)
	c.change(`{"spec":{"layers":[{"name":"density","inline":{"maxPods":-1}}]}}`)
	r.await(c.t, "Refused", within)
	c.change(`{"spec":{"layers":[{"name":"density","inline":{"systemReserved":{"memory":"9Ti"}}}]}}`)
	r.await(c.t, "RolledBack", within)
	r.await(c.t, "Rejected", within)
	c.change(`{"spec":{"rollout":{"pin":{"local":true}}}}`)
	r.await(c.t, "Local again", within)
}

// sayHeld lets it hold a change for its pods.
func (c *crew) sayHeld(r *recording, within time.Duration) {
	c.t.Helper()
	c.change(`{"spec":{"rollout":{"pin":null},"layers":[{"name":"density","inline":{"maxPods":1,"registryBurst":77}}]}}`)
	r.await(c.t, "WouldDisrupt", within)
}

// The puppets say what a real supervisor was recorded to say, so that the other tests here are about the words of real nodes.
func TestPuppetsSpeakAsRecorded(t *testing.T) {
	t.Parallel()
	c := newCrew(t, name(t), 1, nil)
	c.nature = func(_, payload string) string {
		switch {
		case strings.Contains(payload, "-1"):
			return nodev1.ReasonRefused
		case strings.Contains(payload, "9Ti"):
			return nodev1.ReasonRejected
		case strings.Contains(payload, "77"):
			return nodev1.ReasonWouldDisrupt
		}
		return ""
	}
	c.f.steady(t)
	r := c.record(c.pool + "-1")
	c.sayAll(r, 30*time.Second)
	c.sayHeld(r, 30*time.Second)
	r.compare(t)
}
