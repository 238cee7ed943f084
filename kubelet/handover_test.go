package kubelet

import "testing"

// An exit that was collected and is not told yet is not lost: the program is not replaced before.
func TestACollectedExitIsToldFirst(t *testing.T) {
	l := NewLauncher(Settings{})
	if _, held := l.Hold(&Child{collected: true}); held {
		t.Error("held while an exit is on its way")
	}
	for _, child := range []*Child{nil, {}} {
		release, held := l.Hold(child)
		if !held {
			t.Fatal("not held")
		}
		release()
	}
}
