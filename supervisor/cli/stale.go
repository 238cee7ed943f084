//go:build linux

package cli

import (
	"context"
	"path/filepath"
	"strings"
)

// staleUnits returns the units whose own ExecStart differs from the one that enable put behind --: their package was upgraded, say. The
// drop-in goes on with the line as it was, unnoticed.
func staleUnits(ctx context.Context, folder string) (stale []string) {
	for _, e := range enabledUnits(folder) {
		if filepath.Base(e.path) != dropInName {
			continue
		}
		u := unitFiles{unit: e.unit, folder: folder}
		state, err := showUnit(ctx, u.unit)
		if err != nil || state.LoadState != "loaded" {
			continue
		}
		command, err := readStartCommand(u.otherFiles(state))
		if err != nil || !strings.HasSuffix(e.content, " -- "+command.line+"\n") {
			stale = append(stale, u.unit)
		}
	}
	return stale
}
