package controller

import (
	"context"
	"errors"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/rollout"
)

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
func (c *Controller) send(ctx context.Context, writes []rollout.Write) error {
	results := make(chan sent)
	for _, w := range writes {
		s := sent{write: w, edit: editOf(&w), before: c.nodes.read[w.UID].object, dry: c.denied.alter()}
		go func() { // ends with its requests
			s.object, s.err = c.deliver(ctx, &s)
			results <- s
		}()
	}
	var failure error
	for range writes {
		failure = errors.Join(failure, c.take(ctx, <-results))
	}
	return failure
}

// errOvertaken: a verdict was heard while an assignment waited for its turn, and nothing was sent.
var errOvertaken = errors.New("a node reported a verdict in the meantime, so the request was not sent")

// deliver sends one write. A webhook that no dry run may ask is not asked: then the answer tells.
func (c *Controller) deliver(ctx context.Context, s *sent) (*corev1.Node, error) {
	body, err := s.edit.patch(s.before)
	if err != nil {
		return nil, err
	}
	if s.dry {
		tried, err := c.patch(ctx, &s.write, body, client.DryRunAll)
		if err != nil && !apierrors.IsBadRequest(err) {
			return nil, err
		}
		if err == nil && s.edit.missed(tried) != "" {
			return nil, altered{s.edit.missed(tried)}
		}
	}
	return c.patch(ctx, &s.write, body)
}

// patch sends one PATCH. Where it has to wait for its turn, it asks for the Lease and for verdicts after that: eight of them wait for 350 ms.
func (c *Controller) patch(ctx context.Context, w *rollout.Write, body []byte, options ...client.PatchOption) (*corev1.Node, error) {
	if err := c.limiter.Wait(ctx); err != nil {
		return nil, errFenced // nothing was sent
	}
	if w.Why.Forward() && c.verdicts.overtaken(w.Pool) {
		return nil, errOvertaken
	}
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	object := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: w.Node}}
	err := c.writer.Patch(ctx, object, client.RawPatch(types.MergePatchType, body), append(options, client.FieldOwner(Name))...)
	return object, err
}

// take says what an answer means. It fails where the whole turn has to be put off.
func (c *Controller) take(ctx context.Context, s sent) error {
	if errors.Is(s.err, errOvertaken) {
		return nil // decides anew
	}
	c.metrics.patched(s.err)
	var changed altered
	switch w := &s.write; {
	case s.err == nil:
		return c.answered(ctx, &s)
	case errors.Is(s.err, errFenced):
		return s.err
	case errors.As(s.err, &changed):
		c.deny(w, altersPatch, s.err)
		return nil
	case apierrors.IsNotFound(s.err):
		return nil // the cache will know
	case apierrors.IsConflict(s.err):
		return c.askFor(ctx, *w) // decides anew, on what is there now
	case apierrors.IsInvalid(s.err):
		return c.invalid(ctx, s)
	case apierrors.IsBadRequest(s.err), apierrors.IsForbidden(s.err):
		return c.forbidden(ctx, s)
	case fails(ctx, s.err):
		c.nodes.unanswered[w.UID] = *w // it may have arrived
		c.deny(w, failsPatch, s.err)
		return nil
	default:
		c.nodes.unanswered[w.UID] = *w
		return fmt.Errorf("patching Node %s: %w", w.Node, s.err)
	}
}

// answered takes in the Node as the API server has stored it. Only where that is what was sent has the write succeeded.
func (c *Controller) answered(ctx context.Context, s *sent) error {
	w := &s.write
	c.nodes.answered(s.object, c.monotonic())
	if missed := s.edit.missed(s.object); missed != "" {
		c.deny(w, altersPatch, altered{missed})
		return c.takeBack(ctx, s)
	}
	c.denied.taken(w.UID)
	c.verdicts.assigned(w.Pool, c.monotonic())
	if reason, message, warning := w.Tells(); reason != "" {
		kind := corev1.EventTypeNormal
		if warning {
			kind = corev1.EventTypeWarning
		}
		c.events.Event(s.object, kind, reason, message)
	}
	c.log.Info("a Node was patched", "pool", w.Pool, "node", w.Node, "why", string(w.Why), "source", w.Source, "taint", w.RemoveTaint,
		"consent", w.Consent, "drain", w.Drain.String())
	return nil
}

// takeBack takes away what has arrived of an edit that has not arrived as a whole. It is tried once: what stays is a person's to look at, and
// the words are said.
func (c *Controller) takeBack(ctx context.Context, s *sent) error {
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
	object, err := c.patch(ctx, &again, body)
	switch {
	case errors.Is(err, errFenced):
		return err
	case err == nil:
		c.nodes.answered(object, c.monotonic())
	default:
		c.nodes.unanswered[again.UID] = again
	}
	c.log.Info("the rest of a PATCH that was changed on its way was reverted", "node", again.Node, "error", err)
	return nil
}

// invalid: either it is another Node by now, or this one is refused whatever we say.
func (c *Controller) invalid(ctx context.Context, s sent) error {
	var now corev1.Node
	if err := c.live.Get(ctx, types.NamespacedName{Name: s.write.Node}, &now); err != nil {
		return client.IgnoreNotFound(err)
	}
	if now.UID == s.write.UID && now.ResourceVersion == s.write.ResourceVersion {
		c.deny(&s.write, refusesPatch, s.err)
	} else if now.UID == s.write.UID {
		c.nodes.answered(&now, c.monotonic())
	}
	return nil
}

// forbidden: a Node that admission refuses is named, and the others go on. Where we may patch none, we have lost our rights, and that is no
// fault of a node.
func (c *Controller) forbidden(ctx context.Context, s sent) error {
	for _, verb := range []string{"patch", "assign-kubelet-config"} {
		ctx, cancel := context.WithTimeout(ctx, requestTime)
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: verb, Resource: "nodes", Name: s.write.Node}}}
		err := c.writer.Create(ctx, review)
		cancel()
		if err != nil {
			return fmt.Errorf("reviewing the access of this controller: %w", err)
		}
		if !review.Status.Allowed {
			return fmt.Errorf("this controller does not have the verb %s on Node %s: %w", verb, s.write.Node, s.err)
		}
	}
	c.deny(&s.write, refusesPatch, s.err)
	return nil
}
