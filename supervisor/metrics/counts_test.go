//go:build linux

package metrics

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	corev1 "k8s.io/api/core/v1"

	"github.com/kubelet-supervisor/kubelet-supervisor/forecast/rejection"
	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/core"
)

// world is a supervisor's metrics, a clock for them, and the state that was decided on last.
type world struct {
	*Metrics
	clock time.Duration
	state core.State
}

func newWorld(before Counts) *world {
	w := &world{state: core.New(core.Settings{TrialPeriod: 10 * time.Minute})}
	w.Metrics = New("v1.2.3", before, func() time.Duration { return w.clock })
	return w
}

// hear takes in a decision after a second.
func (w *world) hear(event core.Event, do core.Action, change func(*core.State), reasons ...string) *world {
	w.clock += time.Second
	before := w.state
	if change != nil {
		change(&w.state)
	}
	step := core.Step{Do: do}
	for _, reason := range reasons {
		step.Events = append(step.Events, core.NodeEvent{Reason: reason})
	}
	w.Decided(&before, &w.state, event, &step)
	return w
}

// series are the lines of the text, as values by name and labels.
func (w *world) series() map[string]string {
	all := map[string]string{}
	for line := range strings.Lines(string(w.Text())) {
		if line = strings.TrimSpace(line); !strings.HasPrefix(line, "#") {
			at := strings.LastIndex(line, " ")
			all[line[:at]] = line[at+1:]
		}
	}
	return all
}

// differ is what changed between two looks.
func differ(before, after map[string]string) map[string]string {
	changed := maps.Clone(after)
	maps.DeleteFunc(changed, func(name, value string) bool { return before[name] == value })
	return changed
}

func healthy(is bool) func(*core.State) {
	return func(s *core.State) { s.Child.Alive, s.Child.Healthy = is, is }
}

// What each decision counts, and nothing else.
func TestWhatIsCounted(t *testing.T) {
	suspect := func(cause core.Cause) func(*core.State) {
		return func(s *core.State) { s.Suspects = []core.Suspect{{Cause: core.Exited}, {Cause: cause}} }
	}
	for name, row := range map[string]struct {
		event   core.Event
		change  func(*core.State)
		reasons []string
		want    []string // name and labels, without our prefix, of what is 1 more
	}{
		"a pre-flight":                  {event: core.Proved{Proof: core.Proof{Outcome: kubeletconfig.Refused}}, want: []string{`preflights_total{outcome="refused"}`}},
		"one that was abandoned":        {event: core.Proved{}},
		"a kubelet that waits":          {event: core.ParkEnded{Waits: true}, want: []string{`preflights_total{outcome="accepted"}`}},
		"one that does not":             {event: core.ParkEnded{Proved: core.Proved{Proof: core.Proof{Outcome: kubeletconfig.Environment}}}, want: []string{`preflights_total{outcome="environment"}`}},
		"an exit":                       {event: core.ChildExited{Code: 1}, want: []string{`kubelet_exits_total{asked="false",cause="error"}`}},
		"a clean one":                   {event: core.ChildExited{}, want: []string{`kubelet_exits_total{asked="false",cause="clean"}`}},
		"a signal":                      {event: core.ChildExited{Code: -1}, want: []string{`kubelet_exits_total{asked="false",cause="signal"}`}},
		"one that we asked for":         {event: core.ChildExited{Asked: true, Code: -1}, want: []string{`kubelet_exits_total{asked="true",cause="stopped"}`}},
		"a start":                       {event: core.Started{}, want: []string{`kubelet_starts_total{why="begin"}`}},
		"one that failed":               {event: core.Started{Err: errors.New("no")}},
		"one that state files prevent":  {event: core.Started{InTheWay: []kubeletconfig.StateFile{{}}}},
		"one that waits for limits":     {event: core.Started{Limits: []core.LimitSeen{{}}}},
		"one of a kubelet that is gone": {event: core.Started{Gone: true}},
		"a pod":                         {event: core.PodsLost{New: map[string]int{"OutOfpods": 1}}, want: []string{`pods_lost_total{reason="OutOfpods"}`}},
		"pods, for reasons":             {event: core.PodsLost{New: map[string]int{"SMTAlignmentError": 1, "Evicted": 1}}, want: []string{`pods_lost_total{reason="SMTAlignmentError"}`, `pods_lost_total{reason="Evicted"}`}},
		"a pod without a reason":        {event: core.PodsLost{New: map[string]int{"": 1}}, want: []string{`pods_lost_total{reason="Other"}`}},
		"a reason that somebody made":   {event: core.PodsLost{New: map[string]int{"Nonsense": 1}}, want: []string{`pods_lost_total{reason="Other"}`}},
		"a promotion":                   {event: core.Ticked{}, reasons: []string{"KubeletConfigPromoted"}, want: []string{"promotions_total"}},
		"a rejection":                   {event: core.Ticked{}, reasons: []string{"KubeletConfigRejected"}, want: []string{"rejections_total"}},
		"a state file":                  {event: core.Ticked{}, reasons: []string{"KubeletStateFileSetAside"}, want: []string{"state_files_set_aside_total"}},
		"a rollback":                    {event: core.Ticked{}, change: suspect(core.LeaseLost), reasons: []string{"KubeletConfigRolledBack"}, want: []string{`rollbacks_total{cause="LeaseLost"}`}},
		"events that count nothing":     {event: core.Ticked{}, reasons: []string{"KubeletConfigChanged", "AssignmentLost", "KubeletConfigHeld"}},
		"nothing":                       {event: core.Ticked{}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(Counts{})
			before := w.hear(core.Ticked{}, nil, func(s *core.State) { s.Child.Alive, s.Child.Healthy = true, true }).series()
			w.hear(row.event, nil, row.change, row.reasons...)
			changed := differ(before, w.series())
			for _, name := range row.want {
				if changed[ours+name] != "1" {
					t.Errorf("%s is %q", name, changed[ours+name])
				}
				delete(changed, ours+name)
			}
			if len(changed) > 0 {
				t.Errorf("counted, too: %v", changed)
			}
		})
	}
}

