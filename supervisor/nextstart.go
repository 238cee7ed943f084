package supervisor

import (
	"context"
	"errors"
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
	asked      chan bool // the answer: it would be better
	superseded error
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
		better := l.nextStartIsBetter(ctx)
		select {
		case l.asked <- better:
		case <-ctx.Done():
		}
	})
}

// hearNextStart takes the answer.
func (l *loop) hearNextStart(better bool) (event decide.Event) {
	l.asking = false
	if !better || l.failures == 0 {
		return decide.Ticked{}
	}
	l.superseded = ErrNextStart
	l.manager.Stopping(l.StopTimeout)
	return decide.StopAsked{}
}

// nextStartIsBetter tells whether the unit's command line is another one now, which the kubelet accepts. What is not known changes nothing.
func (l *loop) nextStartIsBetter(ctx context.Context) bool {
	words, err := l.NextStart(ctx)
	if err != nil {
		l.Logger.Debug("the command line of the next start is not known", zap.Error(err))
		return false
	}
	if slices.Equal(words, append([]string{l.Kubelet}, l.Arguments...)) {
		return false
	}
	ask := kubelet.Preflight{Kubelet: words[0], Arguments: words[1:], Mode: l.Preflight, TempFolder: l.preflight.TempFolder}
	verdict := ask.Check(ctx, kubelet.Candidate{}, nil)
	l.Logger.Warn("the unit has another command line for the kubelet than it had when this supervisor started",
		zap.Stringer("verdict", verdict.Outcome), zap.String("words", verdict.Words))
	return verdict.Outcome == config.Accepted
}
