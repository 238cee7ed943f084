//go:build linux

package supervisor

import (
	"fmt"

	"go.uber.org/zap"

	"github.com/kubelet-supervisor/kubelet-supervisor/decide"
)

// logDecision writes the lines of one decision, readable on a terminal and rich in a journal. The state is still the one before.
func (l *loop) logDecision(event decide.Event, step decide.Step) {
	l.phases = step.Phases
	defer l.logPhases()
	l.logEvent(event)
	for _, e := range step.Events {
		l.log(levelOf(e), eventMessages[e.Reason], l.state.Assigned, e.Message, zap.String("reason", e.Reason))
	}
	because := zap.String("because", fmt.Sprintf("%T", event)[len("decide."):])
	running := l.state.Child.Version
	switch do := step.Do.(type) {
	case decide.Save:
		l.Logger.Debug("writing the state", because)
	case decide.Prove:
		l.Logger.Info("asking the kubelet whether it accepts "+decide.Describe(do.Version), because)
	case decide.Foresee:
		l.Logger.Debug("looking at what the change would do to running pods", because)
	case decide.Park:
		l.Logger.Info("starting the next kubelet, which waits for the end of the one that runs", zap.String("with", decide.Describe(do.Version)))
	case decide.Unpark:
		l.Logger.Info("ending the kubelet that waits", because)
	case decide.Stop:
		l.log(zap.InfoLevel, kubeletStopping, running, "stopping the kubelet", because)
	case decide.Exit:
		l.log(zap.InfoLevel, leaving, running, "the kubelet is stopped, leaving")
	}
}

// logEvent says what happened.
func (l *loop) logEvent(event decide.Event) {
	running := l.state.Child.Version
	switch e := event.(type) {
	case decide.ChildExited:
		level := zap.WarnLevel
		if e.Asked {
			level = zap.InfoLevel
		}
		l.log(level, kubeletExited, running, "kubelet exited",
			zap.Bool("asked", e.Asked), zap.Int("code", e.Code), zap.String("words", e.Words), zap.String("ran", decide.Describe(running)))
	case decide.Proved:
		l.logVerdict(e)
	case decide.ParkEnded:
		l.Logger.Info("the next kubelet", zap.Bool("waits", e.Waits))
		if e.Proved.Outcome != 0 {
			l.logVerdict(e.Proved)
		}
	case decide.Foreseen:
		l.Logger.Info("what the change would do to running pods", zap.Bool("known", e.Known), zap.Int("lost", e.Lost),
			zap.String("words", e.Words), zap.String("waitsFor", e.WaitsFor), zap.String("warning", e.Warning), zap.Any("obstacles", e.Obstacles))
	case decide.Healthy:
		l.log(zap.InfoLevel, kubeletHealthy, running, "kubelet is healthy")
	case decide.Unhealthy:
		l.Logger.Debug("kubelet is not healthy", zap.String("words", e.Words))
	case decide.PortSeen:
		l.logPort(e)
	case decide.Hung:
		l.log(zap.WarnLevel, kubeletHung, running, "the kubelet hangs: it is asked for its goroutines, and restarted", zap.String("words", e.Words))
	case decide.Saved:
		if e.Err != nil {
			l.log(zap.ErrorLevel, stateUnwritable, running, "the state cannot be written", zap.Error(e.Err))
		}
	case decide.SyncFailed:
		l.log(zap.WarnLevel, syncFailed, running, "the assignment cannot be followed", zap.String("assignment", e.Text), zap.String("words", e.Problem.Words))
	case decide.HostStopping:
		l.log(zap.InfoLevel, hostStopping, running, "the host's shutdown", zap.Bool("begins", !e.CalledOff))
	}
}

// logWarning says what the state warns of since this decision: a restart forgets it, and the Node may not be there yet to say it. What could not
// be read at the boot has been said.
func (l *loop) logWarning(event decide.Event, warning string) {
	booted, _ := event.(decide.Booted)
	if warning != "" && warning != l.state.Warning && warning != booted.Warning {
		l.Logger.Warn(warning)
	}
}

func (l *loop) logPort(e decide.PortSeen) {
	if e.HeldBy == "" {
		l.Logger.Info("no other process is seen at the kubelet's healthz port any more")
		return
	}
	l.Logger.Warn("the kubelet cannot become healthy: " + e.HeldBy)
}

func (l *loop) logVerdict(e decide.Proved) {
	var asked *decide.Version
	switch do := l.state.Doing.(type) {
	case decide.Prove:
		asked = do.Version
	case decide.Park:
		asked = do.Version
	}
	fields := []zap.Field{zap.Stringer("verdict", e.Outcome)}
	if e.Words != "" {
		fields = append(fields, zap.String("words", e.Words))
	}
	if len(e.Warnings) > 0 {
		fields = append(fields, zap.Strings("warnings", e.Warnings))
	}
	l.log(zap.InfoLevel, preflightDone, asked, "pre-flight", fields...)
}