// A start is blamed on what came before it.
func TestWhyItWasStarted(t *testing.T) {
	w := newWorld(Counts{})
	w.hear(core.Started{}, nil, nil).hear(core.ChildExited{Asked: true}, nil, nil).hear(core.Started{}, nil, nil)
	w.hear(core.ChildExited{Code: 1}, nil, nil).hear(core.Started{}, nil, nil)
	w.hear(core.Ticked{}, nil, func(s *core.State) { s.Child.Hung = "it hangs" }).hear(core.ChildExited{Asked: true}, nil, nil).hear(core.Started{}, nil, nil)
	all := w.series()
	for name, want := range map[string]string{`kubelet_starts_total{why="begin"}`: "1", `kubelet_starts_total{why="change"}`: "1", `kubelet_starts_total{why="exit"}`: "2",
		`kubelet_exits_total{asked="false",cause="hung"}`: "1"} {
		if all[ours+name] != want {
			t.Errorf("%s is %s", name, all[ours+name])
		}
	}
}

// The phases of a change end as they should, and what was given up is none.
func TestPhases(t *testing.T) {
	w := newWorld(Counts{})
	w.hear(core.Ticked{}, core.Prove{}, nil).hear(core.Ticked{}, nil, nil).hear(core.Proved{}, core.Stop{}, nil)
	w.hear(core.ChildExited{Asked: true}, core.Start{}, nil).hear(core.Started{}, nil, nil).hear(core.ChildExited{Code: 1}, core.Start{}, nil)
	w.clock += 20 * time.Second
	w.hear(core.Healthy{}, nil, nil).hear(core.Healthy{}, nil, nil)
	w.Said() // nothing was to be said
	w.Saying()
	w.clock += 300 * time.Millisecond
	w.Saying()
	w.Said()
	all := w.series()
	for name, want := range map[string]string{`sum{phase="preflight"}`: "2", `count{phase="preflight"}`: "1", `sum{phase="stop"}`: "1",
		`sum{phase="start"}`: "21", `count{phase="start"}`: "1", `bucket{phase="start",le="10"}`: "0", `bucket{phase="start",le="30"}`: "1",
		`bucket{phase="start",le="+Inf"}`: "1", `sum{phase="report"}`: "0.3", `count{phase="report"}`: "1"} {
		if got := all[ours+"change_duration_seconds_"+name]; got != want {
			t.Errorf("%s is %q, not %s", name, got, want)
		}
	}
}

