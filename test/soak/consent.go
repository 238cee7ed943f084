//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
)

// A consent is the word for what was held at the last quiescent moment.
type consent struct {
	word string
	any  bool
	pods []string // that the hold named
}

// approve says a word. Where nothing was held there is none to say.
func (s *soaker) approve(ctx context.Context, how approval) error {
	if how == "" || s.held == nil {
		return nil
	}
	say := func(word any) error { return s.node.annotate(ctx, object{nodev1.AllowDisruptionAnnotation: word}) }
	if how == approvedStale {
		word := "0123456789ab"
		if len(s.words) > 0 {
			word = s.words[len(s.words)-1]
		}
		return say(word)
	}
	s.consent = &consent{word: s.held.Approval, any: how == approvedAny || s.held.More > 0}
	for _, loss := range s.held.Losses {
		s.consent.pods = append(s.consent.pods, strings.TrimPrefix(loss.Pod, "default/"))
	}
	switch how {
	case approvedAny:
		return say(s.consent.word + "+any")
	case approvedTwice:
		return errors.Join(say(s.consent.word), say(nil), say(s.consent.word))
	}
	return say(s.consent.word)
}

// spentBy tells which pods may have ended: those that the hold named, where its word was spent.
func (c *consent) spentBy(v view) func(pod string) bool {
	if c == nil || !strings.HasPrefix(v.status.Approval, c.word) {
		return func(string) bool { return false }
	}
	return func(pod string) bool { return c.any || slices.Contains(c.pods, pod) }
}

// takeBack takes back a word that was said and not spent: it would be good for as long as its hold stands, whatever is done to the node next.
func (s *soaker) takeBack(ctx context.Context, v view) (taken bool, err error) {
	if s.consent == nil || v.condition.Reason != "WouldDisrupt" || strings.HasPrefix(v.status.Approval, s.consent.word) {
		return false, nil
	}
	return true, s.node.annotate(ctx, object{nodev1.AllowDisruptionAnnotation: nil})
}

// endConsent notes what is held now, and that a word which was said is worth nothing any more.
func (s *soaker) endConsent(v view) {
	if s.consent != nil {
		s.words = append(s.words, s.consent.word)
	}
	s.consent, s.held = nil, nil
	if v.condition.Reason == "WouldDisrupt" {
		s.held = v.status.Hold
	}
}

// checkHold: what is held says so, and names as many pods as it would cost.
func (v view) checkHold(want expectation) error {
	h := v.status.Hold
	switch {
	case want.reason != "WouldDisrupt" && h != nil:
		return fmt.Errorf("it is %s, and the status has a hold: %+v", want.reason, *h)
	case want.reason != "WouldDisrupt":
		return nil
	case h == nil || h.Approval == "":
		return errors.New("something is held, and the status has no approval for it")
	case !h.Known:
		return fmt.Errorf("what is held waits for %s", h.WaitsFor)
	case want.losses >= 0 && len(h.Losses)+h.More != want.losses:
		return fmt.Errorf("the hold names %d pods and %d more, and the change would cost %d: %+v", len(h.Losses), h.More, want.losses, h.Losses)
	}
	return nil
}

// makeNamespace makes one whose pods have to be restricted, so that no mirror of one with the host's network is taken.
func (n *node) makeNamespace(ctx context.Context, name string) error {
	return n.insist(ctx, func() error {
		_, err := n.request(ctx, http.MethodPost, "/api/v1/namespaces", object{"metadata": object{"name": name,
			"labels": object{"pod-security.kubernetes.io/enforce": "restricted"}}})
		if code(err) == http.StatusConflict {
			return nil
		}
		return err
	})
}
