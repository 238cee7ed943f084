package controller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/rollout"
)

// sent is what became of a write.
type sent struct {
	write  rollout.Write
	object *corev1.Node
	err    error
}

// send patches Nodes, all of one plan at once and as fast as the limit lets it, and takes in all answers. There are eight at most.
func (c *Controller) send(ctx context.Context, writes []rollout.Write) error {
	results := make(chan sent)
	for _, w := range writes {
		body, err := c.patchOf(w)
		go func() { // ends with its request
			if err != nil {
				results <- sent{w, nil, err}
				return
			}
			object, err := c.patch(ctx, w, body)
			results <- sent{w, object, err}
		}()
	}
	var failure error
	for range writes {
		failure = errors.Join(failure, c.take(ctx, <-results))
	}
	return failure
}

// errOvertaken: a verdict was heard while an assignment waited for its turn, and nothing was sent.
var errOvertaken = errors.New("a verdict was heard meanwhile")

// patch sends one PATCH. Where it has to wait for its turn, it asks for the Lease and for verdicts after that: eight of them wait for 350 ms.
func (c *Controller) patch(ctx context.Context, w rollout.Write, body []byte) (*corev1.Node, error) {
	if err := c.limiter.Wait(ctx); err != nil {
		return nil, errFenced // nothing was sent
	}
	if moves := w.Why == rollout.WhyMove || w.Why == rollout.WhyLate || w.Why == rollout.WhyConsent || w.Why == rollout.WhyDrain; moves && c.verdicts.overtaken(w.Pool) {
		return nil, errOvertaken
	}
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	object := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: w.Node}}
	err := c.writer.Patch(ctx, object, client.RawPatch(types.MergePatchType, body), client.FieldOwner(Name))
	return object, err
}

// patchOf is a merge patch that holds for exactly the version of the Node that was decided on.
func (c *Controller) patchOf(w rollout.Write) ([]byte, error) {
	metadata := map[string]any{"uid": w.UID, "resourceVersion": w.ResourceVersion}
	patch := map[string]any{"metadata": metadata}
	if w.Source != "" {
		metadata["annotations"] = map[string]string{nodev1.ConfigSourceAnnotation: w.Source, rollout.MarkAnnotation: w.Mark.String(),
			nodev1.RetryAnnotation: w.Retry.String()}
	}
	if w.Consent != "" {
		metadata["annotations"] = map[string]string{nodev1.AllowDisruptionAnnotation: w.Consent}
	}
	if w.RemoveTaint != "" {
		left := []corev1.Taint{}
		for _, taint := range c.nodes.read[w.UID].object.Spec.Taints {
			if taint.Key != w.RemoveTaint {
				left = append(left, taint)
			}
		}
		patch["spec"] = map[string]any{"taints": left}
	}
	switch w.Why {
	case rollout.WhyDrain:
		metadata["annotations"] = map[string]string{rollout.DrainAnnotation: w.Drain.String()}
		patch["spec"] = map[string]any{"unschedulable": true}
	case rollout.WhyUndrain:
		metadata["annotations"] = map[string]any{rollout.DrainAnnotation: nil}
		if w.Drain.Pool != "" {
			metadata["annotations"] = map[string]any{rollout.DrainAnnotation: w.Drain.String()}
		}
		if w.Lifts {
			patch["spec"] = map[string]any{"unschedulable": nil}
		}
	}
	return json.Marshal(patch)
}

// take says what an answer means. It fails where the whole turn has to be put off.
func (c *Controller) take(ctx context.Context, s sent) error {
	if errors.Is(s.err, errOvertaken) {
		return nil // decides anew
	}
	c.metrics.patched(s.err)
	switch w := s.write; {
	case s.err == nil:
		c.nodes.answered(s.object, c.monotonic())
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
	case errors.Is(s.err, errFenced):
		return s.err
	case apierrors.IsNotFound(s.err):
		return nil // the cache will know
	case apierrors.IsConflict(s.err):
		return c.askFor(ctx, w) // decides anew, on what is there now
	case apierrors.IsInvalid(s.err):
		return c.invalid(ctx, s)
	case apierrors.IsBadRequest(s.err), apierrors.IsForbidden(s.err):
		return c.forbidden(ctx, s)
	default:
		c.nodes.unanswered[w.UID] = w
		return fmt.Errorf("patching Node %s: %w", w.Node, s.err)
	}
}

// invalid: either it is another Node by now, or this one is refused whatever we say.
func (c *Controller) invalid(ctx context.Context, s sent) error {
	var now corev1.Node
	if err := c.live.Get(ctx, types.NamespacedName{Name: s.write.Node}, &now); err != nil {
		return client.IgnoreNotFound(err)
	}
	if now.UID == s.write.UID && now.ResourceVersion == s.write.ResourceVersion {
		c.deny(s)
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
			return fmt.Errorf("asking for the own rights: %w", err)
		}
		if !review.Status.Allowed {
			return fmt.Errorf("this controller has no verb %s on Node %s: %w", verb, s.write.Node, s.err)
		}
	}
	c.deny(s)
	return nil
}

func (c *Controller) deny(s sent) {
	c.log.Info("the API server refuses to patch a Node", "node", s.write.Node, "words", s.err.Error())
	c.denied[s.write.UID] = denial{s.err.Error(), c.monotonic()}
}