func TestDownloads(t *testing.T) {
	w := newWorld(Counts{})
	step := core.Step{Phases: []core.EndedPhase{{Phase: core.PhaseWait, Took: time.Hour}, {Phase: core.PhaseDownload, Took: 40 * time.Millisecond}}}
	w.Decided(&w.state, &w.state, core.Ticked{}, &step)
	all := w.series()
	for name, want := range map[string]string{`sum{phase="download"}`: "0.04", `count{phase="download"}`: "1", `count{phase="preflight"}`: "0"} {
		if got := all[ours+"change_duration_seconds_"+name]; got != want {
			t.Errorf("%s is %q, not %s", name, got, want)
		}
	}
}

// Time without a healthy kubelet counts also while nothing is decided.
func TestUnhealthyTime(t *testing.T) {
	w := newWorld(Counts{})
	w.hear(core.Healthy{}, nil, healthy(true))
	w.clock += time.Hour
	w.hear(core.Unhealthy{}, nil, healthy(false))
	w.clock += 5 * time.Second
	if got := w.series()[ours+"kubelet_unhealthy_seconds_total"]; got != "6" {
		t.Errorf("it is %s s", got)
	}
}

// What was counted goes on in the next program, also in one that counts more than the one before.
func TestCountsGoOn(t *testing.T) {
	w := newWorld(Counts{})
	w.hear(core.Started{}, nil, nil).hear(core.ChildExited{Asked: true}, core.Start{}, nil).hear(core.PodsLost{New: map[string]int{"OutOfcpu": 2, "": 1}}, nil, nil)
	for code := range 100 {
		w.Answered(code, time.Unix(1700000000, 0))
	}
	w.Answered(200, time.Unix(1700000000, 0))
	text, err := json.Marshal(w.Counts())
	if err != nil {
		t.Fatal(err)
	}
	var handed Counts
	if err := json.Unmarshal(text, &handed); err != nil {
		t.Fatal(err)
	}
	next := newWorld(handed).hear(core.Started{}, nil, nil).series()
	for name, want := range map[string]string{`pods_lost_total{reason="OutOfcpu"}`: "2", `pods_lost_total{reason="Other"}`: "1", `kubelet_starts_total{why="change"}`: "1", `kubelet_starts_total{why="exit"}`: "0",
		`api_requests_total{code="200"}`: "1", `api_requests_total{code="none"}`: "1", `api_requests_total{code="1"}`: "1", `api_requests_total{code="other"}`: "81"} {
		if next[ours+name] != want {
			t.Errorf("%s is %s", name, next[ours+name])
		}
	}
	if fresh := newWorld(Counts{Starts: map[string]uint64{"nonsense": 1}, Changes: map[string]*Histogram{phaseStop: {Buckets: []uint64{1}}}}).series(); fresh[ours+`kubelet_starts_total{why="begin"}`] != "0" ||
		fresh[ours+`change_duration_seconds_count{phase="stop"}`] != "0" || fresh[ours+`kubelet_starts_total{why="nonsense"}`] != "" {
		t.Errorf("of another program's counts: %v", fresh)
	}
}

