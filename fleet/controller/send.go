package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/flowcontrol"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/rollout"
)

// patcher patches Nodes. It knows which Nodes the API server does not let it patch.
type patcher struct {
	nodes     *nodeView
	verdicts  *verdicts
	denied    denials
	live      client.Reader
	writer    writer
	limiter   flowcontrol.RateLimiter
	events    record.EventRecorder
	metrics   *metrics
	monotonic func() time.Duration
	log       logr.Logger
}

func newPatcher(p parts, nodes *nodeView, v *verdicts) *patcher {
	return &patcher{nodes: nodes, verdicts: v, denied: newDenials(), live: p.live, writer: p.writer,
		limiter: flowcontrol.NewTokenBucketRateLimiter(patchesPerSecond, 1), events: p.events, metrics: p.metrics, monotonic: p.monotonic, log: p.log}
}

// writesOf returns the writes of the pools whose decision is in their status. The end of a drain does not need that. A Node that is not tried again
// yet is left out.
func (p *patcher) writesOf(plan *rollout.Plan, written map[string]bool) []rollout.Write {
	var writes []rollout.Write
	for _, w := range plan.Writes {
		if p.denied.rests(w.UID, p.monotonic()) {
			continue
		}
		if _, changes := plan.Status[w.Pool]; !changes || written[w.Pool] || w.Why == rollout.WhyUndrain {
			writes = append(writes, w)
		}
	}
	return writes
}

// sent is a write with its answer.
type sent struct {
	write  rollout.Write
	edit   edit
	before *corev1.Node
	// dry means that a dry run comes first, because admission has changed a PATCH lately.
	dry    bool
	object *corev1.Node
	err    error
}

// send patches the Nodes of one plan, eight at most, concurrently and within the rate limit, and waits for all answers.
func (p *patcher) send(ctx context.Context, writes []rollout.Write) error {
	results := make(chan sent)
	for _, w := range writes {
		s := sent{write: w, edit: editOf(&w), before: p.nodes.read[w.UID].object, dry: p.denied.alter()}
		go func() { // ends with its requests
			s.object, s.err = p.deliver(ctx, &s)
			results <- s
		}()
	}
	var failure error
	for range writes {
		failure = errors.Join(failure, p.take(ctx, <-results))
	}
	return failure
}

// errOvertaken is the error for an assignment that was not sent, because a verdict came while it waited for the rate limit.
var errOvertaken = errors.New("a node reported a verdict in the meantime, so the request was not sent")

// deliver sends one write, after a dry run if s.dry is set. If a webhook does not support dry runs, the PATCH is
// sent without one.
func (p *patcher) deliver(ctx context.Context, s *sent) (*corev1.Node, error) {
	body, err := s.edit.patch(s.before)
	if err != nil {
		return nil, err
	}
	if s.dry {
		tried, err := p.patch(ctx, &s.write, body, client.DryRunAll)
		if err != nil && !apierrors.IsBadRequest(err) {
			return nil, err
		}
		if err == nil && s.edit.missed(tried) != "" {
			return nil, altered{s.edit.missed(tried)}
		}
	}
	return p.patch(ctx, &s.write, body)
}

// patch sends one PATCH. The Lease and the verdicts are checked after the rate limit, because eight PATCHes wait for 350 ms.
func (p *patcher) patch(ctx context.Context, w *rollout.Write, body []byte, options ...client.PatchOption) (*corev1.Node, error) {
	if err := p.limiter.Wait(ctx); err != nil {
		return nil, errFenced // nothing was sent
	}
	if w.Why.Forward() && p.verdicts.overtaken(w.Pool) {
		return nil, errOvertaken
	}
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	object := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: w.Node}}
	err := p.writer.Patch(ctx, object, client.RawPatch(types.MergePatchType, body), append(options, client.FieldOwner(Name))...)
	return object, err
}

