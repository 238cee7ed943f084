package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/flowcontrol"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/rollout"
)

const (
	// drainsAtOnce limits the nodes that are drained at a time. More wait.
	drainsAtOnce = 8
	// evictionsPerSecond limits the evictions from all nodes together.
	evictionsPerSecond = 10
	// drainAgain is the pause before a node's pods are listed again.
	drainAgain = 5 * time.Second
)

// drainer evicts pods from the nodes that a plan drains. There is one goroutine for each node, which ends when a plan no longer drains it.
// It is not k8s.io/kubectl/pkg/drain: those 938 lines block until a node is empty, and bring kubectl's command code into the controller.
type drainer struct {
	pods    client.Reader // live
	writer  writer        // fenced
	limiter flowcontrol.RateLimiter
	log     logr.Logger
	context context.Context
	cancel  context.CancelFunc
	workers sync.WaitGroup

	mutex sync.Mutex
	under map[types.UID]*drain
	found map[types.UID]rollout.Drained
}

// drain is the drain of one node.
type drain struct {
	of   rollout.Draining
	stop context.CancelFunc
}

func newDrainer(p parts) *drainer {
	d := &drainer{pods: p.live, writer: p.writer, log: p.log, limiter: flowcontrol.NewTokenBucketRateLimiter(evictionsPerSecond, evictionsPerSecond),
		under: map[types.UID]*drain{}, found: map[types.UID]rollout.Drained{}}
	d.context, d.cancel = context.WithCancel(context.Background())
	return d
}

// end stops all drains, and waits until they have ended. None begins after it.
func (d *drainer) end() {
	d.mutex.Lock() // follow begins drains while it has it
	d.cancel()
	d.mutex.Unlock()
	d.workers.Wait()
}

// follow stops the drains that are not wanted, and begins those that are, up to drainsAtOnce.
func (d *drainer) follow(wanted []rollout.Draining) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	for uid, one := range d.under {
		if !slices.Contains(wanted, one.of) {
			one.stop()
			delete(d.under, uid)
		}
	}
	for _, of := range wanted {
		if _, is := d.under[of.UID]; is || len(d.under) >= drainsAtOnce || d.context.Err() != nil {
			continue
		}
		ctx, stop := context.WithCancel(d.context)
		d.under[of.UID] = &drain{of, stop}
		d.workers.Go(func() { d.work(ctx, of) })
	}
}

// findings returns what was found on the nodes that are being drained, and forgets those of all others.
func (d *drainer) findings(nodes []rollout.Node) map[types.UID]rollout.Drained {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	kept := map[types.UID]rollout.Drained{}
	for i := range nodes {
		n := &nodes[i]
		if found, is := d.found[n.UID]; is && n.Draining && found.Drain == n.Drain {
			kept[n.UID] = found
		}
	}
	d.found = kept
	given := make(map[types.UID]rollout.Drained, len(kept))
	for uid, found := range kept {
		given[uid] = found
	}
	return given
}

// work evicts the pods of a node again and again until ctx ends, because pods that tolerate the cordon may come.
func (d *drainer) work(ctx context.Context, of rollout.Draining) {
	for {
		found := d.round(ctx, of)
		if ctx.Err() != nil {
			return
		}
		found.Drain = of.Drain
		d.mutex.Lock()
		d.found[of.UID] = found
		d.mutex.Unlock()
		select {
		case <-ctx.Done():
			return
		case <-time.After(drainAgain):
		}
	}
}

// round evicts each pod that may be evicted once.
func (d *drainer) round(ctx context.Context, of rollout.Draining) rollout.Drained {
	pods, err := d.podsOf(ctx, of.Node)
	if err != nil {
		return rollout.Drained{Words: "its pods cannot be listed: " + err.Error()}
	}
	var refused, wayward []string
	var taken []*corev1.Pod
	for i := range pods {
		p := &pods[i]
		switch fate, why := fateOf(p); fate {
		case refuses:
			refused = append(refused, nameOf(p)+" "+why)
		case waitedFor:
			wayward = append(wayward, nameOf(p)+" "+why)
		case evicted:
			taken = append(taken, p)
		}
	}
	if len(refused) > 0 {
		return rollout.Drained{Refuses: true, Words: "no drain may take " + few(refused)}
	}
	for _, p := range taken {
		if err := d.evict(ctx, p); err != nil && !apierrors.IsNotFound(err) {
			wayward = append(wayward, nameOf(p)+": "+whyNot(err))
		} else if err == nil {
			d.log.Info("a pod was evicted", "node", of.Node, "pod", nameOf(p), "drain", of.Drain.String())
			wayward = append(wayward, nameOf(p)+" is terminating")
		}
	}
	return rollout.Drained{Empty: len(wayward) == 0, Words: few(wayward)}
}

// podsOf asks the API server, because only failed pods are cached.
func (d *drainer) podsOf(ctx context.Context, node string) ([]corev1.Pod, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	var list corev1.PodList
	if err := d.pods.List(ctx, &list, client.MatchingFields{"spec.nodeName": node}); err != nil {
		return nil, err
	}
	slices.SortFunc(list.Items, func(a, b corev1.Pod) int { return strings.Compare(nameOf(&a), nameOf(&b)) })
	return list.Items, nil
}

// evict asks for the eviction of this pod, and not of a later one with its name.
func (d *drainer) evict(ctx context.Context, p *corev1.Pod) error {
	if err := d.limiter.Wait(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	return d.writer.SubResource("eviction").Create(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name}},
		&policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name},
			DeleteOptions: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &p.UID}}})
}

// fate is what a drain does with a pod.
type fate int

const (
	stays fate = iota
	evicted
	waitedFor
	refuses
)

// fateOf decides as kubectl drain does without --force and --delete-emptydir-data, except that a pod of a DaemonSet stays even if the DaemonSet is
// deleted, and that a pod that has ended stays. why is for users.
func fateOf(p *corev1.Pod) (what fate, why string) {
	owner := metav1.GetControllerOf(p)
	_, mirror := p.Annotations[corev1.MirrorPodAnnotationKey]
	switch {
	case mirror, owner != nil && owner.Kind == "DaemonSet", p.Status.Phase == corev1.PodSucceeded, p.Status.Phase == corev1.PodFailed:
		return stays, ""
	case p.DeletionTimestamp != nil:
		return waitedFor, "is terminating"
	case owner == nil:
		return refuses, "(it has no controller)"
	case slices.ContainsFunc(p.Spec.Volumes, func(v corev1.Volume) bool { return v.EmptyDir != nil }):
		return refuses, "(it has an emptyDir)"
	}
	return evicted, ""
}

// whyNot is why a pod was not evicted. For a PodDisruptionBudget it is the message of the API server, which has its name.
func whyNot(err error) string {
	var status apierrors.APIStatus
	if errors.As(err, &status) && status.Status().Details != nil {
		for _, cause := range status.Status().Details.Causes {
			if cause.Type == policyv1.DisruptionBudgetCause {
				return cause.Message
			}
		}
	}
	return err.Error()
}

func nameOf(p *corev1.Pod) string { return p.Namespace + "/" + p.Name }

// few lists the first texts and counts the others.
func few(texts []string) string {
	if most := 3; len(texts) > most {
		return strings.Join(texts[:most], ", ") + fmt.Sprintf(" and %d more", len(texts)-most)
	}
	return strings.Join(texts, ", ")
}
