//go:build linux

package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"

	"go.uber.org/zap"

	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/core"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/kubelet"
)

// ErrNextStart ends a supervisor with whose command line no kubelet starts, where its unit has another one now: systemd starts it with
// that.
var ErrNextStart = errors.New("no kubelet starts with this command line, and its unit has another one now, which the kubelet accepts: " +
	"systemd has to start it again")

// nextStart finds out whether the unit would have another command line at its next start.
type nextStart struct {
	*inputs
	*workers
	failures   int // exits of local in a row, without health between them
	asking     bool
	asked      chan []string // the answer: the words that would be better; nil = none
	superseded error
	doubted    bool // it was logged that systemd has not started us with the command line of its answer
}

// observe asks, where local, the last fallback, has not become healthy for as often as ends a trial, whether a start by systemd would have
// another command line (rule 2). As long as anything starts, other flags are taken when a person restarts the supervisor. What local exits
// over, and whose fault that is, says nothing: a kubelet that does not know a flag exits before all else.
func (n *nextStart) observe(ctx context.Context, d *decision) {
	switch e := d.event.(type) {
	case core.Healthy:
		n.failures = 0
	case core.ChildExited:
		if e.Asked || d.after.Child.Version != nil {
			return
		}
		n.failures++
	}
	_, exited := d.event.(core.ChildExited)
	if !exited || n.NextStart == nil || n.asking || d.after.Stopping || d.after.Frozen || n.failures%max(n.TrialFailures, 1) != 0 {
		return
	}
	n.asking = true
	n.spawn(func() {
		better := n.betterNextStart(ctx)
		select {
		case n.asked <- better:
		case <-ctx.Done():
		}
	})
}

// hear takes the answer.
func (n *nextStart) hear(better []string) (event core.Event) {
	n.asking = false
	if better == nil || n.failures == 0 {
		return core.Ticked{}
	}
	if err := keepEndedFor(n.RunDir, better); err != nil {
		n.Logger.Warn("it cannot be noted for which command line this supervisor ends", zap.Error(err))
	}
	n.superseded = ErrNextStart
	return core.StopAsked{}
}

// betterNextStart returns the unit's command line where it has changed and the kubelet accepts it. What is not known changes nothing.
func (n *nextStart) betterNextStart(ctx context.Context) []string {
	words, err := n.NextStart(ctx)
	if err != nil {
		n.Logger.Debug("the command line of the next start is not known", zap.Error(err))
		return nil
	}
	if slices.Equal(words, n.words()) {
		return nil
	}
	if slices.Equal(words, endedFor(n.RunDir)) { // and here we are, with others
		if !n.doubted {
			n.doubted = true
			n.Logger.Error("a supervisor has ended for the command line that systemd says it would start the kubelet with, and was started with "+
				"another: this one does not end for it",
				zap.Strings("words", words))
		}
		return nil
	}
	ask := kubelet.Preflight{Kubelet: words[0], Arguments: words[1:], Mode: n.Preflight, TempFolder: filepath.Join(n.RunDir, preflightFolder)}
	verdict := ask.Check(ctx, kubelet.Candidate{}, nil)
	n.Logger.Warn("the unit has another command line for the kubelet than it had when this supervisor started",
		zap.Stringer("verdict", verdict.Outcome), zap.String("words", verdict.Words))
	if verdict.Outcome != kubeletconfig.Accepted {
		return nil
	}
	return words
}

// words are those of our own start.
func (o Options) words() []string { return append([]string{o.Kubelet}, o.Arguments...) }

// endedForFile is in RUN_DIR. An answer of systemd that does not come true must not end one supervisor after the other.
const endedForFile = "ended-for.json"

// endedForWords is what it has.
type endedForWords struct {
	BootID string   `json:"bootID"`
	Words  []string `json:"words"`
}

// endedFor is the command line for which a supervisor has ended since the host has booted; nil = none has.
func endedFor(runDir string) []string {
	var ended endedForWords
	data, err := readRunFile(filepath.Join(runDir, endedForFile))
	if err != nil || json.Unmarshal(data, &ended) != nil || ended.BootID != kubelet.BootID() {
		return nil
	}
	return ended.Words
}

func keepEndedFor(runDir string, words []string) error {
	data, err := json.Marshal(endedForWords{kubelet.BootID(), words})
	if err != nil {
		return err
	}
	return replaceRunFile(filepath.Join(runDir, endedForFile), data)
}

// forgetEndedFor is for a supervisor that systemd has started with the words for which another has ended: the answer was right.
func (o Options) forgetEndedFor() {
	if slices.Equal(endedFor(o.RunDir), o.words()) {
		_ = os.Remove(filepath.Join(o.RunDir, endedForFile)) // else it keeps a supervisor from ending, and no kubelet from being started
	}
}
