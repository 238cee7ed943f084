package sync

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// place is how far a watch has come.
type place struct {
	version  string // to go on from; empty: it takes a LIST
	whole    bool   // the whole object is watched, and not only its metadata
	stumbled string // at which version a watch sent what it should not
}

func (p *place) reach(version string) {
	if version != "" {
		p.version = version
	}
}

// stumble: what fails twice at the same place is not tried there a third time.
func (p *place) stumble() {
	if p.stumbled == p.version {
		p.version = ""
	}
	p.stumbled = p.version
}

// errNoAnswer: LISTs may be answered anyway, where something on the way cannot do with watches.
var errNoAnswer = errors.New("the API server does not answer a watch")

// resumable reports whether a watch that ended so can go on from its place. It can where the API server was not reached or was
// overloaded, and where it does not know our permissions yet.
func resumable(err error) bool {
	var answer *apierrors.StatusError
	if errors.Is(err, errAskedAgain) || errors.Is(err, errNoAnswer) {
		return false
	}
	if !errors.As(err, &answer) {
		return true
	}
	code := answer.ErrStatus.Code
	return code >= http.StatusInternalServerError && !apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge) ||
		code == http.StatusTooManyRequests || code == http.StatusForbidden || code == http.StatusUnauthorized
}

// errAskedAgain ends a watch because another look was asked for.
var errAskedAgain = errors.New("asked to look again")

// ended tells the ends of a watch that are no failure from those that are.
func ended(err error) error {
	if errors.Is(err, errAskedAgain) || apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		return nil
	}
	return err
}

// watch tells the changes since o.version until the API server ends the watch (nil) or something else does.
func (o *object) watch(ctx context.Context, length time.Duration) error {
	within, cancel := context.WithTimeout(ctx, length+watchGrace)
	defer cancel()
	request := o.request().
		Param("watch", "true").
		Param("fieldSelector", "metadata.name="+o.name).
		Param("resourceVersion", o.version).
		Param("allowWatchBookmarks", "true").
		Param("timeoutSeconds", strconv.Itoa(int(length/time.Second)))
	if !o.whole {
		request.SetHeader("Accept", onlyMetadata)
	}
	// The answer's headers come at once; only its body takes long.
	unanswered := time.AfterFunc(RequestTimeout, cancel)
	stream, err := request.Watch(within)
	inTime := unanswered.Stop()
	o.note(ctx, err)
	if err != nil && !inTime {
		return errNoAnswer
	}
	if err != nil {
		return fmt.Errorf("watching: %w", err)
	}
	defer func() {
		stream.Stop()
		cancel()
		for range stream.ResultChan() { // until its goroutine has ended
		}
	}()
	return o.events(within, stream)
}

func (o *object) events(ctx context.Context, stream watch.Interface) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-o.again:
			return errAskedAgain
		case event, ok := <-stream.ResultChan():
			if !ok {
				return nil
			}
			if err := o.event(ctx, event.Type, event.Object); err != nil {
				return err
			}
		}
	}
}

func (o *object) event(ctx context.Context, kind watch.EventType, of runtime.Object) error {
	changed, ok := of.(metav1.Object)
	if kind != watch.Error && ok {
		o.reach(changed.GetResourceVersion())
	}
	switch {
	case kind == watch.Error:
		o.stumble()
		return apierrors.FromObject(of)
	case kind == watch.Bookmark || !ok || changed.GetName() != o.name:
	case kind == watch.Deleted:
		o.found(ctx, seen{})
	default:
		o.found(ctx, seen{object: changed})
	}
	return nil
}
