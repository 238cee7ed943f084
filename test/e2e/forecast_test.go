//go:build e2e

package e2e

import (
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/kubelet-supervisor/kubelet-supervisor/forecast"
)

// A forecastRow is a change of a configuration on a node with pods. What the kubelet does to them is not written down here: it is asked.
type forecastRow struct {
	name      string
	now, then func(object)                   // of the KubeletConfiguration
	pods      func(*testing.T, *bareKubelet) // made one after the other
	count     int                            // of them
	meanwhile func(*testing.T, *bareKubelet) // when they run, before the forecast
	freshCPUs bool                           // the CPU manager's file is set aside, as a supervisor does
	least     int                            // how many have to be lost, so that a row shows something
	unknown   string                         // what the forecast may leave open
	slow      bool                           // of TestSlowForecast, for a row takes twenty seconds
}

// The forecast says beforehand what the real kubelet then does to running pods: which are lost, and in which words.
func TestForecast(t *testing.T) { runForecastRows(t, sharedNode(t), false) }

func runForecastRows(t *testing.T, n *node, slow bool) {
	for _, row := range forecastRows(n) {
		if row.slow == slow {
			t.Run(row.name, func(t *testing.T) { row.run(t, n) })
		}
	}
}

func (row forecastRow) run(t *testing.T, n *node) {
	n.reset(t)
	n.cleanState(t)
	k := n.bareKubelet(t)
	if err := os.MkdirAll(k.staticPods(), 0o700); err != nil {
		t.Fatal(err)
	}
	base := changes(with("staticPodPath", k.staticPods()), row.now)
	from, to := n.kubeletConfig(base), n.kubeletConfig(base, row.then)
	k.start(t, from)
	defer func() {
		k.removePods(t)
		k.stop(t)
	}()
	row.pods(t, k)
	k.allRun(t, row.count)
	if row.meanwhile != nil {
		row.meanwhile(t, k)
	}
	effective := k.effective(t)
	now, then := decoded(t, effective), decoded(t, changed(t, effective, from, to))
	f, took := k.forecast(t, now, then)
	before := k.seen(t)
	t.Logf("in %s: %s; anyway: %s; static: %s; not known: %v", took, f.Sentence(9), forecast.Names(f.Anyway, 9), forecast.Names(f.Static, 9), f.Doubts)

	k.stop(t)
	if row.freshCPUs {
		if err := os.Remove(n.stateFile("cpu_manager_state")); err != nil {
			t.Fatal(err)
		}
	}
	k.start(t, to)
	lost := k.verdicts(t, before)
	for range 3 {
		missing := notYet(f, lost)
		if missing == "" {
			break
		}
		// It admits by the Node that it has heard of, which a slow API server gives it as it was; and what comes before its first look at
		// disks and memory, it admits without. Then it refuses at a next start.
		t.Logf("%s stays at first, beside %v", missing, lost)
		k.stop(t)
		k.start(t, to)
		for name, word := range k.verdicts(t, before) {
			if lost[name] == "" {
				lost[name] = word
			}
		}
	}
	t.Logf("the kubelet: %v", lost)
	if after := decoded(t, k.effective(t)); now.ReservedSystemCPUs == then.ReservedSystemCPUs && !reflect.DeepEqual(after, then) {
		t.Errorf("the kubelet runs with\n%+v, and the forecast was for\n%+v", after, then)
	}
	row.compare(t, f, lost)
}

// notYet is a pod for which the Node has no room by the forecast, or is under pressure, and which stays; "" for none.
func notYet(f forecast.Forecast, lost map[string]string) string {
	for _, loss := range f.Losses {
		_, is := lost[loss.Name]
		if !is && loss.Certain && (strings.HasPrefix(loss.Reason, "OutOf") || loss.Reason == "Evicted") {
			return loss.Name
		}
	}
	return ""
}

// compare holds the forecast against what happened.
func (row forecastRow) compare(t *testing.T, f forecast.Forecast, lost map[string]string) {
	t.Helper()
	said, among := map[string]bool{}, 0
	for _, loss := range slices.Concat(f.Losses, f.Anyway, f.Static) {
		said[loss.Name] = true
		word, is := lost[loss.Name]
		if is && slices.ContainsFunc(f.Losses, func(l forecast.Loss) bool { return l.Name == loss.Name }) {
			among++
		}
		ours := loss.Restarted || slices.Contains([]string{forecast.CgroupRoot, forecast.CgroupsPerQOS, forecast.StaticPodPath}, loss.Reason)
		switch {
		case loss.Certain && !is:
			t.Errorf("%s was to be lost (%s: %s), and was not", loss.Name, loss.Reason, loss.Why)
		case is && !ours && word != loss.Reason:
			t.Errorf("%s was lost for %q, and was to be lost for %q", loss.Name, word, loss.Reason)
		}
	}
	for name, word := range lost {
		if !said[name] {
			t.Errorf("%s was lost (%s), and nobody said so", name, word)
		}
	}
	if among < f.Least || f.Least < row.least {
		t.Errorf("%d pods were lost of those named, at least %d were to be; the row wants %d", among, f.Least, row.least)
	}
	var open []string
	for _, u := range slices.Concat(f.Missing, f.Doubts) {
		open = append(open, u.What)
	}
	if got := strings.Join(open, ", "); got != row.unknown {
		t.Errorf("not known: %q, want %q", got, row.unknown)
	}
}
