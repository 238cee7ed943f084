package decide

import "testing"

func TestPhases(t *testing.T) {
	for want, s := range map[string]State{
		"Saving":     {Doing: Save{}},
		"Proving":    {Doing: Prove{}, Child: Child{Alive: true, Healthy: true}},
		"Stopping":   {Doing: Stop{}, Child: Child{Alive: true}},
		"Foreseeing": {Doing: Foresee{}, Child: Child{Alive: true, Healthy: true}},
		"Parking":    {Doing: Park{}, Child: Child{Alive: true, Healthy: true}},
		"Merging":    {Doing: Merge{}, Child: Child{Alive: true, Healthy: true}},
		"Blaming":    {Doing: Blame{}, Child: Child{Alive: true, Healthy: true}},
		"Frozen":     {Frozen: true, Child: Child{Alive: true, Healthy: true}},
		"Backoff":    {},
		"Starting":   {Child: Child{Alive: true}},
		"Running":    {Child: Child{Alive: true, Healthy: true}},
	} {
		if got := s.Phase(); got != want {
			t.Errorf("%s instead of %s", got, want)
		}
	}
	if got := (&State{Doing: Unpark{}}).Phase(); got != "Parking" {
		t.Errorf("an end of what waits is %s", got)
	}
}
