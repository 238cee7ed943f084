//go:build linux

package cli

import (
	"context"
	"fmt"
	"os"

	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/kubelet"
)

// checkHost refuses a restart that the kubelet would not come back from: its unit would try for ever, with the supervisor as without it. A
// kubelet that does not run has nothing to lose, and one that cannot be asked is restarted.
func (u unitFiles) checkHost(ctx context.Context, state unitState) error {
	if state.ActiveState != "active" || state.MainPID == 0 {
		return nil
	}
	folder, err := os.MkdirTemp("", "kubelet-supervisor-enable-")
	if err != nil {
		return nil
	}
	defer func() { _ = os.RemoveAll(folder) }()
	effective, arguments, known := runningEffective(ctx, commandLine(state.MainPID), folder)
	if !known {
		return nil
	}
	if found := supervisor.Obstacles(ctx, arguments, effective); len(found) > 0 {
		return fmt.Errorf("%s is not restarted, because the kubelet would not come back, and nothing was written: %s; fix that first, or do "+
			"without --now",
			u.unit, hostWords(found))
	}
	return nil
}

// runningEffective is what the kubelet with this command line would come to at its next start, alone or with a supervisor in front.
func runningEffective(ctx context.Context, words []string, folder string) (
	effective kubeletconfig.Effective, arguments []string, known bool,
) {
	if len(words) == 0 {
		return effective, nil, false
	}
	preflight := kubelet.Preflight{Kubelet: words[0], Arguments: words[1:], TempFolder: folder}
	asked := running{Preflight: preflight}
	if run := cutRun(words[1:]); run.kubelet != "" {
		preflight.Kubelet, preflight.Arguments = run.kubelet, run.arguments
		var err error
		if asked, err = (nodeFolders{runDir: run.runDirs()[0]}).whatRuns(preflight); err != nil {
			return effective, nil, false
		}
	}
	effective, err := asked.ask(ctx)
	return effective, asked.Arguments, err == nil
}
