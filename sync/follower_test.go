package sync

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	stdsync "sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// following is a follower at work and what it told, one line per update.
type following struct {
	*Follower
	mutex stdsync.Mutex
	told  []string
}

// follow starts a follower in the bubble of the test; synctest.Wait makes what it told readable.
func follow(t *testing.T, api *fakeAPI, change func(*Options)) *following {
	t.Helper()
	options := Options{Client: api.client(t), NodeName: "n1", Namespaces: []string{"kube-system"}}
	if change != nil {
		change(&options)
	}
	f := &following{Follower: NewFollower(options)}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- f.Run(ctx, f.tell) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	return f
}

func (f *following) tell(u Update) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.told = append(f.told, line(u))
}

func line(u Update) string {
	var b strings.Builder
	switch {
	case u.NodeGone:
		return "gone"
	case u.Local:
		fmt.Fprintf(&b, "local %q", u.Text)
	case u.Source != nil:
		fmt.Fprintf(&b, "source %s %s@%s = %s", u.Text, u.Source.UID, u.Source.ResourceVersion, u.Payload[u.Source.KubeletConfigKey])
	case u.Problem != nil && u.Problem.Malformed:
		fmt.Fprintf(&b, "malformed %q: %s", u.Text, u.Problem.Error)
	default:
		fmt.Fprintf(&b, "problem %s: %s", u.Text, u.Problem.Words)
	}
	if u.Shadowed {
		b.WriteString(" shadowed")
	}
	if u.Consent != "" {
		b.WriteString(" consent " + u.Consent)
	}
	if u.Retry != "" {
		b.WriteString(" retry " + u.Retry)
	}
	if u.NodeUID != "node-uid" && u.NodeUID != "" {
		b.WriteString(" node " + u.NodeUID)
	}
	return b.String()
}

// expect compares what was told since the last call.
func (f *following) expect(t *testing.T, lines ...string) {
	t.Helper()
	synctest.Wait()
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if !slices.Equal(f.told, lines) {
		t.Errorf("told\n\t%s\nexpected\n\t%s", strings.Join(f.told, "\n\t"), strings.Join(lines, "\n\t"))
	}
	f.told = nil
}

