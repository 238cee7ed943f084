package sync

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v4"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

const (
	pollPeriod = 60 * time.Second
	// pollsPerTry is how often an object is polled before watching it is tried again: permissions may have been added.
	pollsPerTry = 10
	// A watch ends after a random time in between, so that a dead connection cannot go unnoticed for long.
	minWatch, maxWatch = 5 * time.Minute, 10 * time.Minute
	// resumeWithin is how long a watch that broke waits at most before it goes on: the watches of all nodes break together.
	resumeWithin = 5 * time.Second
	// watchGrace is how much later than asked for the API server may end a watch before it counts as dead.
	watchGrace = 30 * time.Second
	// steadyWatch is how long a watch must last to count as a success; one that ends sooner is repeated with backoff.
	steadyWatch = 10 * time.Second
	// doubtFor is how long Forbidden is not believed of what was allowed before: an API server that has just started says so until its
	// authorizers have read the roles, and to all nodes at once.
	doubtFor = 30 * time.Second
)

const onlyMetadata = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"

// object follows one object of the API by its name: LIST, then watch from there, and watch on from what was seen last. A LIST comes
// again only where the API server cannot go on from there.
type object struct {
	client    rest.Interface
	resource  string // plural, as in the path
	namespace string // "" for Nodes
	name      string
	// needsWhole is asked after each LIST with what was found, nil for nothing: if false, metadata is watched only.
	needsWhole func(listed metav1.Object) bool
	// found receives what was seen, in order. It may block; it returns when ctx ends.
	found   func(ctx context.Context, seen seen)
	again   chan struct{} // capacity 1: LIST at once
	reached *atomic.Bool
	logger  *zap.Logger

	mayList, mayWatch grant
	polled            bool
	place
}

// grant is what is known of a permission.
type grant struct {
	had     bool
	missing time.Time // since when; zero while it is there
}

// lost reports whether an answer says that the permission is not there. Of one that was there it has to be said for a while.
func (g *grant) lost(answer error) bool {
	if !apierrors.IsForbidden(answer) {
		g.had, g.missing = g.had || answer == nil || errors.Is(answer, errAskedAgain), time.Time{}
		return false
	}
	if g.missing.IsZero() {
		g.missing = time.Now()
	}
	if g.had && time.Since(g.missing) < doubtFor {
		return false
	}
	g.had = false
	return true
}

// seen is one look at an object: it, or nil when it does not exist, or the failure to look.
type seen struct {
	object metav1.Object // *corev1.Node, *corev1.ConfigMap or *metav1.PartialObjectMetadata
	err    error
}

// newBackOff gives the delays between API requests that fail: 1 s doubling to 2 min, ±20 %, for ever.
func newBackOff() *backoff.ExponentialBackOff {
	return backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(time.Second), backoff.WithMultiplier(2), backoff.WithMaxInterval(2*time.Minute),
		backoff.WithRandomizationFactor(0.2), backoff.WithMaxElapsedTime(0))
}

// run follows the object until ctx ends.
func (o *object) run(ctx context.Context) {
	retry := newBackOff()
	for ctx.Err() == nil {
		steady, err := o.follow(ctx)
		if steady {
			retry.Reset()
		}
		if ctx.Err() != nil || steady && err == nil {
			continue
		}
		delay := retry.NextBackOff()
		if seconds, ok := apierrors.SuggestsClientDelay(err); ok {
			delay = min(max(delay, time.Duration(seconds)*time.Second), retry.MaxInterval)
		}
		if err != nil {
			o.logger.Warn("reading the API failed", zap.String("resource", o.resource), zap.String("namespace", o.namespace),
				zap.String("name", o.name), zap.Error(err), zap.Duration("nextTry", delay))
		}
		if o.wait(ctx, delay) {
			retry.Reset()
			o.version = ""
		}
	}
}

// wait pauses for d, or until it is asked to look again, and reports whether it was asked.
func (o *object) wait(ctx context.Context, d time.Duration) (asked bool) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	case <-o.again:
		return true
	}
	return false
}

