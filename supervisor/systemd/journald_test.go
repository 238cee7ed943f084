package systemd

import "testing"

func TestJournalNames(t *testing.T) {
	for key, want := range map[string]string{"messageID": "MESSAGE_ID", "configUID": "CONFIG_UID", "configSource": "CONFIG_SOURCE", "onTrial": "ON_TRIAL",
		"words": "WORDS", "error": "ERROR", "phase2Now": "PHASE2_NOW", "": ""} {
		if got := journalName(key); got != want {
			t.Errorf("%q becomes %q, want %q", key, got, want)
		}
	}
}