// elapse lets time pass on the clock of the bubble.
func elapse(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func expectAsked(t *testing.T, api *fakeAPI, requests ...string) {
	t.Helper()
	synctest.Wait()
	asked := api.asked()
	slices.Sort(asked)
	slices.Sort(requests)
	if !slices.Equal(asked, requests) {
		t.Errorf("asked for %q, expected %q", asked, requests)
	}
}

func TestFollowerTells(t *testing.T) {
	endless, unprintable := strings.Repeat("x", 200<<10), strings.Repeat("\x01", 200)
	a, b := "kube-system/a/kubelet", "kube-system/b/kubelet"
	download := func(words string) string { return "problem " + a + ": " + words }
	missing := download("ConfigMap kube-system/a does not exist; create it, or assign another")
	type step struct {
		do     func(*fakeAPI)
		expect []string
	}
	set := func(objects ...any) func(*fakeAPI) {
		return func(api *fakeAPI) {
			for _, object := range objects {
				switch object := object.(type) {
				case *corev1.Node:
					api.set(object)
				case *corev1.ConfigMap:
					api.set(object)
				}
			}
		}
	}
	for name, steps := range map[string][]step{
		"nothing assigned, then a label edit": {
			{set(node(nil)), []string{`local ""`}},
			{set(node(map[string]string{"other": "x"})), nil},
		},
		"assigned, edited, removed": {
			{set(configMap("a", "ua", "one"), assigned(a)), []string{"source " + a + " ua@101 = one"}},
			{set(configMap("a", "ua", "two")), []string{"source " + a + " ua@103 = two"}},
			{set(node(nil)), []string{`local ""`}},
			{set(configMap("a", "ua", "three")), nil},
		},
		"another assignment follows the other ConfigMap only": {
			{set(configMap("a", "ua", "one"), configMap("b", "ub", "two"), assigned(a)), []string{"source " + a + " ua@101 = one"}},
			{set(assigned(b)), []string{"source " + b + " ub@102 = two"}},
			{set(configMap("a", "ua", "three")), nil},
			{set(configMap("b", "ub", "four")), []string{"source " + b + " ub@106 = four"}},
		},
		"missing, then created, deleted, created anew": {
			{set(assigned(a)), []string{missing}},
			{set(configMap("a", "u1", "one")), []string{"source " + a + " u1@102 = one"}},
			{func(api *fakeAPI) { api.remove(configMap("a", "u1", "one")) }, []string{missing}},
			{set(configMap("a", "u2", "two")), []string{"source " + a + " u2@104 = two"}},
		},
		"pinned": {
			{set(configMap("a", "u2", "two"), assigned(a+"@u1")), []string{
				"problem " + a + "@u1: " + `ConfigMap kube-system/a was re-created: its uid is "u2", the assignment asks for "u1"; assign kube-system/a/kubelet@u2, or leave the uid out`}},
			{set(assigned(a + "@u2")), []string{"source " + a + "@u2 u2@101 = two"}},
		},
		"malformed, then corrected": {
			{set(configMap("a", "ua", "one"), assigned("kube-system/a")), []string{
				`malformed "kube-system/a": failed to sync: spec.configSource.configMap.kubeletConfigKey: Required value: kubeletConfigKey must be set`}},
			{set(assigned(a)), []string{"source " + a + " ua@101 = one"}},
		},
		"a malformed annotation does not fall through to the field": {
			{set(func() *corev1.Node {
				n := assigned("")
				n.Spec.ConfigSource = &corev1.NodeConfigSource{ConfigMap: &corev1.ConfigMapNodeConfigSource{Namespace: "kube-system", Name: "a", KubeletConfigKey: "kubelet"}}
				return n
			}()), []string{`malformed "": failed to sync: [spec.configSource.configMap.namespace: Required value: namespace must be set, ` +
				`spec.configSource.configMap.name: Required value: name must be set, spec.configSource.configMap.kubeletConfigKey: Required value: kubeletConfigKey must be set]`}},
		},
		"explicitly local": {
			{set(assigned("local")), []string{`local "local"`}},
		},
		"too large": {
			{set(configMap("a", "ua", strings.Repeat("x", DefaultMaxPayload+1)), assigned(a)), []string{
				download("ConfigMap kube-system/a holds 1048577 bytes, at most 1048576 are allowed; make it smaller")}},
			{set(configMap("a", "ua", "one")), []string{"source " + a + " ua@103 = one"}},
		},
		"a retry is news": {
			{set(configMap("a", "ua", "one"), assigned(a)), []string{"source " + a + " ua@101 = one"}},
			{set(node(map[string]string{nodev1.ConfigSourceAnnotation: a, nodev1.RetryAnnotation: "1"})), []string{"source " + a + " ua@101 = one retry 1"}},
		},
		"an endless retry is kept short, and another one is news": {
			{set(node(map[string]string{nodev1.RetryAnnotation: endless})), []string{fmt.Sprintf(`local "" retry sha256:%x`, sha256.Sum256([]byte(endless)))}},
			{set(node(map[string]string{nodev1.RetryAnnotation: endless + "y"})), []string{fmt.Sprintf(`local "" retry sha256:%x`, sha256.Sum256([]byte(endless+"y")))}},
		},
		"so is one that takes long to write": {
			{set(node(map[string]string{nodev1.RetryAnnotation: unprintable})), []string{fmt.Sprintf(`local "" retry sha256:%x`, sha256.Sum256([]byte(unprintable)))}},
		},
		"a consent is news, and so is its end": {
			{set(configMap("a", "ua", "one"), assigned(a)), []string{"source " + a + " ua@101 = one"}},
			{set(node(map[string]string{nodev1.ConfigSourceAnnotation: a, nodev1.AllowDisruptionAnnotation: "0123456789ab"})), []string{"source " + a + " ua@101 = one consent 0123456789ab"}},
			{set(assigned(a)), []string{"source " + a + " ua@101 = one"}},
		},
		"Node deleted and created anew": {
			{set(configMap("a", "ua", "one"), assigned(a)), []string{"source " + a + " ua@101 = one"}},
			{func(api *fakeAPI) { api.remove(assigned(a)) }, []string{"gone"}},
			{func(api *fakeAPI) {
				n := node(nil)
				n.UID = "second"
				api.set(n)
			}, []string{`local "" node second`}},
		},
		"only the shadowing of the field changes": {
			{set(func() *corev1.Node {
				n := assigned("local")
				n.Spec.ConfigSource = &corev1.NodeConfigSource{ConfigMap: &corev1.ConfigMapNodeConfigSource{Namespace: "kube-system", Name: "a", KubeletConfigKey: "kubelet"}}
				return n
			}()), []string{`local "local" shadowed`}},
			{set(assigned("local")), []string{`local "local"`}},
		},
		"Node not registered yet": {
			{func(*fakeAPI) {}, []string{"gone"}},
			{set(node(nil)), []string{`local ""`}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api := newFakeAPI()
				steps[0].do(api)
				f := follow(t, api, nil)
				f.expect(t, steps[0].expect...)
				for _, step := range steps[1:] {
					step.do(api)
					f.expect(t, step.expect...)
				}
			})
		})
	}
}

