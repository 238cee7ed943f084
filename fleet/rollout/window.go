package rollout

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
)

// Zones finds a time zone by its name, as [time.LoadLocation] does.
type Zones func(name string) (*time.Location, error)

// windows are the times at which a change may begin.
type windows struct {
	all []window
	// closed means that the spec of the windows is invalid, so they never open.
	closed bool
}

type window struct {
	opens    *cron.SpecSchedule
	duration time.Duration
}

// readWindows reads the windows at a path of a spec. If one is invalid, none opens.
func readWindows(path string, from []v1alpha1.Window, zones Zones) (windows, error) {
	var w windows
	for i := range from {
		one, err := readWindow(&from[i], zones)
		if err != nil {
			return windows{closed: true}, fmt.Errorf("%s[%d].%w", path, i, err)
		}
		w.all = append(w.all, one)
	}
	return w, nil
}

func readWindow(from *v1alpha1.Window, zones Zones) (window, error) {
	name := from.TimeZone
	if name == "" {
		name = "Etc/UTC"
	}
	if strings.EqualFold(name, "local") {
		return window{}, errors.New("timeZone: Local is another zone on each machine")
	}
	zone, err := zones(name)
	if err != nil {
		return window{}, fmt.Errorf("timeZone: %w", err)
	}
	if strings.Contains(from.Schedule, "TZ=") {
		return window{}, errors.New("schedule: the time zone is in timeZone")
	}
	schedule, err := cron.ParseStandard(from.Schedule)
	if err != nil {
		return window{}, fmt.Errorf("schedule: %w", err)
	}
	opens, is := schedule.(*cron.SpecSchedule)
	if !is {
		return window{}, fmt.Errorf("schedule: %q counts from the time of evaluation, and not by the clock", from.Schedule)
	}
	if !v1alpha1.IsSchedule(from.Schedule) {
		return window{}, fmt.Errorf("schedule: %q is neither five fields of cron, such as 0 22 * * 1-5, nor @daily and its like", from.Schedule)
	}
	// Cron looks five years ahead; from 2000 on these contain every possible date.
	if opens.Next(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
		return window{}, fmt.Errorf("schedule: %q never comes", from.Schedule)
	}
	if from.Duration.Duration < time.Minute {
		return window{}, fmt.Errorf("duration: %v is less than a minute", from.Duration.Duration)
	}
	opens.Location = zone
	return window{opens, from.Duration.Duration}, nil
}

// look reports whether a window is open, and when that may change; the zero time means never. Without windows it
// is always open.
func (w *windows) look(now time.Time) (open bool, change time.Time) {
	if w.closed || len(w.all) == 0 {
		return !w.closed, time.Time{}
	}
	var opens, closes time.Time
	for i := range w.all {
		one := &w.all[i]
		next := one.opens.Next(now.Add(-one.duration)) // the first that is not over
		switch {
		case next.IsZero():
		case !next.After(now):
			if open = true; next.Add(one.duration).After(closes) {
				closes = next.Add(one.duration)
			}
		case opens.IsZero() || next.Before(opens):
			opens = next
		}
	}
	if open {
		return true, closes
	}
	return false, opens
}
