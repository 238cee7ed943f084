package kubeletconfig

import "testing"

func TestOutcomesInFiles(t *testing.T) {
	for outcome, want := range map[Outcome]string{Accepted: "accepted", Refused: "refused", Environment: "environment", Unknown: "unknown"} {
		text, err := outcome.MarshalText()
		if err != nil || string(text) != want {
			t.Errorf("%s is written as %s, %v", outcome, text, err)
		}
		var read Outcome
		if err := read.UnmarshalText(text); err != nil || read != outcome {
			t.Errorf("%s is read as %s, %v", text, read, err)
		}
	}
	for _, text := range []string{"", "1", "Accepted", "Outcome(0)", "accepted "} {
		var read Outcome
		if err := read.UnmarshalText([]byte(text)); err == nil || read != 0 {
			t.Errorf("%q is read as %s, %v", text, read, err)
		}
	}
	if text, err := Outcome(0).MarshalText(); err == nil {
		t.Errorf("no outcome is written as %s", text)
	}
}