func TestFollowerFields(t *testing.T) {
	a := "kube-system/a/kubelet"
	field := &corev1.NodeConfigSource{ConfigMap: &corev1.ConfigMapNodeConfigSource{Namespace: "kube-system", Name: "a", KubeletConfigKey: "kubelet"}}

	t.Run("a Node with the field is watched whole", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			api := newFakeAPI()
			api.set(configMap("a", "ua", "one"))
			api.set(assignedByField(field))
			f := follow(t, api, nil)
			f.expect(t, "source "+a+" ua@101 = one")
			expectAsked(t, api, "list nodes", "watch nodes", "list configmaps", "watch configmaps")
			api.set(assignedByField(&corev1.NodeConfigSource{}))
			f.expect(t, `malformed "": failed to sync: invalid NodeConfigSource, exactly one subfield must be non-nil, but all were nil`)
			api.set(node(nil))
			f.expect(t, `local ""`)
		})
	})
	t.Run("a Node with the status field is watched whole", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			api := newFakeAPI()
			n := node(nil)
			n.Status.Config = &corev1.NodeConfigStatus{}
			api.set(n)
			f := follow(t, api, nil)
			f.expect(t, `local ""`)
			expectAsked(t, api, "list nodes", "watch nodes")
		})
	})
	t.Run("once the API server turns out to keep fields, the whole Node is watched", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			api := newFakeAPI()
			api.set(node(nil))
			var keeps atomic.Bool
			f := follow(t, api, func(o *Options) { o.KeepsFields = keeps.Load })
			f.expect(t, `local ""`)
			expectAsked(t, api, "list nodes", "watch nodes metadata")
			keeps.Store(true)
			f.Refresh()
			f.expect(t)
			expectAsked(t, api, "list nodes", "watch nodes")
			api.set(configMap("a", "ua", "one"))
			api.set(assignedByField(field))
			f.expect(t, "source "+a+" ua@102 = one")
		})
	})
}

