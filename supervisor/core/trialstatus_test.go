package core

import (
	"reflect"
	"testing"
	"time"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
)

// What the status document says of a trial.
func TestTrialStatus(t *testing.T) {
	crash := ChildExited{Code: 1, Words: "boom", Delay: time.Minute}
	for _, row := range []struct {
		name string
		when func(d *drive)
		want *nodev1.Trial
	}{
		{"local", func(*drive) {}, nil},
		{"so long of so much", func(d *drive) { d.assign("good").pass(healthyAfter + 90*time.Second) },
			&nodev1.Trial{Healthy: "1m30s", Of: "10m0s", Tries: 1}},
		{"in whole seconds", func(d *drive) { d.assign("good").pass(healthyAfter + 1999*time.Millisecond) },
			&nodev1.Trial{Healthy: "1s", Of: "10m0s", Tries: 1}},
		{"between two starts", func(d *drive) { d.assign("good").pass(healthyAfter + time.Minute).hear(crash) },
			&nodev1.Trial{Healthy: "1m0s", Of: "10m0s", Tries: 1}},
		{"the next start", func(d *drive) { d.assign("good").pass(healthyAfter + time.Minute).hear(crash).pass(time.Minute) },
			&nodev1.Trial{Healthy: "1m0s", Of: "10m0s", Tries: 2}},
		{"passed", func(d *drive) { d.good("good") }, nil},
		{"failed", func(d *drive) { d.deadly["bad"] = time.Second; d.assign("bad").pass(time.Minute) }, nil},
		{"the try of another is being written", func(d *drive) {
			d.decide(assigned("young", "1", "young"))
			d.until("the stop", func(do Action) bool { _, is := do.(Stop); return is })
		}, nil},
		{"another kubelet has its account", func(d *drive) {
			d.assign("good").pass(time.Minute)
			d.s.Trial.Kubelet = newerKubelet
		}, nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			d := newDrive(t, standalone).boot().pass(time.Minute)
			row.when(d)
			if got := d.s.TrialStatus(); !reflect.DeepEqual(got, row.want) {
				t.Errorf("%+v, want %+v", got, row.want)
			}
		})
	}
}
