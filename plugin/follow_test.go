package plugin

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/cmdutil"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/document"
)

// later changes the Node after a while, as its supervisor would.
func (b *bench) later(t *testing.T, after time.Duration, name string, change func(*corev1.Node)) {
	t.Helper()
	nodes := corev1.SchemeGroupVersion.WithResource("nodes")
	go func() {
		time.Sleep(after) // the bubble's clock
		object, err := b.Tracker().Get(nodes, "", name)
		if err == nil {
			node := object.(*corev1.Node).DeepCopy()
			change(node)
			err = b.Tracker().Update(nodes, node, "")
		}
		if err != nil {
			t.Error(err)
		}
	}()
}

func versioned(node *corev1.Node) *corev1.Node {
	node.ResourceVersion = "5"
	return node
}

func (b *bench) count(verb, resource string) int {
	found := 0
	for _, action := range b.Actions() {
		if action.Matches(verb, resource) {
			found++
		}
	}
	return found
}

// However long a trial takes, a node costs one reading and one watch.
func TestAwaitByOneWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config := configMapOf("workers", someConfig)
		b := newBench(t, versioned(localNode("n1")), config)
		b.answers(t, runsIt(config))
		b.later(t, 10*time.Minute, "n1", func(node *corev1.Node) {
			saying(node, workersText, "Active", corev1.ConditionTrue, "", config, config)
		})
		_, stderr := b.do(t, "assign", "n1", "--config=workers", "--yes", "--until=good")
		contains(t, stderr, "n1: runs it on trial", "n1: passed its trial")
		// One reading is of assign itself, one to begin the watch with.
		if gets, watches := b.count("get", "nodes"), b.count("watch", "nodes"); gets != 2 || watches != 1 {
			t.Errorf("%d GETs and %d watches of the Node, want 2 and 1", gets, watches)
		}
	})
}

// A watch that ends is resumed; where watching is not allowed, the Node is read now and then.
func TestAwaitWithoutAWatch(t *testing.T) {
	for _, test := range []struct {
		name      string
		answer    func() (watch.Interface, error)
		gets      int // at most
		watches   int // at least
		patiently bool
	}{
		{"ends", func() (watch.Interface, error) {
			ended := watch.NewFake()
			ended.Stop()
			return ended, nil
		}, 3, 5, false},
		{"forbidden", func() (watch.Interface, error) {
			return nil, apierrors.NewForbidden(schema.GroupResource{Resource: "nodes"}, "", nil)
		}, 20, 1, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				config := configMapOf("workers", someConfig)
				b := newBench(t, versioned(localNode("n1")), config)
				b.answers(t, runsIt(config))
				asked := 0
				b.PrependWatchReactor("nodes", func(clienttesting.Action) (bool, watch.Interface, error) {
					if asked++; asked > 5 && !test.patiently {
						return false, nil, nil
					}
					answer, err := test.answer()
					return true, answer, err
				})
				b.later(t, 30*time.Second, "n1", func(node *corev1.Node) {
					saying(node, workersText, "Active", corev1.ConditionTrue, "", config, config)
				})
				b.do(t, "assign", "n1", "--config=workers", "--yes", "--until=good")
				if gets := b.count("get", "nodes"); gets > test.gets || asked < test.watches {
					t.Errorf("%d GETs and %d watches, want at most %d and at least %d", gets, asked, test.gets, test.watches)
				}
			})
		})
	}
}

func TestAwaitANodeThatIsDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, versioned(localNode("n1")), configMapOf("workers", someConfig))
		b.answers(t, nil)
		go func() {
			time.Sleep(3 * time.Second)
			if err := b.Tracker().Delete(corev1.SchemeGroupVersion.WithResource("nodes"), "", "n1"); err != nil {
				t.Error(err)
			}
		}()
		begin := time.Now()
		code, _, stderr := b.run(t, "assign", "n1", "--config=workers", "--yes")
		if code != 1 || !strings.Contains(stderr, `there is no node "n1"`) || time.Since(begin) > 10*time.Second {
			t.Errorf("exit code %d after %s:\n%s", code, time.Since(begin), stderr)
		}
	})
}

// Somebody touches the ConfigMap while a command waits. A label is nothing to the node, and another content is not what was agreed to.
func TestAwaitAConfigMapThatIsTouched(t *testing.T) {
	immutable := true
	for _, test := range []struct {
		name  string
		touch func(*corev1.ConfigMap)
		runs  string // the version that the node says it runs
		code  int
		words string
	}{
		{"a label", func(c *corev1.ConfigMap) { c.Labels["team"] = "a" }, "9", 0, "n1: passed its trial"},
		{"a label, and another that the node has not seen", func(c *corev1.ConfigMap) { c.ResourceVersion = "11" }, "9", 0, "n1: passed its trial"},
		{"its content", func(c *corev1.ConfigMap) { c.Data["kubelet"] = document.Header + "maxPods: 1\n" }, "9", 1, "ConfigMap kubelet-config/workers was edited in the meantime"},
		{"an older version runs", func(*corev1.ConfigMap) {}, "6", 1, "not within 20m0s; last seen: runs another version of"},
		{"an older version of one that cannot change", func(c *corev1.ConfigMap) { c.Immutable = &immutable }, "6", 0, "n1: passed its trial"},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				config := configMapOf("workers", someConfig)
				if strings.Contains(test.name, "cannot change") {
					test.touch(config)
				}
				b := newBench(t, versioned(localNode("n1")), config)
				b.answers(t, func(node *corev1.Node, assignment string) {
					touched := config.DeepCopy()
					touched.ResourceVersion = "9"
					test.touch(touched)
					if err := b.Tracker().Update(corev1.SchemeGroupVersion.WithResource("configmaps"), runtime.Object(touched), cmdutil.ConfigNamespace); err != nil {
						t.Error(err)
					}
					runs := config.DeepCopy()
					runs.ResourceVersion = test.runs
					saying(node, assignment, "Active", corev1.ConditionTrue, "", runs, runs)
				})
				code, _, stderr := b.run(t, "assign", "n1", "--config=workers", "--yes", "--until=good")
				if code != test.code || !strings.Contains(stderr, test.words) {
					t.Errorf("exit code %d, want %d and %q:\n%s", code, test.code, test.words, stderr)
				}
			})
		})
	}
}