// What earlier programs handed over is read: it says nothing of requests. What a later one hands over is not more than is counted here.
func TestCountsOfOtherPrograms(t *testing.T) {
	many := make([]string, 0, 100)
	for code := range 100 {
		many = append(many, fmt.Sprintf("%q:1", strconv.Itoa(code)))
	}
	for name, row := range map[string]struct {
		handed string
		want   map[string]string
	}{
		"without requests": {`{"Starts":{"begin":1,"exit":2},"Lost":3,"OfOurs":true}`, map[string]string{`kubelet_starts_total{why="exit"}`: "2", `pods_lost_total{reason="OutOfpods"}`: "0", `pods_lost_total{reason="Other"}`: "3",
			`api_requests_total{code="200"}`: "0", `api_requests_total{code="other"}`: "0"}},
		"with reasons for some pods": {`{"Lost":5,"LostFor":{"OutOfpods":2,"Nonsense":1}}`, map[string]string{`pods_lost_total{reason="OutOfpods"}`: "2", `pods_lost_total{reason="Other"}`: "3",
			`pods_lost_total{reason="Nonsense"}`: ""}},
		"with many codes": {`{"Requests":{"none":7,` + strings.Join(many, ",") + `}}`, map[string]string{`api_requests_total{code="none"}`: "7", `api_requests_total{code="0"}`: "1",
			`api_requests_total{code="99"}`: "", `api_requests_total{code="other"}`: "82"}},
	} {
		t.Run(name, func(t *testing.T) {
			var handed Counts
			if err := json.Unmarshal([]byte(row.handed), &handed); err != nil {
				t.Fatal(err)
			}
			all := newWorld(handed).series()
			for name, want := range row.want {
				if all[ours+name] != want {
					t.Errorf("%s is %q, want %q", name, all[ours+name], want)
				}
			}
		})
	}
}

// Each counter that may count is there at 0 from the start, or nobody sees its first 1 as an increase.
func TestWhatIsThereFromTheStart(t *testing.T) {
	want := map[string]string{}
	zero := func(name string, labels ...string) {
		for _, label := range labels {
			want[ours+name+label] = "0"
		}
	}
	labels := func(name string, values ...string) (all []string) {
		for _, value := range values {
			all = append(all, fmt.Sprintf("{%s=%q}", name, value))
		}
		return all
	}
	zero("kubelet_starts_total", labels("why", "begin", "change", "exit")...)
	zero("kubelet_exits_total", `{asked="true",cause="stopped"}`)
	zero(`kubelet_exits_total`, `{asked="false",cause="clean"}`, `{asked="false",cause="error"}`, `{asked="false",cause="hung"}`, `{asked="false",cause="signal"}`)
	zero("preflights_total", labels("outcome", "accepted", "refused", "environment", "unknown")...)
	zero("pods_lost_total", labels("reason", append(rejection.Reasons(), "Preempting", "Evicted", "StaticPod", "Other")...)...)
	zero("rollbacks_total", labels("cause", "Exited", "StartTimeout", "PortHeld", "LeaseLost")...)
	zero("api_requests_total", labels("code", "200", "201", "400", "401", "403", "404", "409", "422", "429", "500", "503", "504", "none", "other")...)
	for _, name := range []string{"kubelet_healthy", "kubelet_unhealthy_seconds_total", "rejections_total", "promotions_total", "state_files_set_aside_total"} {
		zero(name, "")
	}
	for _, phase := range []string{"download", "preflight", "stop", "start", "report"} {
		for _, le := range []string{"0.1", "0.25", "0.5", "1", "2.5", "5", "10", "30", "60", "120", "+Inf"} {
			zero("change_duration_seconds_bucket", fmt.Sprintf("{phase=%q,le=%q}", phase, le))
		}
		zero("change_duration_seconds_sum", fmt.Sprintf("{phase=%q}", phase))
		zero("change_duration_seconds_count", fmt.Sprintf("{phase=%q}", phase))
	}
	want[ours+`build_info{version="v1.2.3"}`] = "1"
	got := newWorld(Counts{}).series()
	if missing := differ(got, want); len(missing) > 0 {
		t.Errorf("missing: %v", missing)
	}
	if more := differ(want, got); len(more) > 0 {
		t.Errorf("too much: %v", more)
	}
}

// Answers of any kind make a bounded number of series.
func TestRequests(t *testing.T) {
	w := newWorld(Counts{})
	if _, is := w.series()[ours+"last_contact_timestamp_seconds"]; is {
		t.Error("there was contact before there was any")
	}
	for code := range 100 {
		w.Answered(code, time.Unix(1700000000, 5e8))
	}
	all := w.series()
	maps.DeleteFunc(all, func(name, _ string) bool { return !strings.HasPrefix(name, ours+"api_requests_total") })
	if len(all) != mostCodes || all[ours+`api_requests_total{code="none"}`] != "1" || all[ours+`api_requests_total{code="other"}`] == "" {
		t.Errorf("%v", all)
	}
	if got := w.series()[ours+"last_contact_timestamp_seconds"]; got != "1.7000000005e+09" {
		t.Errorf("the last contact was at %s", got)
	}
}

