//go:build linux

package supervisor

import (
	"strings"

	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/core"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/kubelet"
)

// boot reads what the disk holds. Nothing it meets keeps a kubelet from being started.
func (l *loop) boot() core.Booted {
	var booted core.Booted
	var troubles []string
	note := func(err error) {
		if err != nil {
			troubles = append(troubles, err.Error())
			l.Logger.Warn("state could not be read: " + err.Error())
		}
	}
	changed, err := l.lookLocal()
	note(err)
	booted.Kubelet, booted.Local = changed.Kubelet, changed.Local
	booted.LastChange, booted.Said = l.recordBefore()
	booted.BootID, booted.Cluster, booted.Waited = kubelet.BootID(), l.clusterKeys(), l.foundWaiting
	if l.payloads.store == nil {
		booted.Useless = l.payloads.unusable.Error()
	} else {
		l.payloads.load(&booted.Disk, note)
	}
	booted.Warning = strings.Join(troubles, "; ")
	return booted
}

// recordBefore is what the supervisor before has noted of the newest change, and has said last.
func (l *loop) recordBefore() (change core.LastChange, said core.Said) {
	before, _, err := ReadRecord(l.RunDir)
	if err != nil {
		return change, said
	}
	if before.LastChange != nil {
		change = before.LastChange.LastChange
	}
	return change, core.Said{Reason: before.Status.Reason, Since: before.Status.Since}
}
