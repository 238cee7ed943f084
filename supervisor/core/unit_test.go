package core

import (
	"strings"
	"testing"
	"time"
)

// Flags and environment that wait for the next start by systemd are told, whatever the configuration does meanwhile (rule 2).
func TestFilesOfTheUnit(t *testing.T) {
	const says = "LocalChangePending: files of the unit changed and take effect when systemd starts it again: "
	first := map[string]string{"/unit": "1", "/flags.env": "1", "/missing.env": ""}
	for _, row := range []struct {
		name string
		now  map[string]string
		says string
	}{
		{"as they were", map[string]string{"/unit": "1", "/flags.env": "1", "/missing.env": ""}, ""},
		{"one is another", map[string]string{"/unit": "1", "/flags.env": "2", "/missing.env": ""}, says + "/flags.env"},
		{"one has gone, and another come", map[string]string{"/unit": "1", "/drop-in": "1", "/missing.env": "1"}, says + "/drop-in, /flags.env, /missing.env"},
		{"many", map[string]string{"/" + strings.Repeat("x", 300): "1"}, says + "/flags.env, /unit, /xxx"},
	} {
		t.Run(row.name, func(t *testing.T) {
			d := newDrive(t).boot().hear(UnitSeen{Files: first}).pass(time.Minute).hear(UnitSeen{Files: row.now})
			d.good("good").expectMessage(row.says)
			if pending := d.s.LocalChangePending(); pending != (row.says != "") {
				t.Errorf("pending: %v", pending)
			}
			if said, _ := Report(d.s); row.says == "" && strings.Contains(said.Message, "LocalChangePending") || len(said.Message) > messageLimit {
				t.Errorf("message: %s", said.Message)
			}
			d.hear(UnitSeen{Files: first})
			if d.s.LocalChangePending() {
				t.Error("pending, although they are as they were")
			}
			d.hear(UnitSeen{Files: row.now}).boot().hear(UnitSeen{Files: row.now})
			if d.s.LocalChangePending() {
				t.Error("pending after a start by systemd")
			}
		})
	}
}

// What systemd has against its next start is said, whatever runs, until it has nothing against it.
func TestWhatSystemdHasAgainstTheNextStart(t *testing.T) {
	const says = "the next start by systemd may fail: status 203/EXEC"
	files := map[string]string{"/unit": "1"}
	d := newDrive(t).boot().good("good").hear(UnitSeen{Files: files, Refuse: "status 203/EXEC"}).pass(time.Minute).expect(goodActive).expectMessage(says)
	if d.s.LocalChangePending() {
		t.Error("a local change is pending")
	}
	d.hear(UnitSeen{Files: files, Refuse: strings.Repeat("x", 9000)})
	if r, _ := Report(d.s); len(r.Message) > messageLimit || !strings.Contains(r.Message, "may fail: xxx") {
		t.Errorf("message: %s", r.Message)
	}
	d.hear(UnitSeen{Files: files})
	if r, _ := Report(d.s); strings.Contains(r.Message, "next start") {
		t.Errorf("message: %s", r.Message)
	}
}
