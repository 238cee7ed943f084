//go:build linux

package cli

import (
	"slices"
	"strings"

	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/core"
)

// hostRefuses returns the exit code and the message of check for a configuration that the kubelet accepts, and that it could not be started
// with on this host. A runtime that does not answer may be on its way, perhaps by the very installation that asks.
func hostRefuses(found []core.Obstacle) (code int, words string) {
	isLasting := func(o core.Obstacle) bool { return o.Kind != core.ObstacleRuntime }
	switch {
	case len(found) == 0:
		return exitOK, ""
	case slices.ContainsFunc(found, isLasting):
		return checkRefused, "accepted, and no kubelet would start here now: " + hostWords(found)
	}
	return checkUnknown, "accepted, and whether a kubelet would start here is not known: " + hostWords(found)
}

func hostWords(found []core.Obstacle) string {
	var words []string
	for _, o := range found {
		words = append(words, o.Words)
	}
	return strings.Join(words, "; ")
}
