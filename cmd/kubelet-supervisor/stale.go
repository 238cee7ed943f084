package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
)

// staleUnits names the units whose own ExecStart is another than the one that enable put behind --: their package was upgraded, say. The
// drop-in goes on with the line as it was, and nobody would notice.
func staleUnits(ctx context.Context, folder string) (stale []string) {
	dropIns, _ := filepath.Glob(filepath.Join(folder, "*.service.d", dropInName)) // the pattern is a good one
	for _, path := range dropIns {
		i := installation{unit: strings.TrimSuffix(filepath.Base(filepath.Dir(path)), ".d"), folder: folder}
		content, err := os.ReadFile(path)
		if err != nil || !strings.HasPrefix(string(content), ourMark) {
			continue
		}
		state, err := showUnit(ctx, i.unit)
		if err != nil || state.LoadState != "loaded" {
			continue
		}
		command, err := readStartCommand(i.otherFiles(state))
		if err != nil || !strings.HasSuffix(string(content), " -- "+command.line+"\n") {
			stale = append(stale, i.unit)
		}
	}
	return stale
}
