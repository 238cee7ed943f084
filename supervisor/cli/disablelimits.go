//go:build linux

package cli

import (
	"context"

	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor"
)

// writeLimitsBack takes the limits back that the assigned configuration has set on cgroups of the system: the kubelet that runs next does
// not know of them. A limit that cannot be written back is reported, and keeps no kubelet from its own unit.
func (i installation) writeLimitsBack(ctx context.Context) {
	stateDir := i.options().StateDir
	if i.dryRun {
		back, _, err := supervisor.LimitsToWriteBack(ctx, stateDir)
		for _, k := range back {
			i.say("Would write back:   %s to %.64s", k.Limit, k.Before)
		}
		i.sayLimitsFailed(err)
		return
	}
	said, err := supervisor.WriteBackLimits(ctx, stateDir)
	for _, words := range said {
		i.say("Limit:              %s", words)
	}
	i.sayLimitsFailed(err)
}

func (i installation) sayLimitsFailed(err error) {
	if err != nil {
		i.say("Limits that a kubelet has set on the host stay: %v", err)
	}
}
