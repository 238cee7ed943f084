package main

import (
	"fmt"
	"os"
	"syscall"

	"github.com/coreos/go-systemd/v22/daemon"
	"go.uber.org/zap"

	"github.com/kubelet-supervisor/kubelet-supervisor/kubelet"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor"
)

const defaultKillSwitch = "/etc/kubelet-supervisor/disabled"

// switchedOff tells whether the kill switch is on. Only a file that is certainly not there leaves the supervisor in charge: whoever
// made something of that name wants it out of the way.
func switchedOff(file string) bool {
	_, err := os.Lstat(file)
	return !os.IsNotExist(err)
}

// becomeKubelet makes this process the kubelet: the same pid, the same command line as in the unit, and nothing of the supervisor's in
// between. systemd is told all that the unit expects of a supervisor, for not every kubelet feeds a watchdog. It returns only when that
// fails. What goes wrong beside it is said, and keeps no kubelet from starting.
func (o *runOptions) becomeKubelet() (err error) {
	if o.Logger, err = newLogger(o.logFormat); err != nil {
		if o.Logger, err = newLogger(""); err != nil {
			return err
		}
	}
	o.Logger.Warn("the kill switch is on: the kubelet runs as it would without the supervisor", zap.String("file", o.killSwitch))
	if err := supervisor.StandAside(o.Options); err != nil {
		o.Logger.Error("what an earlier supervisor left cannot be cleared away", zap.Error(err))
	}
	state := daemon.SdNotifyReady + "\nWATCHDOG_USEC=0\nSTATUS=The kill switch " + o.killSwitch + " is on: the kubelet runs without the supervisor"
	if _, err := daemon.SdNotify(false, state); err != nil {
		o.Logger.Error("the service manager cannot be told", zap.Error(err))
	}
	_ = o.Logger.Sync()
	err = syscall.Exec(o.Kubelet, append([]string{o.Kubelet}, o.Arguments...), kubelet.Environment(os.Environ()))
	return fmt.Errorf("starting the kubelet %s without the supervisor: %w", o.Kubelet, err)
}