// take records what an answer means for its Node. It returns an error if the whole turn has to be repeated.
func (p *patcher) take(ctx context.Context, s sent) error {
	if errors.Is(s.err, errOvertaken) {
		return nil // the next turn decides again
	}
	p.metrics.patched(s.err)
	var changed altered
	switch w := &s.write; {
	case s.err == nil:
		return p.answered(ctx, &s)
	case errors.Is(s.err, errFenced):
		return s.err
	case errors.As(s.err, &changed):
		p.deny(w, altersPatch, s.err)
		return nil
	case apierrors.IsNotFound(s.err):
		return nil // the cache will show it
	case apierrors.IsConflict(s.err):
		return p.nodes.refresh(ctx, *w) // the next turn decides again, on what is there now
	case apierrors.IsInvalid(s.err):
		return p.invalid(ctx, s)
	case apierrors.IsBadRequest(s.err), apierrors.IsForbidden(s.err):
		return p.forbidden(ctx, s)
	case fails(ctx, s.err):
		p.nodes.unanswered[w.UID] = *w // it may have arrived
		p.deny(w, failsPatch, s.err)
		return nil
	default:
		p.nodes.unanswered[w.UID] = *w
		return fmt.Errorf("patching Node %s: %w", w.Node, s.err)
	}
}

// answered handles the Node as the API server has stored it. The write has succeeded only if that is what was sent.
func (p *patcher) answered(ctx context.Context, s *sent) error {
	w := &s.write
	p.nodes.answered(s.object)
	if missed := s.edit.missed(s.object); missed != "" {
		p.deny(w, altersPatch, altered{missed})
		return p.revert(ctx, s)
	}
	p.denied.taken(w.UID)
	p.verdicts.assigned(w.Pool, p.monotonic())
	if reason, message, warning := w.Tells(); reason != "" {
		p.events.Event(s.object, eventType(warning), reason, message)
	}
	p.log.Info("a Node was patched", "pool", w.Pool, "node", w.Node, "why", string(w.Why), "source", w.Source, "taint", w.RemoveTaint,
		"consent", w.Consent, "drain", w.Drain.String())
	return nil
}

// revert undoes an edit of which only a part was stored. It is tried once. If it fails, a user has to look at the Node, and the denial says so.
func (p *patcher) revert(ctx context.Context, s *sent) error {
	back, is := s.edit.back(s.before, s.object)
	if !is {
		return nil
	}
	body, err := back.patch(s.object)
	if err != nil {
		return err
	}
	again := s.write
	again.Why = rollout.WhyRevert // no verdict holds it up
	object, err := p.patch(ctx, &again, body)
	switch {
	case errors.Is(err, errFenced):
		return err
	case err == nil:
		p.nodes.answered(object)
		p.log.Info("a PATCH that admission has changed was reverted", "node", again.Node)
	default:
		p.nodes.unanswered[again.UID] = again
		p.log.Error(err, "a PATCH that admission has changed may not have been reverted", "node", again.Node)
	}
	return nil
}

// invalid handles the answer that a PATCH is invalid: either another Node has the name now, or this one is refused whatever is sent.
func (p *patcher) invalid(ctx context.Context, s sent) error {
	var now corev1.Node
	if err := p.live.Get(ctx, types.NamespacedName{Name: s.write.Node}, &now); err != nil {
		return client.IgnoreNotFound(err)
	}
	if now.UID == s.write.UID && now.ResourceVersion == s.write.ResourceVersion {
		p.deny(&s.write, refusesPatch, s.err)
	} else if now.UID == s.write.UID {
		p.nodes.answered(&now)
	}
	return nil
}

// forbidden handles the answer that a PATCH is forbidden. If admission refuses this Node, the others go on. If the controller has lost its rights, that
// is not the fault of a node, and it returns an error.
func (p *patcher) forbidden(ctx context.Context, s sent) error {
	for _, verb := range []string{"patch", "assign-kubelet-config"} {
		ctx, cancel := context.WithTimeout(ctx, requestTime)
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: verb, Resource: "nodes", Name: s.write.Node}}}
		err := p.writer.Create(ctx, review)
		cancel()
		if err != nil {
			return fmt.Errorf("reviewing the access of this controller: %w", err)
		}
		if !review.Status.Allowed {
			return fmt.Errorf("this controller does not have the verb %s on Node %s: %w", verb, s.write.Node, s.err)
		}
	}
	p.deny(&s.write, refusesPatch, s.err)
	return nil
}
