package core

import (
	"testing"
	"time"
)

// Each intended restart has one event KubeletConfigChanged, also where what starts is not what is assigned; a rollback has its own.
func TestEveryIntendedRestartIsAnnounced(t *testing.T) {
	for _, row := range []struct {
		name  string
		given func(d *drive)
		when  func(d *drive)
		want  []string
	}{
		{"a refused one ends a trial, and local starts",
			func(d *drive) { d.assign("young").pass(time.Minute) },
			func(d *drive) { d.refuse("bad", true).assign("bad").pass(time.Minute) },
			[]string{"KubeletConfigRefused", "KubeletConfigChanged"}},
		{"a refused one ends a trial, and last known good starts",
			func(d *drive) { d.good("good").assign("young").pass(time.Minute) },
			func(d *drive) { d.refuse("bad", true).assign("bad").pass(time.Minute) },
			[]string{"KubeletConfigRefused", "KubeletConfigChanged"}},
		{"a refused one costs no restart",
			func(d *drive) { d.good("good") },
			func(d *drive) { d.refuse("bad", true).assign("bad").pass(time.Minute) },
			[]string{"KubeletConfigRefused"}},
		{"one that hangs is rolled back",
			func(d *drive) { d.good("good") },
			func(d *drive) { d.hangs["slow"] = true; d.assign("slow").pass(10 * time.Minute) },
			[]string{"KubeletConfigChanged", "KubeletConfigRolledBack", "KubeletConfigRejected"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			d := newDrive(t).boot()
			row.given(d)
			d.fresh()
			row.when(d)
			d.expectEvents(row.want...)
		})
	}
}
