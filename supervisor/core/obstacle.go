package core

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
)

// Some conditions of the host are met by a kubelet only at its start: swap, a client certificate that has expired, a container runtime that
// refuses connections. A kubelet that was started before them runs on, and no other one would start in its place. So a look at a change
// (Foresee) looks for them too, and the change waits: a hold, with an approval, that the first look without an obstacle ends. Crash
// restarts, rollbacks, first starts and boots look for nothing.

// ObstacleKind identifies an obstacle whose details differ from look to look.
type ObstacleKind string

// The obstacles.
const (
	ObstacleSwap       ObstacleKind = "Swap"
	ObstacleCredential ObstacleKind = "Credential"
	ObstacleRuntime    ObstacleKind = "Runtime" // often a restart of the runtime, which is over in a moment
)

// Obstacle is what keeps every kubelet from starting with a configuration on the host as it is now.
type Obstacle struct {
	Kind  ObstacleKind
	Words string
}

// obstacles returns those of the newest look at the change.
func (h *Held) obstacles(c Change) []Obstacle {
	if !h.foresaw(c) {
		return nil
	}
	return h.Outlook.Obstacles
}

// isObstructed reports whether the change would leave the node without a kubelet, and for longer than a moment.
func (h *Held) isObstructed(now time.Duration, settings Settings, c Change) bool {
	found := h.obstacles(c)
	lasts := slices.ContainsFunc(found, func(o Obstacle) bool { return o.Kind != ObstacleRuntime })
	return len(found) > 0 && (lasts || settings.Disruption == Hold && h.losesPods(c) || now >= h.Outlook.Since+askedForLong)
}

// whyObstructed returns why the change waits for the host; empty where it does not.
func (h *Held) whyObstructed(c Change) string {
	found := h.obstacles(c)
	if len(found) == 0 {
		return ""
	}
	return "no kubelet would start: " + wordsOf(found)
}

func wordsOf(found []Obstacle) string {
	var words []string
	for _, o := range found {
		words = append(words, o.Words)
	}
	return strings.Join(words, "; ")
}

// unreadObstacles reports whether the look has found a kind of obstacle that the hold has not named, so the user who approved has not read
// of it.
func (h *Held) unreadObstacles(c Change) bool {
	return slices.ContainsFunc(h.obstacles(c), func(o Obstacle) bool {
		return !h.isHold(c) || !slices.Contains(h.Hold.Obstacles, o.Kind)
	})
}

// nameObstacles has the hold name what the newest look has found.
func (h *Held) nameObstacles(c Change) {
	named := slices.Clone(h.Hold.Obstacles) // a decision does not change the state that it was given
	for _, o := range h.obstacles(c) {
		if !slices.Contains(named, o.Kind) {
			named = append(named, o.Kind)
		}
	}
	h.Hold.Obstacles = named
}

// findObstructed finds a change that waits for the host.
func findObstructed(s *State, want, newest *Version, hint string) *finding {
	ways := without([]string{"fix the node, whose kubelet still runs", hint}, isEmpty)
	return &finding{corev1.ConditionUnknown, nodev1.ReasonEnvironmentFailing,
		describeChange(s, want, newest) + " waits: " + whyHeld(s, want), strings.Join(ways, ", or ")}
}

// findNextStart finds that the kubelet runs, and would not come back after a crash or a reboot.
func findNextStart(s *State) *finding {
	if len(s.Obstacles) == 0 {
		return nil
	}
	return &finding{corev1.ConditionUnknown, nodev1.ReasonEnvironmentFailing,
		"the kubelet runs, and no kubelet would start in its place: " + wordsOf(s.Obstacles),
		"fix the node before the kubelet or the host restarts; nothing is blamed on the configuration"}
}
