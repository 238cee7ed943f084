package supervisor

import (
	"fmt"

	"go.uber.org/zap"
)

// logDecision writes one line for each decision, readable on a terminal and rich in a journal.
func (l *loop) logDecision(event any, step Step) {
	if exited, is := event.(ChildExited); is {
		ran := describe(l.state.Child.Version)
		level := l.Logger.Info
		if !exited.Asked {
			level = l.Logger.Warn
		}
		level("kubelet exited", zap.Bool("asked", exited.Asked), zap.Int("code", exited.Code), zap.String("words", exited.Words), zap.String("ran", ran))
	}
	for _, e := range step.Events {
		l.Logger.Info(e.Message, zap.String("reason", e.Reason))
	}
	because := zap.String("because", fmt.Sprintf("%T", event)[len("supervisor."):])
	switch do := step.Do.(type) {
	case Save:
		l.Logger.Debug("writing the state", because)
	case Prove:
		l.Logger.Info("asking the kubelet whether it accepts "+describe(do.Version), because)
	case Stop:
		l.Logger.Info("stopping the kubelet", because)
	case Start:
		l.Logger.Info("starting the kubelet with "+describe(do.Version), zap.Bool("onTrial", do.OnTrial), because)
	case Exit:
		l.Logger.Info("the kubelet is stopped, leaving")
	}
	switch e := event.(type) {
	case Proved:
		fields := []zap.Field{zap.Stringer("verdict", e.Outcome)}
		if e.Words != "" {
			fields = append(fields, zap.String("words", e.Words))
		}
		if len(e.Warnings) > 0 {
			fields = append(fields, zap.Strings("warnings", e.Warnings))
		}
		l.Logger.Info("pre-flight", fields...)
	case Healthy:
		l.Logger.Info("kubelet is healthy")
	case Unhealthy:
		l.Logger.Debug("kubelet is not healthy", zap.String("words", e.Words))
	case Saved:
		if e.Err != nil {
			l.Logger.Error("the state cannot be written", zap.Error(e.Err))
		}
	case SyncFailed:
		l.Logger.Warn("the assignment cannot be followed", zap.String("assignment", e.Text), zap.String("words", e.Problem.Words))
	}
}
