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
	l.spawn(func() {
		defer end()
		result := carryOut(ctx)
		crashPoint("after", do)
		answers <- result
	})
}

func (l *loop) giveUpQuestion() {
	if l.question.end != nil {
		l.question.end()
	}
	l.question = question{}
}
