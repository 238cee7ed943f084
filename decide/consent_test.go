package decide

import (
	"testing"
	"time"
)

// A consent that is withdrawn before the stop lets nothing through (rule 19). What had been taken is given back, on the disk too: a host that
// goes down then starts what ran.
func TestConsentWithdrawn(t *testing.T) {
	for name, row := range map[string]struct {
		settings  func(*Settings)
		withdrawn func(d *drive)
		done      []string
	}{
		"while the assignment is written": {
			withdrawn: func(d *drive) {
				d.decide(assigned("two", "1", "two"))
				d.until("the assignment", func(do Action) bool { save, is := do.(Save); return is && save.assigned != nil })
			},
			done: []string{"prove two", "foresee two"}},
		"while the edit waits for its turn": {
			settings:  func(s *Settings) { s.EditSpread = time.Hour },
			withdrawn: func(d *drive) { d.edit("two", "2").pass(2 * time.Second) },
			done:      []string{"prove two", "foresee two"}},
		"while it comes to the lock": {
			settings:  parking,
			withdrawn: func(d *drive) { d.underWay("Park") },
			done:      []string{"prove two", "foresee two", "park two", "unpark"}},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDrive(t, holding, func(s *Settings) {
				if row.settings != nil {
					row.settings(s)
				}
			}).boot().assign("one", "cm", "1").pass(12 * time.Minute)
			consent := Consented{Value: ConsentFor(version("two", "1", "two"))}
			d.kills["two"] = 1
			d.hear(consent).fresh()
			row.withdrawn(d)
			if d.decide(Consented{}); d.s.Doing != nil {
				d.hear(d.answer(d.s.Doing))
			}
			d.pass(5 * time.Second).expectDone(row.done...).expect("assigned=one@1 active=one@1 lkg=one@1 False WouldDisrupt").expectEvents("KubeletConfigHeld")
			if d.disk.Assigned.Content != "one" || d.disk.Trial.Open {
				t.Errorf("on disk is assigned %s, trial %+v", nameOf(d.disk.Assigned), d.disk.Trial)
			}
			d.hear(consent).pass(time.Hour)
			if got := nameOf(d.s.Child.Version); got != "two" {
				t.Errorf("with the consent again %s runs", got)
			}
		})
	}
}
