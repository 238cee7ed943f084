//go:build linux

package supervisor

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/core"
)

// nodeServer answers looks at the Node n1.
type nodeServer struct {
	node  *corev1.Node
	err   error
	looks int

	pods    []podStart
	listErr error
	now     time.Duration
}

func (s *nodeServer) watch() *nodeWatch {
	w := newNodeWatch(func() (rest.Interface, string) { return (*rest.RESTClient)(nil), "n1" })
	w.list = func(context.Context, rest.Interface, string) ([]podStart, error) { return s.pods, s.listErr }
	w.clock = func() time.Duration { return s.now }
	w.look = func(_ context.Context, _ rest.Interface, nodeName string) (*corev1.Node, error) {
		if nodeName != "n1" {
			return nil, errors.New("of another Node")
		}
		s.looks++
		return s.node, s.err
	}
	return w
}

// posted is a Node whose kubelet has posted its conditions so long after leaseTime.
func posted(after time.Duration, bad ...corev1.NodeConditionType) *corev1.Node {
	heartbeat := metav1.Time{Time: leaseTime.Add(after)}
	node := &corev1.Node{Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: heartbeat}}}}
	for _, kind := range bad {
		node.Status.Conditions = append(node.Status.Conditions, corev1.NodeCondition{Type: kind, Status: corev1.ConditionTrue, LastHeartbeatTime: heartbeat})
	}
	return node
}

// Whose the conditions are is known by the heartbeat: one that differs from the newest before the start is the child's.
func TestWhoPostedTheConditions(t *testing.T) {
	const disk = corev1.NodeDiskPressure
	good, bad := core.Conditions{Known: true}, core.Conditions{Known: true, Bad: "DiskPressure"}
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "nodes"}, "n1", errors.New("no"))
	for name, test := range map[string]struct {
		before []*corev1.Node // seen while another child ran
		nodes  []*corev1.Node // seen since
		err    error          // in the place of the first of those
		want   []core.ConditionsSeen
	}{
		"not known":              {nil, []*corev1.Node{posted(0)}, nil, []core.ConditionsSeen{{Conditions: good}}},
		"then it posts":          {nil, []*corev1.Node{posted(0), posted(1e9, disk)}, nil, []core.ConditionsSeen{{Conditions: good}, {Conditions: bad, Posted: true}}},
		"not yet":                {[]*corev1.Node{posted(0, disk)}, []*corev1.Node{posted(0, disk)}, nil, []core.ConditionsSeen{{Conditions: bad, Before: true}}},
		"it posts":               {[]*corev1.Node{posted(0, disk)}, []*corev1.Node{posted(1e9)}, nil, []core.ConditionsSeen{{Conditions: good, Posted: true}}},
		"the clock was set back": {[]*corev1.Node{posted(0)}, []*corev1.Node{posted(-1e15, disk)}, nil, []core.ConditionsSeen{{Conditions: bad, Posted: true}}},
		"once posted, its own": {[]*corev1.Node{posted(0)}, []*corev1.Node{posted(1e9), posted(1e9), posted(0)}, nil,
			[]core.ConditionsSeen{{Conditions: good, Posted: true}, {Conditions: good, Posted: true}, {Conditions: good, Posted: true}}},
		"the newest before the start counts": {[]*corev1.Node{posted(0), posted(1e9)}, []*corev1.Node{posted(1e9)}, nil, []core.ConditionsSeen{{Conditions: good, Before: true}}},
		"no conditions":                      {nil, []*corev1.Node{{}}, nil, []core.ConditionsSeen{{}}},
		"not allowed":                        {nil, []*corev1.Node{nil}, forbidden, []core.ConditionsSeen{{Problem: `nodes "n1" is forbidden: no`}}},
		"no answer":                          {nil, []*corev1.Node{nil}, errors.New("connection refused"), []core.ConditionsSeen{{}}},
	} {
		t.Run(name, func(t *testing.T) {
			server := &nodeServer{}
			w := server.watch()
			w.newChild("a")
			for _, server.node = range test.before {
				w.see(t.Context())
			}
			w.newChild("a")
			server.err = test.err
			var got []core.ConditionsSeen
			for _, server.node = range test.nodes {
				got = append(got, w.see(t.Context()))
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A look during which another child was started says nothing, and the next program goes on where this one was.
func TestALookOverAStart(t *testing.T) {
	server := &nodeServer{node: posted(0)}
	w := server.watch()
	w.see(t.Context())
	read := w.look
	w.look = func(ctx context.Context, client rest.Interface, name string) (*corev1.Node, error) {
		w.newChild("a")
		return read(ctx, client, name)
	}
	server.node = posted(time.Second)
	if got := w.see(t.Context()); got != (core.ConditionsSeen{}) {
		t.Errorf("saw %+v", got)
	}
	next := server.watch()
	next.inherit(w.handOver())
	if got := next.see(t.Context()); !got.Posted {
		t.Errorf("the next program saw %+v", got)
	}
	offline := newNodeWatch(func() (rest.Interface, string) { return nil, "" })
	if got := offline.see(t.Context()); got != (core.ConditionsSeen{}) {
		t.Errorf("without a connection it saw %+v", got)
	}
}

// The Node is looked at once for each time that it is asked, and never else.
func TestTheNodeIsLookedAtOnlyWhenAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &nodeServer{node: posted(0)}
		w := server.watch()
		ctx, stop := context.WithCancel(t.Context())
		told, over := 0, make(chan struct{})
		go func() {
			defer close(over)
			w.run(ctx, func(core.ConditionsSeen) { told++ })
		}()
		time.Sleep(time.Hour)
		w.ask(false)
		synctest.Wait()
		w.ask(false)
		time.Sleep(time.Hour)
		stop()
		<-over
		if told != 2 || server.looks != 2 {
			t.Errorf("looked %d times, told %d times", server.looks, told)
		}
	})
}
