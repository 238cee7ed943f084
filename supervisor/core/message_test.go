package core

import (
	"strings"
	"testing"
	"time"
)

// However much there is to say, what runs and what to do are said whole.
func TestALongMessage(t *testing.T) {
	why, exit, warning := strings.Repeat("w", 600), strings.Repeat("e", 500), strings.Repeat("!", 700)
	d := newDrive(t, holding).boot()
	d.kills["few"] = 3
	d.assign("few")
	d.s.Outlook.Words, d.s.Exit, d.s.Warning = why, exit, warning
	r, _ := Report(d.s)
	_, _, held := heldChange(&d.s)
	if !held || len(r.Message) > messageLimit {
		t.Fatalf("held: %t, %d bytes", held, len(r.Message))
	}
	hint := "; drain the node, or set annotation kubelet-supervisor.io/allow-disruption=" + d.approval()
	if !strings.HasPrefix(r.Message, "using current (default); ") || !strings.HasSuffix(r.Message, hint) {
		t.Errorf("message: %s", r.Message)
	}
	for _, part := range []string{"wwww…; last exit: eeee", "eeee…; !!!!", "!!!!…; drain"} {
		if !strings.Contains(r.Message, part) {
			t.Errorf("message lacks %q: %s", part, r.Message)
		}
	}
}

// An event keeps its end, too: what happens now.
func TestALongEvent(t *testing.T) {
	d := newDrive(t).boot()
	d.assign("bad").pass(time.Millisecond)
	for range testSettings.TrialFailures {
		d.hear(ChildExited{Code: 1, Words: strings.Repeat("e", 2000)})
	}
	d.pass(20 * time.Second)
	for _, reason := range []string{"KubeletConfigRolledBack", "KubeletConfigRejected"} {
		end := map[string]string{"KubeletConfigRolledBack": "…; falling back to the local configuration", "KubeletConfigRejected": "…; the fallback runs well"}[reason]
		found := false
		for _, e := range d.told {
			found = found || e.Reason == reason && strings.HasSuffix(e.Message, end) && len(e.Message) <= messageLimit
		}
		if !found {
			t.Errorf("no event %s that ends so: %s: %+v", reason, end, d.told)
		}
	}
}
