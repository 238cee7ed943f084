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

// writesOf are the writes of the pools whose decision is in their status. A cordon of ours is lifted without one. A Node that was put off for a
// moment is left out.
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

// sent is a write, and what became of it.
type sent struct {
	write  rollout.Write
	edit   edit
	before *corev1.Node
	// dry: admission has altered something lately, so this is tried by a dry run first.
	dry    bool
	object *corev1.Node
	err    error
}

// send patches Nodes, all of one plan at once and as fast as the limit lets it, and takes in all answers. There are eight at most.
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

// errOvertaken: a verdict was heard while an assignment waited for its turn, and nothing was sent.
var errOvertaken = errors.New("a node reported a verdict in the meantime, so the request was not sent")

// deliver sends one write. A webhook that no dry run may ask is not asked: then the answer tells.
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

// patch sends one PATCH. Where it has to wait for its turn, it asks for the Lease and for verdicts after that: eight of them wait for 350 ms.
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

// take says what an answer means. It fails where the whole turn has to be put off.
func (p *patcher) take(ctx context.Context, s sent) error {
	if errors.Is(s.err, errOvertaken) {
		return nil // decides anew
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
		return nil // the cache will know
	case apierrors.IsConflict(s.err):
		return p.nodes.refresh(ctx, *w) // decides anew, on what is there now
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

// answered takes in the Node as the API server has stored it. Only where that is what was sent has the write succeeded.
func (p *patcher) answered(ctx context.Context, s *sent) error {
	w := &s.write
	p.nodes.answered(s.object)
	if missed := s.edit.missed(s.object); missed != "" {
		p.deny(w, altersPatch, altered{missed})
		return p.takeBack(ctx, s)
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

// takeBack takes away what has arrived of an edit that has not arrived as a whole. It is tried once: what stays is a person's to look at, and
// the words are said.
func (p *patcher) takeBack(ctx context.Context, s *sent) error {
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
	default:
		p.nodes.unanswered[again.UID] = again
	}
	p.log.Info("the rest of a PATCH that was changed on its way was reverted", "node", again.Node, "error", err)
	return nil
}

// invalid: either it is another Node by now, or this one is refused whatever we say.
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

// forbidden: a Node that admission refuses is named, and the others go on. Where we may patch none, we have lost our rights, and that is no
// fault of a node.
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