func TestFollowerWithoutPermissions(t *testing.T) {
	a := "kube-system/a/kubelet"
	forbidden := apiFailure{code: 403, message: `configmaps "a" is forbidden`}
	t.Run("get alone is polled", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			api := newFakeAPI()
			api.failWith(forbidden, "list configmaps", "watch configmaps")
			api.set(configMap("a", "ua", "one"))
			api.set(assigned(a))
			f := follow(t, api, nil)
			f.expect(t, "source "+a+" ua@101 = one")
			expectAsked(t, api, "list nodes", "watch nodes metadata", "list configmaps", "get configmaps")
			api.set(configMap("a", "ua", "two"))
			elapse(pollPeriod - time.Second)
			f.expect(t)
			elapse(time.Second)
			f.expect(t, "source "+a+" ua@103 = two")
			expectAsked(t, api, "list configmaps", "get configmaps") // once, in case that more is granted a moment later
			api.set(configMap("a", "ua", "three"))
			elapse(pollPeriod)
			f.expect(t, "source "+a+" ua@104 = three")
			expectAsked(t, api, "get configmaps")
		})
	})
	t.Run("list without watch is polled", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			api := newFakeAPI()
			api.failWith(forbidden, "get configmaps", "watch configmaps")
			api.set(configMap("a", "ua", "one"))
			api.set(assigned(a))
			f := follow(t, api, nil)
			f.expect(t, "source "+a+" ua@101 = one")
			api.set(configMap("a", "ua", "two"))
			elapse(pollPeriod)
			f.expect(t, "source "+a+" ua@103 = two")
		})
	})
	t.Run("a watch that is granted later is used", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			api := newFakeAPI()
			api.failWith(forbidden, "list configmaps", "watch configmaps")
			api.set(configMap("a", "ua", "one"))
			api.set(assigned(a))
			f := follow(t, api, nil)
			f.expect(t, "source "+a+" ua@101 = one")
			api.failWith(nil, "list configmaps", "watch configmaps")
			f.Reconsider()
			f.expect(t)
			api.set(configMap("a", "ua", "two"))
			f.expect(t, "source "+a+" ua@103 = two")
		})
	})
	t.Run("nothing is allowed, then it is", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			api := newFakeAPI()
			api.failWith(forbidden, "list configmaps", "watch configmaps", "get configmaps")
			api.set(configMap("a", "ua", "one"))
			api.set(assigned(a))
			f := follow(t, api, nil)
			f.expect(t, "problem "+a+`: ConfigMap kube-system/a cannot be read: configmaps "a" is forbidden; let group system:nodes get, list and watch it`)
			elapse(time.Hour)
			f.expect(t)
			api.failWith(nil, "list configmaps", "watch configmaps", "get configmaps")
			elapse(150 * time.Second)
			f.expect(t, "source "+a+" ua@101 = one")
		})
	})
	t.Run("a permission taken away is told", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			api := newFakeAPI()
			api.set(configMap("a", "ua", "one"))
			api.set(assigned(a))
			f := follow(t, api, nil)
			f.expect(t, "source "+a+" ua@101 = one")
			api.failWith(forbidden, "list configmaps", "watch configmaps", "get configmaps")
			f.Reconsider()
			f.expect(t)
			elapse(doubtFor + time.Minute) // the next try after that
			f.expect(t, "problem "+a+`: ConfigMap kube-system/a cannot be read: configmaps "a" is forbidden; let group system:nodes get, list and watch it`)
		})
	})
	t.Run("an API server that has just started, and does not know the roles yet, is not believed", func(t *testing.T) {
		all := []string{"list nodes", "watch nodes", "get nodes", "list configmaps", "watch configmaps", "get configmaps"}
		for name, what := range map[string][]string{"everything": all, "watches": {"watch nodes", "watch configmaps"}, "lists": {"list nodes", "list configmaps"}} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					api := newFakeAPI()
					api.set(configMap("a", "ua", "one"))
					api.set(assigned(a))
					f := follow(t, api, nil)
					f.expect(t, "source "+a+" ua@101 = one")
					elapse(time.Minute)
					api.endWatches()
					f.expect(t)
					api.failWith(forbidden, what...)
					api.endWatches()
					elapse(6 * time.Second)
					f.expect(t)
					api.failWith(nil, what...)
					elapse(10 * time.Second)
					api.set(configMap("a", "ua", "two"))
					f.expect(t, "source "+a+" ua@103 = two") // by a watch, not by the next poll
				})
			})
		}
	})
	t.Run("the Node itself may not be read", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			api := newFakeAPI()
			api.failWith(apiFailure{code: 403, message: "no"}, "list nodes", "get nodes")
			f := follow(t, api, nil)
			f.expect(t, "problem : Node n1 cannot be read: no")
			api.set(node(nil))
			api.failWith(nil, "list nodes", "get nodes")
			f.Reconsider()
			f.expect(t, `local ""`)
		})
	})
}