// What is so now: upstream's four, with the old labels gone, and ours. Of local its labels are empty, as upstream's.
func TestWhatIsShown(t *testing.T) {
	w := newWorld(Counts{})
	if all := w.series(); all["kubelet_node_config_error"] != "" {
		t.Error("something is said of the configuration before it is known")
	}
	local := `{node_config_source="local",node_config_uid="",node_config_resource_version="",node_config_kubelet_key=""}`
	version := core.Version{Content: "c", Source: corev1.ConfigMapNodeConfigSource{Namespace: "kube-system", Name: "workers", UID: "u", ResourceVersion: "7", KubeletConfigKey: "kubelet"}}
	all := w.hear(core.Ticked{}, nil, func(s *core.State) { s.Booted = true }).series()
	for _, name := range []string{"assigned", "active", "last_known_good"} {
		if all["kubelet_node_config_"+name+local] != "1" {
			t.Errorf("%s is not local: %v", name, all)
		}
	}
	all = w.hear(core.Ticked{}, nil, func(s *core.State) { s.Assigned = &version }).series()
	want := `kubelet_node_config_assigned{node_config_source="/api/v1/namespaces/kube-system/configmaps/workers",node_config_uid="u",node_config_resource_version="7",node_config_kubelet_key="kubelet"}`
	if all[want] != "1" || all["kubelet_node_config_assigned"+local] != "" {
		t.Errorf("assigned is not what is: %v", all)
	}
	if got := fmt.Sprint(len(all)); all[ours+`build_info{version="v1.2.3"}`] != "1" || all[ours+"kubelet_healthy"] != "0" {
		t.Errorf("of %s series: %v", got, all)
	}
}

// The text is as Prometheus' own linter wants it (promtool check metrics is this), whatever is in a label.
func TestTheTextIsWellFormed(t *testing.T) {
	w := newWorld(Counts{})
	w.version = "a\\b\"c\nd\xff"
	w.Answered(200, time.Unix(1700000000, 0))
	w.hear(core.Healthy{}, nil, func(s *core.State) { s.Booted = true })
	problems, err := promlint.New(strings.NewReader(string(w.Text()))).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
	if want := `version="a\\b\"c\nd` + "\uFFFD" + `"`; !strings.Contains(string(w.Text()), want) {
		t.Errorf("the label is not escaped: %.200s", w.Text())
	}
	if n := strings.Count(string(w.Text()), "\n"); n > 200 {
		t.Errorf("%d lines", n)
	}
}

// The page names every metric, with its type, and no others.
func TestThePage(t *testing.T) {
	page, err := os.ReadFile("../../docs/reference/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `(kubelet_[a-z_]+)` \\| ([a-z]+) ").FindAllStringSubmatch(string(page), -1) {
		documented[row[1]] = row[2]
	}
	w := newWorld(Counts{})
	w.Answered(200, time.Unix(1700000000, 0))
	w.hear(core.Healthy{}, nil, func(s *core.State) { s.Booted = true })
	shown := map[string]string{}
	for _, line := range regexp.MustCompile(`(?m)^# TYPE (\S+) (\S+)$`).FindAllStringSubmatch(string(w.Text()), -1) {
		shown[line[1]] = line[2]
	}
	if !maps.Equal(documented, shown) {
		t.Errorf("the page has %v\nthe text has %v", documented, shown)
	}
	for name := range w.series() {
		for _, pair := range regexp.MustCompile(`(why|cause|outcome|phase|code)="([^"]+)"|pods_lost_total\{(reason)="([^"]+)"`).FindAllStringSubmatch(name, -1) {
			if value := pair[2] + pair[4]; !strings.Contains(string(page), "`"+value+"`") {
				t.Errorf("the page does not know %s", pair[0])
			}
		}
	}
}
