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

	"github.com/kubelet-supervisor/kubelet-supervisor/config"
	"github.com/kubelet-supervisor/kubelet-supervisor/decide"
	"github.com/kubelet-supervisor/kubelet-supervisor/kubelet"
)

// ErrNextStart ends a supervisor with whose command line no kubelet starts, where its unit has another one now: systemd starts it with that.
var ErrNextStart = errors.New("no kubelet starts with this command line, and its unit has another one now, which the kubelet accepts: systemd has to start it again")

// nextStart is what is known of the command line that the unit would have at its next start.
type nextStart struct {
	failures   int // exits of local in a row, without health between them
	asking     bool
	asked      chan []string // the answer: the words that would be better; nil = none
	superseded error
	doubted    bool // it was said that systemd has not started us with the words of its answer
}

// considerNextStart asks, where local, the last fallback, has not become healthy for as often as ends a trial, whether a start by systemd would have
// another command line (rule 2). As long as anything starts, other flags are somebody's to take by a restart. What local exits over, and whose fault
// that is, says nothing: a kubelet that does not know a flag exits before all else.
func (l *loop) considerNextStart(ctx context.Context, event decide.Event) {
	switch e := event.(type) {
	case decide.Healthy:
		l.failures = 0
	case decide.ChildExited:
		if e.Asked || l.state.Child.Version != nil {
			return
		}
		l.failures++
	}
	_, exited := event.(decide.ChildExited)
	if !exited || l.NextStart == nil || l.asking || l.state.Stopping || l.state.Frozen || l.failures%max(l.TrialFailures, 1) != 0 {
		return
	}
	l.asking = true
	l.spawn(func() {
		better := l.betterNextStart(ctx)
		select {
		case l.asked <- better:
		case <-ctx.Done():
		}
	})
}

// hearNextStart takes the answer.
func (l *loop) hearNextStart(better []string) (event decide.Event) {
	l.asking = false
	if better == nil || l.failures == 0 {
		return decide.Ticked{}
	}
	if err := keepEndedFor(l.RunDir, better); err != nil {
		l.Logger.Warn("it cannot be noted for which command line this supervisor ends", zap.Error(err))
	}
	l.superseded = ErrNextStart
	l.manager.Stopping(l.StopTimeout)
	return decide.StopAsked{}
}

// betterNextStart gives the unit's command line where it is another one now, which the kubelet accepts. What is not known changes nothing.
func (l *loop) betterNextStart(ctx context.Context) []string {
	words, err := l.NextStart(ctx)
	if err != nil {
		l.Logger.Debug("the command line of the next start is not known", zap.Error(err))
		return nil
	}
	if slices.Equal(words, l.words()) {
		return nil
	}
	if slices.Equal(words, endedFor(l.RunDir)) { // and here we are, with others
		if !l.doubted {
			l.doubted = true
			l.Logger.Error("a supervisor has ended for the command line that systemd says it would start the kubelet with, and was started with another: this one does not end for it",
				zap.Strings("words", words))
		}
		return nil
	}
	ask := kubelet.Preflight{Kubelet: words[0], Arguments: words[1:], Mode: l.Preflight, TempFolder: l.preflight.TempFolder}
	verdict := ask.Check(ctx, kubelet.Candidate{}, nil)
	l.Logger.Warn("the unit has another command line for the kubelet than it had when this supervisor started",
		zap.Stringer("verdict", verdict.Outcome), zap.String("words", verdict.Words))
	if verdict.Outcome != config.Accepted {
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
func (l *loop) forgetEndedFor() {
	if slices.Equal(endedFor(l.RunDir), l.words()) {
		_ = os.Remove(filepath.Join(l.RunDir, endedForFile)) // else it keeps a supervisor from ending, and no kubelet from being started
	}
}