// follow looks at the object until something ends that. steady reports that it went well before, so that the next look need
// not be put off; err why it ended, nil where that is how watches end.
func (o *object) follow(ctx context.Context) (steady bool, err error) {
	resumes := o.version != ""
	if !resumes {
		listed, version, err := o.list(ctx)
		switch {
		case o.mayList.lost(err):
			return o.poll(ctx, o.get)
		case apierrors.IsForbidden(err):
			return false, err
		}
		if o.found(ctx, seen{listed, err}); err != nil {
			return false, err
		}
		o.version, o.whole = version, o.needsWhole(listed)
	}
	length := (minWatch + rand.N(maxWatch-minWatch)).Truncate(time.Second) // timeoutSeconds is whole; a watch that ends then was not cut short
	began := time.Now()
	err = o.watch(ctx, length)
	lasted := time.Since(began)
	if !resumable(err) {
		o.version = ""
	}
	if o.mayWatch.lost(err) {
		o.version = ""
		if o.wait(ctx, pollPeriod) {
			return true, nil
		}
		return o.poll(ctx, o.list)
	}
	if resumes && o.version == "" {
		return true, nil // it takes a LIST: the place was too old, or is of another etcd, or it was asked for
	}
	steady = errors.Is(err, errAskedAgain) || lasted >= steadyWatch
	if steady && lasted < length && o.version != "" && o.wait(ctx, rand.N(resumeWithin)) {
		o.version = ""
	}
	return steady, ended(err)
}

// poll reads the object at intervals, if it may not be watched. The first time it tries again soon: an API server that has just
// started knows some permissions before others.
func (o *object) poll(ctx context.Context, look func(context.Context) (metav1.Object, string, error)) (steady bool, err error) {
	polls := pollsPerTry
	if !o.polled {
		o.polled, polls = true, 1
	}
	for range polls {
		looked, _, err := look(ctx)
		o.found(ctx, seen{looked, err})
		if err != nil {
			return steady, err
		}
		steady = true
		if o.wait(ctx, pollPeriod) || ctx.Err() != nil {
			break
		}
	}
	return steady, nil
}

func (o *object) request() *rest.Request {
	return o.client.Get().NamespaceIfScoped(o.namespace, o.namespace != "").Resource(o.resource).MaxRetries(0)
}

// note remembers whether the API server was reached; a request that we gave up ourselves says nothing of that.
func (o *object) note(ctx context.Context, err error) {
	if ctx.Err() == nil {
		o.reached.Store(answered(err))
	}
}

// get reads the object; nil if it does not exist. The version is unused.
func (o *object) get(ctx context.Context) (metav1.Object, string, error) {
	answer, err := o.request().Name(o.name).Timeout(RequestTimeout).Do(ctx).Get()
	o.note(ctx, err)
	if apierrors.IsNotFound(err) {
		return nil, "", nil
	}
	if err != nil {
		return nil, "", err
	}
	found, ok := answer.(metav1.Object)
	if !ok {
		return nil, "", fmt.Errorf("the API server gave a %T instead of %s", answer, o.resource)
	}
	return found, found.GetResourceVersion(), nil
}

// list reads the object, nil if it does not exist, and the version of the collection to watch from.
func (o *object) list(ctx context.Context) (metav1.Object, string, error) {
	answer, err := o.request().Param("fieldSelector", "metadata.name="+o.name).Timeout(RequestTimeout).Do(ctx).Get()
	o.note(ctx, err)
	if err != nil {
		return nil, "", err
	}
	switch list := answer.(type) {
	case *corev1.NodeList:
		return named(o.name, list.Items, func(n *corev1.Node) metav1.Object { return n }), list.ResourceVersion, nil
	case *corev1.ConfigMapList:
		return named(o.name, list.Items, func(c *corev1.ConfigMap) metav1.Object { return c }), list.ResourceVersion, nil
	}
	return nil, "", fmt.Errorf("the API server gave a %T instead of a list of %s", answer, o.resource)
}

func named[T any](name string, items []T, object func(*T) metav1.Object) metav1.Object {
	for i := range items {
		if item := object(&items[i]); item.GetName() == name {
			return item
		}
	}
	return nil
}
