package controller

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/rollout"
)

// lagLimit is how long a cache may be behind an answer before no decision is made from it.
const lagLimit = 10 * time.Second

// nodeView is all Nodes: those of the cache, with newer answers of the API server laid over them.
type nodeView struct {
	live      client.Reader
	monotonic func() time.Duration

	read map[types.UID]*readNode
	// ahead are answers that are newer than the cache.
	ahead map[types.UID]answer
	// unanswered are writes whose answers were lost, so that they may have arrived or not.
	unanswered map[types.UID]rollout.Write
}

// readNode is a Node, read once for each version of it.
type readNode struct {
	object *corev1.Node
	node   rollout.Node
}

// answer is a Node in an answer of the API server, and when the answer came.
type answer struct {
	object *corev1.Node
	at     time.Duration
}

func newNodeView(p parts) *nodeView {
	return &nodeView{live: p.live, monotonic: p.monotonic, read: map[types.UID]*readNode{}, ahead: map[types.UID]answer{}, unanswered: map[types.UID]rollout.Write{}}
}

// answered lays an answer over the cache, until the cache is as new.
func (v *nodeView) answered(object *corev1.Node) {
	object = trimmed(object)
	if known, is := v.ahead[object.UID]; is && newer(known.object.ResourceVersion, object.ResourceVersion) {
		return
	}
	v.ahead[object.UID] = answer{object, v.monotonic()}
}

// readAll reads the Nodes. lags is the name of one that the cache has had an old version of for too long; it is empty if there is none.
func (v *nodeView) readAll(cached []corev1.Node) (nodes []rollout.Node, lags string) {
	now := v.monotonic()
	read := make(map[types.UID]*readNode, len(cached))
	nodes = make([]rollout.Node, 0, len(cached))
	for i := range cached {
		object := &cached[i]
		if ahead, is := v.ahead[object.UID]; is {
			if newer(ahead.object.ResourceVersion, object.ResourceVersion) {
				if now-ahead.at > lagLimit {
					lags = object.Name
				}
				object = ahead.object
			} else {
				delete(v.ahead, object.UID)
			}
		}
		known, is := v.read[object.UID]
		if !is || known.object.ResourceVersion != object.ResourceVersion {
			kept := *object // otherwise it would keep the whole list in memory
			known = &readNode{&kept, internNode(rollout.ReadNode(object))}
		}
		read[object.UID] = known
		nodes = append(nodes, known.node)
	}
	for uid := range v.ahead {
		if _, is := read[uid]; !is {
			delete(v.ahead, uid) // the cache had it when it was patched, so it was deleted since
		}
	}
	v.read = read
	return nodes, lags
}

// settle reads the Nodes of the writes whose answers were lost.
func (v *nodeView) settle(ctx context.Context) error {
	for uid, write := range v.unanswered {
		if err := v.refresh(ctx, write); err != nil {
			return err
		}
		delete(v.unanswered, uid)
	}
	return nil
}

// refresh lays the Node of a write over the cache, as the API server has it now.
func (v *nodeView) refresh(ctx context.Context, write rollout.Write) error {
	var object corev1.Node
	err := v.live.Get(ctx, types.NamespacedName{Name: write.Node}, &object)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("reading Node %s: %w", write.Node, err)
	}
	if object.UID == write.UID {
		v.answered(&object)
	}
	return nil
}

// newer reports whether resourceVersion a is newer than b.
func newer(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order > 0
}

// sameNode reports whether nothing has changed that a decision depends on. The resourceVersion changes with every heartbeat.
func sameNode(a, b *corev1.Node) bool {
	x, y := rollout.ReadNode(a), rollout.ReadNode(b)
	x.ResourceVersion = cmp.Or(y.ResourceVersion, x.ResourceVersion)
	return reflect.DeepEqual(x, y)
}
