//go:build e2e && long

package fleet

import (
	"net/http"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/api/v1alpha1"
)

// Nothing is written on the strength of absence: while a list is refused, or comes back empty, or a cache cannot be filled, no Node is patched
// and no pool reset; afterwards the rollout goes on where it was. A watch that is too old costs nothing. The API server is the real one, but for
// what a proxy says in its place.
func TestLongAbsence(t *testing.T) {
	for name, row := range map[string]struct {
		lie  lie
		cold bool // the controller starts only then
		goes bool // it may go on
	}{
		"expired": {lie: once(func(a ask) (int, any) {
			if a.verb == "watch" {
				return expired()
			}
			return 0, nil
		}), goes: true},
		"nodeforbidden": {lie: of("nodes", forbidden)},
		"mapforbidden":  {lie: of("configmaps", forbidden)},
		"nonodes":       {lie: empty("nodes", "v1", "NodeList")},
		"nopools":       {lie: empty("kubeletpools", "kubelet-supervisor.io/v1alpha1", "KubeletPoolList")},
		"coldnodes":     {lie: of("nodes", unavailable), cold: true},
		"coldmaps":      {lie: of("configmaps", forbidden), cold: true},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCrew(t, "absence-"+name, 30, nil)
			p, _ := c.f.startBehind(t, "absence-"+name)
			c.roll(canaryAndAll(2, time.Second))
			if row.cold {
				p.tell(row.lie)
				wait(t.Context(), 2*time.Second)
			}
			c.awaitPatches(5, time.Minute)
			p.tell(row.lie)
			before := c.now()
			if !row.goes {
				c.staysAsItIs(p)
			}
			p.tell(nil)
			after := c.awaitReason(v1alpha1.ConditionReady, "Completed", 2*time.Minute)
			if after.Status.Target.Hash != before.Status.Target.Hash || len(after.Status.Stops) > 0 {
				t.Errorf("it was %+v, and is %+v", before.Status, after.Status)
			}
			c.checkWaves(c.source(), time.Second, 2, 1, 30)
			c.remove(c.f.admin, after)
		})
	}
}

// staysAsItIs: what was decided before arrives yet, and nothing after that.
func (c *crew) staysAsItIs(p *proxy) {
	c.t.Helper()
	wait(c.t.Context(), 2*time.Second)
	sent, version := len(c.patches()), c.now().ResourceVersion
	if sent == 30 {
		c.t.Fatal("all had been sent before")
	}
	wait(c.t.Context(), 8*time.Second)
	if more := c.patches()[sent:]; len(more) > 0 {
		c.t.Errorf("it sent %v", more)
	}
	if now := c.now(); now.ResourceVersion != version {
		c.t.Errorf("it wrote the status %+v", now.Status)
	}
	if p.lies() == 0 {
		c.t.Error("nobody asked")
	}
}

// once answers so to the first question of each kind.
func once(l lie) lie {
	said := map[string]bool{}
	return func(a ask) (int, any) {
		if said[a.kind] {
			return 0, nil
		}
		code, body := l(a)
		said[a.kind] = code != 0
		return code, body
	}
}

// of answers so to all lists and watches of a kind.
func of(kind string, answer func(ask) (int, any)) lie {
	return func(a ask) (int, any) {
		if a.kind == kind && a.verb != "" {
			return answer(a)
		}
		return 0, nil
	}
}

func unavailable(ask) (int, any) {
	return failure(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, "the server is currently unable to handle the request")
}

// empty says that there is none of a kind: first that the watch is too old, then that streams of what there is are not known here.
func empty(kind, version, list string) lie {
	return func(a ask) (int, any) {
		switch {
		case a.kind != kind || a.bare || a.verb == "":
			return 0, nil
		case a.verb == "watch":
			return expired()
		}
		return http.StatusOK, map[string]any{"apiVersion": version, "kind": list, "metadata": map[string]any{"resourceVersion": "1"}, "items": []any{}}
	}
}
