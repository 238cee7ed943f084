package v1

import "testing"

func TestApproval(t *testing.T) {
	a := NewApproval("sha256:aa", "sha256:bb", "n1")
	if len(a) != 12 {
		t.Errorf("%q does not have 12 digits", a)
	}
	for name, other := range map[string]Approval{
		"another nonce":        NewApproval("sha256:aa", "sha256:bb", "n2"),
		"other that runs":      NewApproval("sha256:ac", "sha256:bb", "n1"),
		"other that is to run": NewApproval("sha256:aa", "sha256:bc", "n1"),
		"the way back":         NewApproval("sha256:bb", "sha256:aa", "n1"),
	} {
		if other == a {
			t.Errorf("%s has the same approval", name)
		}
	}
	for value, want := range map[string][2]bool{
		string(a): {true, false}, a.WithAny(): {true, true}, "": {}, "+any": {}, "local": {}, string(a) + "+": {}, string(a)[:11]: {},
	} {
		if given, acceptsAny := a.GivenBy(value); given != want[0] || acceptsAny != want[1] {
			t.Errorf("%q: given %v, any %v", value, given, acceptsAny)
		}
	}
	if given, _ := Approval("").GivenBy(""); given {
		t.Error("no approval is given by no value")
	}
}
