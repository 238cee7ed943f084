package rollout

import (
	"errors"
	"strings"
	"testing"
	"time"
	_ "time/tzdata"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
)

func windowOf(schedule string, duration time.Duration, zone string) v1alpha1.Window {
	return v1alpha1.Window{Schedule: schedule, Duration: metav1.Duration{Duration: duration}, TimeZone: zone}
}

// When a window is open, and when that changes, all in UTC. In Berlin summer time begins on 29 March 2026, when 02:00 becomes 03:00, and ends on
// 25 October, when 03:00 becomes 02:00.
func TestWindows(t *testing.T) {
	const berlin = "Europe/Berlin"
	night := windowOf("0 22 * * *", 6*time.Hour, "")
	saturday := windowOf("0 22 * * 6", 6*time.Hour, berlin)
	small := windowOf("30 2 * * *", time.Hour, berlin)
	for name, row := range map[string]struct {
		windows []v1alpha1.Window
		now     string
		open    bool
		change  string
	}{
		"none":                                   {nil, "2026-01-01T00:00:00Z", true, ""},
		"a minute before":                        {[]v1alpha1.Window{night}, "2026-01-01T21:59:00Z", false, "2026-01-01T22:00:00Z"},
		"a second before":                        {[]v1alpha1.Window{night}, "2026-01-01T21:59:59Z", false, "2026-01-01T22:00:00Z"},
		"it opens":                               {[]v1alpha1.Window{night}, "2026-01-01T22:00:00Z", true, "2026-01-02T04:00:00Z"},
		"after midnight":                         {[]v1alpha1.Window{night}, "2026-01-02T03:59:59Z", true, "2026-01-02T04:00:00Z"},
		"it closes":                              {[]v1alpha1.Window{night}, "2026-01-02T04:00:00Z", false, "2026-01-02T22:00:00Z"},
		"winter time":                            {[]v1alpha1.Window{saturday}, "2026-03-21T20:59:00Z", false, "2026-03-21T21:00:00Z"},
		"into summer time":                       {[]v1alpha1.Window{saturday}, "2026-03-28T21:00:00Z", true, "2026-03-29T03:00:00Z"},
		"in summer time, still six hours":        {[]v1alpha1.Window{saturday}, "2026-03-29T02:59:00Z", true, "2026-03-29T03:00:00Z"},
		"the next one is an hour earlier in UTC": {[]v1alpha1.Window{saturday}, "2026-03-29T03:00:00Z", false, "2026-04-04T20:00:00Z"},
		"an hour that does not come":             {[]v1alpha1.Window{small}, "2026-03-29T01:00:00Z", false, "2026-03-30T00:30:00Z"},
		"an hour that comes twice":               {[]v1alpha1.Window{small}, "2026-10-25T00:45:00Z", true, "2026-10-25T01:30:00Z"},
		"and its second time":                    {[]v1alpha1.Window{small}, "2026-10-25T01:45:00Z", true, "2026-10-25T02:30:00Z"},
		"after both":                             {[]v1alpha1.Window{small}, "2026-10-25T02:30:00Z", false, "2026-10-26T01:30:00Z"},
		"two, the nearer one opens next":         {[]v1alpha1.Window{night, windowOf("0 12 * * *", time.Hour, "")}, "2026-01-01T10:00:00Z", false, "2026-01-01T12:00:00Z"},
		"two are open, the later one closes":     {[]v1alpha1.Window{night, windowOf("0 23 * * *", 8*time.Hour, "")}, "2026-01-01T23:30:00Z", true, "2026-01-02T07:00:00Z"},
		"it opens again before it closes":        {[]v1alpha1.Window{windowOf("*/10 * * * *", time.Hour, "")}, "2026-01-01T10:05:00Z", true, "2026-01-01T10:10:00Z"},
		"@daily":                                 {[]v1alpha1.Window{windowOf("@daily", time.Hour, "")}, "2026-01-01T00:30:00Z", true, "2026-01-01T01:00:00Z"},
		"a day of leap years":                    {[]v1alpha1.Window{windowOf("0 0 29 2 *", time.Hour, "")}, "2026-01-01T00:00:00Z", false, "2028-02-29T00:00:00Z"},
	} {
		t.Run(name, func(t *testing.T) {
			w, err := readWindows("windows", row.windows, time.LoadLocation)
			if err != nil {
				t.Fatal(err)
			}
			now, err := time.Parse(time.RFC3339, row.now)
			if err != nil {
				t.Fatal(err)
			}
			open, change := w.look(now)
			got := ""
			if !change.IsZero() {
				got = change.UTC().Format(time.RFC3339)
			}
			if open != row.open || got != row.change {
				t.Errorf("open: %v until %q, instead of %v until %q", open, got, row.open, row.change)
			}
		})
	}
}

// What cannot be read never opens, and says where and why.
func TestWindowsThatCannotBeRead(t *testing.T) {
	none := func(string) (*time.Location, error) { return nil, errors.New("unknown time zone") }
	good := windowOf("0 22 * * *", time.Hour, "")
	for name, row := range map[string]struct {
		window v1alpha1.Window
		zones  Zones
		words  string
	}{
		"a time zone that nobody knows": {windowOf("0 22 * * *", time.Hour, "Mars/Olympus"), time.LoadLocation, "windows[1].timeZone: unknown time zone Mars/Olympus"},
		"no time zones here":            {good, none, "timeZone: unknown time zone"},
		"Local":                         {windowOf("0 22 * * *", time.Hour, "Local"), time.LoadLocation, "another zone on each machine"},
		"a time zone in the schedule":   {windowOf("TZ=Europe/Berlin 0 22 * * *", time.Hour, ""), time.LoadLocation, "schedule: the time zone is in timeZone"},
		"nonsense":                      {windowOf("tonight", time.Hour, ""), time.LoadLocation, "schedule: expected exactly 5 fields"},
		"by the stopwatch":              {windowOf("@every 1h", time.Minute, ""), time.LoadLocation, "not by the clock"},
		"30 February":                   {windowOf("0 0 30 2 *", time.Hour, ""), time.LoadLocation, "never comes"},
		"shorter than a minute":         {windowOf("0 0 * * *", time.Second, ""), time.LoadLocation, "duration: 1s is less than a minute"},
	} {
		w, err := readWindows("windows", []v1alpha1.Window{good, row.window}, row.zones)
		if err == nil || !strings.Contains(err.Error(), row.words) {
			t.Errorf("%s: %v, want %q", name, err, row.words)
		}
		if open, change := w.look(tableNow); open || !change.IsZero() {
			t.Errorf("%s: it is open", name)
		}
	}
}
