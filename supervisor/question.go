//go:build linux

package supervisor

import (
	"context"

	"github.com/kubelet-supervisor/kubelet-supervisor/decide"
)

// A question is carried out beside the loop. It can be given up: then it ends soon, and its answer is heard by nobody.
type question struct {
	end     context.CancelFunc
	answers chan decide.Event
}

// answerQuestion is answer for what can be given up.
func (l *loop) answerQuestion(life lifetimes, do decide.Action, carryOut func(ctx context.Context) decide.Event) {
	ctx, end := context.WithCancel(life.asked)
	answers := make(chan decide.Event, 1)
	l.question = question{end, answers}
	l.questions.Add(1)
	l.spawn(func() {
		defer end()
		result := carryOut(ctx)
		crashPoint("after", do)
		l.questions.Add(-1)
		answers <- result
		if ctx.Err() != nil {
			l.send(life.over, decide.Ticked{}) // a reload may wait for the end of what was given up
		}
	})
}

func (l *loop) giveUpQuestion() {
	if l.question.end != nil {
		l.question.end()
	}
	l.question = question{}
}
