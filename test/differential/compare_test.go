package differential

import (
	"encoding/json"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubelet-supervisor/kubelet-supervisor/forecast"
)

// The judge finds what is wrong with a forecast, and nothing in one that is right.
func TestFaults(t *testing.T) {
	loss := func(name string, certain bool) forecast.Loss {
		return forecast.Loss{Name: name, Reason: "OutOfpods", Certain: certain}
	}
	losses := func(certain bool, names ...string) (list []forecast.Loss) {
		for _, name := range names {
			list = append(list, loss(name, certain))
		}
		return list
	}
	restart := func(names ...string) Restart {
		r := Restart{Then: true, Lost: map[string]string{}}
		for _, name := range names {
			r.Lost[name] = "OutOfpods"
		}
		return r
	}
	const full = `{"evictionHard":{"memory.available":"99%"}}`
	for name, row := range map[string]struct {
		then     string
		forecast forecast.Forecast
		restarts []Restart
		want     string // of the first fault; "" for none
	}{
		"right":                       {"{}", forecast.Forecast{Losses: losses(true, "b"), Least: 1, LeastOfAll: 1}, []Restart{restart("b"), restart("b")}, ""},
		"missed":                      {"{}", forecast.Forecast{}, []Restart{restart("b")}, "MISSED: b"},
		"certain, and it stays":       {"{}", forecast.Forecast{Losses: losses(true, "b"), Least: 1, LeastOfAll: 1}, []Restart{restart("b"), restart()}, "FALSE: b is certainly lost"},
		"which is not certain":        {"{}", forecast.Forecast{Losses: losses(false, "a", "b"), Least: 1, LeastOfAll: 1}, []Restart{restart("a"), restart("b")}, ""},
		"evicted after the admission": {full, forecast.Forecast{Losses: losses(false, "a", "b"), Least: 1, LeastOfAll: 1}, []Restart{restart()}, ""},
		"more than one are evicted":   {full, forecast.Forecast{Losses: losses(false, "a", "b"), Least: 1, LeastOfAll: 2}, []Restart{restart()}, "FALSE: at least 2 pods are lost"},
		"a pod that counts twice":     {"{}", forecast.Forecast{Static: []forecast.Loss{{Name: "b", Static: true, Certain: true}}, LeastOfAll: 1}, []Restart{restart("b")}, "FALSE: 2 pods certainly hold the change, and 1 of"},
		"a pod that does not run": {"{}", forecast.Forecast{Static: []forecast.Loss{{Name: "b", Static: true, Certain: true}}, Losses: losses(false, "c"), LeastOfAll: 1}, []Restart{restart("b")},
			"FALSE: c holds the change, and it does not run"},
		"evicted by no such threshold": {"{}", forecast.Forecast{Losses: losses(false, "a", "b"), Least: 1, LeastOfAll: 1}, []Restart{restart()}, "FALSE: at least 1 pods are lost by the change"},
	} {
		c := Case{Later: Machine{Free: Free{Memory: 4 * gi}, Capacity: Free{Memory: 8 * gi}}}
		for _, name := range []string{"a", "b"} {
			c.Pods = append(c.Pods, corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.PodStatus{Phase: corev1.PodRunning}})
		}
		faults := c.Faults(row.forecast, Result{Then: json.RawMessage(row.then), Running: []string{"a", "b"}, Restarts: row.restarts})
		if row.want == "" && len(faults) > 0 || row.want != "" && (len(faults) == 0 || !strings.HasPrefix(faults[0], row.want)) {
			t.Errorf("%s: %q, want %q", name, faults, row.want)
		}
	}
}
