package core

import "testing"

func TestPhases(t *testing.T) {
	for want, s := range map[string]State{
		"Saving":     {Doing: Save{}},
		"Proving":    {Doing: Prove{}, Process: Process{Child: Child{Alive: true, Healthy: true}}},
		"Stopping":   {Doing: Stop{}, Process: Process{Child: Child{Alive: true}}},
		"Foreseeing": {Doing: Foresee{}, Process: Process{Child: Child{Alive: true, Healthy: true}}},
		"Parking":    {Doing: Park{}, Process: Process{Child: Child{Alive: true, Healthy: true}}},
		"Merging":    {Doing: Merge{}, Process: Process{Child: Child{Alive: true, Healthy: true}}},
		"Blaming":    {Doing: Blame{}, Process: Process{Child: Child{Alive: true, Healthy: true}}},
		"Frozen":     {Frozen: true, Process: Process{Child: Child{Alive: true, Healthy: true}}},
		"Backoff":    {},
		"Starting":   {Process: Process{Child: Child{Alive: true}}},
		"Running":    {Process: Process{Child: Child{Alive: true, Healthy: true}}},
	} {
		if got := s.Phase(); got != want {
			t.Errorf("%s instead of %s", got, want)
		}
	}
	if got := (&State{Doing: Unpark{}}).Phase(); got != "Parking" {
		t.Errorf("an end of what waits is %s", got)
	}
}
