//go:build linux

package cli

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"github.com/coreos/go-systemd/v22/daemon"
	"go.uber.org/zap"

	"github.com/kubelet-supervisor/kubelet-supervisor/internal/bounded"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/cli/signals"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/kubelet"
)

const (
	defaultKillSwitch = "/etc/kubelet-supervisor/disabled"
	aloneStatusLimit  = 300 // bytes of STATUS=
	aloneStatus       = "The kubelet runs without the supervisor: "
)

// switchedOff reports whether the kill switch is on. Only a file that is certainly not there leaves the supervisor in charge: a user who
// made something of that name wants it out of the way.
func switchedOff(file string) bool {
	_, err := os.Lstat(file)
	return !os.IsNotExist(err)
}

// executeOrAlone carries a command line out. Of one of run nothing that is wrong costs the node its kubelet: where the kill switch is on,
// and where a word, a value or a folder is wrong, the kubelet is started alone.
func (o *runOptions) executeOrAlone(words []string, execute func() error) error {
	if !isRun(words) {
		return execute()
	}
	signals.OutlivePipes()
	r := cutRun(words)
	o.Handover = supervisor.TakeHandover()
	switch {
	case r.kubelet == "", r.has("--" + selfCheckFlag):
		return execute()
	case o.Handover == nil && switchedOff(r.killSwitch()):
		return r.becomeKubelet("the kill switch "+r.killSwitch()+" is on", o.Version, nil)
	case r.has("--help", "-h"):
		return r.becomeKubelet("the command line asks for help, before the kubelet's own", o.Version, o.Handover)
	}
	err := execute()
	if !isUsage(err) || errors.Is(err, supervisor.ErrAnother) {
		return err
	}
	return r.becomeKubelet(err.Error(), o.Version, o.Handover)
}

// becomeKubelet makes this process the kubelet: the same pid, the same command line as in the unit, and nothing of the supervisor's in
// between. It is for the kill switch, and for a command line that is wrong, which must not cost the node its kubelet. It returns only
// when that fails, or when there would be two kubelets. All else that goes wrong is said, and keeps no kubelet from starting.
func (r runWords) becomeKubelet(why, version string, handover *supervisor.Handover) error {
	why = bounded.Line(why) // the arguments of a command line are not log lines
	logger, endLog := newLogger(r.logFormat())
	defer endLog()
	logger = logger.With(zap.String("withoutSupervisor", why))
	logger.Error("the kubelet is started alone, as it is written, without the supervisor")
	err := supervisor.StandAside(supervisor.Options{Kubelet: r.kubelet, Arguments: r.arguments, StateDir: r.stateDir(),
		StopTimeout: r.stopTimeout(),
		Logger:      logger, Version: version, Handover: handover}, why, r.runDirs()...)
	if err != nil {
		return fmt.Errorf("no second kubelet is started (%s): %w", why, err)
	}
	if _, err := daemon.SdNotify(false, aloneNotice(why)); err != nil {
		logger.Error("the service manager cannot be notified", zap.Error(err))
	}
	_ = logger.Sync()
	err = syscall.Exec(r.kubelet, append([]string{r.kubelet}, r.arguments...), kubelet.Environment(os.Environ()))
	return fmt.Errorf("starting the kubelet %s without the supervisor: %w", r.kubelet, err)
}

// aloneNotice tells systemd all that the unit expects of a supervisor, because not every kubelet says READY=1 or feeds a watchdog.
func aloneNotice(why string) string {
	return daemon.SdNotifyReady + "\nWATCHDOG_USEC=0\nSTATUS=" + bounded.Text(aloneStatus+why, aloneStatusLimit)
}
