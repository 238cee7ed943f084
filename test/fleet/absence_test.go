//go:build e2e && long

package fleet

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
)

// absent is how many nodes these tests have, each.
const absent = 18

// Nothing is written on the strength of absence: while a list is refused, or comes back empty, or a cache cannot be filled, no Node is patched
// and no pool reset; afterwards the rollout goes on where it was. A watch that is too old costs nothing. The API server is the real one, but for
// what a proxy says in its place.
func TestLongAbsence(t *testing.T) {
	for name, row := range map[string]struct {
		lie lie
		// cold: the controller begins with it. goes: it may go on.
		cold, goes bool
	}{
		"expired": {lie: once(func(a ask) (int, any) {
			if a.verb == "watch" || a.verb == "initial" {
				return expired()
			}
			return 0, nil
		}), goes: true},
		"node-list-forbidden":     {lie: of("nodes", forbidden)},
		"map-list-forbidden":      {lie: of("configmaps", forbidden)},
		"node-list-empty":         {lie: empty("nodes", "v1", "NodeList")},
		"pool-list-empty":         {lie: empty("kubeletpools", "kubelet-supervisor.io/v1alpha1", "KubeletPoolList")},
		"revision-list-forbidden": {lie: of("controllerrevisions", forbidden)},
		"nodes-never-come":        {lie: of("nodes", unavailable), cold: true},
		"maps-never-come":         {lie: of("configmaps", forbidden), cold: true},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCrew(t, name, absent, nil)
			p, address := c.f.newProxy(t)
			if row.cold {
				p.tell(row.lie)
			}
			c.f.startBehind(t, name, address)
			c.roll(canaryAndAll(2, time.Second))
			if !row.cold {
				c.awaitPatches(5, time.Minute)
				p.tell(row.lie)
			}
			if row.goes {
				for deadline := time.Now().Add(20 * time.Second); p.lies() < 5 && time.Now().Before(deadline); {
					wait(t.Context(), 100*time.Millisecond)
				}
			} else {
				c.staysAsItIs(5 * time.Second)
			}
			if p.lies() == 0 {
				t.Error("nobody has heard the lie")
			}
			p.tell(nil)
			c.endsWell()
		})
	}
}

// The controller's rights are lost for a minute, and all its watches with them: nothing is written meanwhile, and it goes on afterwards.
func TestLongRightsAreLost(t *testing.T) {
	c := newCrew(t, "rights-lost", absent, nil)
	p, address := c.f.newProxy(t)
	c.f.startBehind(t, "rights-lost", address)
	c.roll(canaryAndAll(2, time.Second))
	c.awaitPatches(5, time.Minute)
	var binding rbacv1.ClusterRoleBinding
	if err := c.f.admin.Get(t.Context(), types.NamespacedName{Name: "kubelet-supervisor-controller"}, &binding); err != nil {
		t.Fatal(err)
	}
	c.remove(c.f.admin, &binding)
	binding.ResourceVersion, binding.UID = "", ""
	given := sync.OnceFunc(func() {
		if err := c.f.admin.Create(context.Background(), &binding); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(given)
	p.tell(nil)
	c.staysAsItIs(time.Minute)
	given()
	c.endsWell()
}

// staysAsItIs: what was decided before arrives yet, and nothing after that.
func (c *crew) staysAsItIs(long time.Duration) {
	c.t.Helper()
	wait(c.t.Context(), 2*time.Second)
	sent, pool := len(c.attempts()), c.now()
	if sent == absent {
		c.t.Fatal("all had been sent before")
	}
	wait(c.t.Context(), long)
	if more := c.attempts()[sent:]; len(more) > 0 {
		c.t.Errorf("it sent %v", more)
	}
	if now := c.now(); now.ResourceVersion != pool.ResourceVersion {
		c.t.Errorf("it wrote the status %+v", now.Status)
	}
}

// endsWell: the rollout goes on, and nobody is assigned twice. The pool goes.
func (c *crew) endsWell() {
	c.t.Helper()
	p := c.awaitReason(v1alpha1.ConditionReady, "Completed", 2*time.Minute)
	if p.Status.Target.Revision != 1 || len(p.Status.Stops) > 0 {
		c.t.Errorf("its status is %+v", p.Status)
	}
	c.checkWaves(c.source(), time.Second, 2, 1, absent)
	c.remove(c.f.admin, p)
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

// empty says that there is none of a kind.
func empty(kind, version, list string) lie {
	return func(a ask) (int, any) {
		switch {
		case a.kind != kind || a.bare || a.verb == "":
			return 0, nil
		case a.verb == "initial":
			return failure(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, "sendInitialEvents is not known here")
		case a.verb == "watch":
			return expired()
		}
		return http.StatusOK, map[string]any{"apiVersion": version, "kind": list, "metadata": map[string]any{"resourceVersion": "1"}, "items": []any{}}
	}
}
