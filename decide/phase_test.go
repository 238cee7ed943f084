package decide

import "testing"

func TestPhases(t *testing.T) {
	for want, s := range map[string]State{
		"Saving":   {Doing: Save{}},
		"Proving":  {Doing: Prove{}, Child: Child{Alive: true, Healthy: true}},
		"Stopping": {Doing: Stop{}, Child: Child{Alive: true}},
		"Frozen":   {Frozen: true, Child: Child{Alive: true, Healthy: true}},
		"Backoff":  {},
		"Starting": {Child: Child{Alive: true}},
		"Running":  {Child: Child{Alive: true, Healthy: true}},
	} {
		if got := s.Phase(); got != want {
			t.Errorf("%s instead of %s", got, want)
		}
	}
}
