//go:build linux

package supervisor

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"k8s.io/client-go/rest"

	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/core"
)

// decisionLog writes what is decided into the log.
type decisionLog struct {
	*inputs
	connection func() (rest.Interface, string) // of the Node's name
	phases     []core.EndedPhase               // that the present decision has ended, and no line has yet
}

// observe writes the lines of one decision, readable on a terminal and rich in a journal.
func (l *decisionLog) observe(_ context.Context, d *decision) {
	l.phases = d.step.Phases
	l.event(&d.before, d.event)
	for _, e := range d.step.Events {
		l.line(&d.before, levelOf(e), eventMessages[e.Reason], d.before.Assigned, e.Message, zap.String("reason", e.Reason))
	}
	l.action(&d.before, d.step.Do, zap.String("because", wordOf(d.event)))
	l.endPhases(&d.before)
	l.warning(d)
}

// action logs what is done now.
func (l *decisionLog) action(s *core.State, do core.Action, because zap.Field) {
	running := s.Child.Version
	switch do := do.(type) {
	case core.Save:
		l.Logger.Debug("writing the state", because)
	case core.Prove:
		l.Logger.Info("asking the kubelet whether it accepts "+core.Describe(do.Version), because)
	case core.Foresee:
		l.Logger.Debug("looking at what the change would do to running pods", because)
	case core.Park:
		l.Logger.Info("starting the next kubelet, which waits for the end of the one that runs", zap.String("with", core.Describe(do.Version)))
	case core.Unpark:
		l.Logger.Info("ending the kubelet that waits", because)
	case core.Stop:
		l.line(s, zap.InfoLevel, kubeletStopping, running, "stopping the kubelet", because)
	case core.Exit:
		l.line(s, zap.InfoLevel, leaving, running, "the kubelet is stopped, leaving")
	}
}

// event logs what happened.
func (l *decisionLog) event(s *core.State, event core.Event) {
	running := s.Child.Version
	switch e := event.(type) {
	case core.ChildExited:
		level := zap.WarnLevel
		if e.Asked {
			level = zap.InfoLevel
		}
		l.line(s, level, kubeletExited, running, "kubelet exited",
			zap.Bool("asked", e.Asked), zap.Int("code", e.Code), zap.String("words", e.Words), zap.String("ran", core.Describe(running)))
	case core.Proved:
		l.verdict(s, e)
	case core.ParkEnded:
		l.Logger.Info("the next kubelet", zap.Bool("waits", e.Waits))
		if e.Proved.Outcome != 0 {
			l.verdict(s, e.Proved)
		}
	case core.Foreseen:
		l.Logger.Info("what the change would do to running pods", zap.Bool("known", e.Known), zap.Int("lost", e.Lost),
			zap.String("words", e.Words), zap.String("waitsFor", e.WaitsFor), zap.String("warning", e.Warning), zap.Any("obstacles", e.Obstacles))
	case core.Healthy:
		l.line(s, zap.InfoLevel, kubeletHealthy, running, "kubelet is healthy")
	case core.Unhealthy:
		l.Logger.Debug("kubelet is not healthy", zap.String("words", e.Words))
	case core.PortSeen:
		l.port(e)
	case core.Hung:
		l.line(s, zap.WarnLevel, kubeletHung, running, "the kubelet hangs: it is asked for its goroutines, and restarted",
			zap.String("words", e.Words))
	case core.Saved:
		if e.Err != nil {
			l.line(s, zap.ErrorLevel, stateUnwritable, running, "the state cannot be written", zap.Error(e.Err))
		}
	case core.SyncFailed:
		l.line(s, zap.WarnLevel, syncFailed, running, "the assignment cannot be followed", zap.String("assignment", e.Text),
			zap.String("words", e.Problem.Words))
	case core.HostStopping:
		l.line(s, zap.InfoLevel, hostStopping, running, "the host's shutdown", zap.Bool("begins", !e.CalledOff))
	}
}

// warning logs what the state warns of since this decision: a restart forgets it, and the Node may not be there yet to say it. What could
// not be read at the boot has been said.
func (l *decisionLog) warning(d *decision) {
	booted, _ := d.event.(core.Booted)
	if now := d.after.Warning; now != "" && now != d.before.Warning && now != booted.Warning {
		l.Logger.Warn(now)
	}
}

func (l *decisionLog) port(e core.PortSeen) {
	if e.HeldBy == "" {
		l.Logger.Info("no other process is seen at the kubelet's healthz port now")
		return
	}
	l.Logger.Warn("the kubelet cannot become healthy: " + e.HeldBy)
}

func (l *decisionLog) verdict(s *core.State, e core.Proved) {
	var asked *core.Version
	switch do := s.Doing.(type) {
	case core.Prove:
		asked = do.Version
	case core.Park:
		asked = do.Version
	}
	fields := []zap.Field{zap.Stringer("verdict", e.Outcome)}
	if e.Words != "" {
		fields = append(fields, zap.String("words", e.Words))
	}
	if len(e.Warnings) > 0 {
		fields = append(fields, zap.Strings("warnings", e.Warnings))
	}
	l.line(s, zap.InfoLevel, preflightDone, asked, "pre-flight", fields...)
}

// line writes a line about a decision, and v, the configuration that it is about. All that comes as one inline object, by which a log for
// people knows what to leave out.
func (l *decisionLog) line(s *core.State, level zapcore.Level, id messageID, v *core.Version, words string, fields ...zap.Field) {
	if entry := l.Logger.Check(level, words); entry != nil {
		_, node := l.connection()
		entry.Write(append(fields, zap.Inline(about{message: id, phase: s.Phase(), version: v, node: node, ended: l.takePhase()}))...)
	}
}

// takePhase returns a phase that the decision has ended, which one of its lines carries.
func (l *decisionLog) takePhase() *core.EndedPhase {
	if len(l.phases) == 0 {
		return nil
	}
	ended := l.phases[0]
	l.phases = l.phases[1:]
	return &ended
}

// endPhases writes a line for each ended phase that no other line of the decision carries.
func (l *decisionLog) endPhases(s *core.State) {
	for len(l.phases) > 0 {
		ended := l.phases[0]
		l.line(s, zap.InfoLevel, phaseEnded, ended.To, fmt.Sprintf("%s of the change took %s", ended.Phase, ended.Took.Round(time.Millisecond)))
	}
}
