package controller

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kubelet-supervisor/kubelet-supervisor/internal/bounded"
)

// refusal is that the API server refuses an object: for lack of quota or a namespace, by a webhook, or because it fails itself. What needs the object
// waits, and everything else goes on.
type refusal struct {
	message string
	times   int           // in a row
	due     time.Duration // when it is tried again
	// altered means that the object would be stored, but changed. The cause is mostly a policy, which lasts longer.
	altered bool
}

const (
	// refusedFirst, refusedFor and alteredFor are the pauses before another attempt: short at first, because the cause may be over in a moment, and then
	// long.
	refusedFirst = time.Second
	refusedFor   = 10 * time.Second
	alteredFor   = 5 * time.Minute
	refusalLimit = 512
	// retries limits how many refused objects are tried again in one turn, and retryTime for how long. The others wait for the next turn.
	retries   = 8
	retryTime = 2 * time.Second
)

// refusals are the refused objects, by name. A refusal is forgotten when the object is accepted, and after a whole turn that has not needed it.
type refusals struct {
	// first is the pause after the first refusal. It doubles with each further one, up to most.
	first, most time.Duration
	monotonic   func() time.Duration
	log         logr.Logger

	all    map[string]refusal
	began  time.Duration   // when the turn began
	asked  map[string]bool // what the turn has needed
	tried  map[string]bool // what of that was tried
	budget int
}

func newRefusals(p parts, first, most time.Duration) *refusals {
	return &refusals{first: first, most: most, monotonic: p.monotonic, log: p.log, all: map[string]refusal{}}
}

// begin begins a turn.
func (r *refusals) begin() {
	r.began, r.asked, r.tried, r.budget = r.monotonic(), map[string]bool{}, map[string]bool{}, retries
}

// since is when an object was due; 0 if it was not refused. Those that have waited for longest are tried first.
func (r *refusals) since(name string) time.Duration {
	if refused, is := r.all[name]; is {
		return refused.due
	}
	return 0
}

// end ends a turn. Refusals that a whole turn has not needed are forgotten.
func (r *refusals) end(whole bool) {
	for name := range r.all {
		if whole && !r.asked[name] {
			delete(r.all, name)
		}
	}
}

// attempt is the making or the deletion of an object of a pool.
type attempt struct {
	refused    *refusals
	pool, name string
	do         func() error
}

func longestWaiting(a, b attempt) int {
	return cmp.Compare(a.refused.since(a.name), b.refused.since(b.name))
}

// try makes an attempt, once in a turn, unless it was refused a moment ago. news means that a refusal is new, or over. Only an error that is not an
// answer of the API server is returned, because it concerns all attempts.
func (r *refusals) try(ctx context.Context, a attempt) (news bool, err error) {
	if !r.tries(a.name) {
		return false, nil
	}
	switch err := a.do(); {
	case err == nil:
		return r.forget(a.name), nil
	case !answered(ctx, err):
		return false, err
	default:
		if news = r.note(a.name, err); news {
			r.log.Error(err, "the API server refuses the request, and the controller tries again later", "pool", a.pool)
		}
		return news, nil
	}
}

// tryAll is a turn that makes a few attempts, those first that have waited for longest. Attempts that are refused, or that hang, do not delay others
// for long: these come first in the next turn.
func (r *refusals) tryAll(ctx context.Context, attempts []attempt) (failure error) {
	r.begin()
	slices.SortStableFunc(attempts, longestWaiting)
	for _, a := range attempts {
		if len(r.tried) == patchesPerSecond || r.monotonic()-r.began > retryTime {
			return failure
		}
		_, err := r.try(ctx, a)
		failure = errors.Join(failure, err)
	}
	r.end(true)
	return failure
}

// tries reports whether an object is tried now: once in a turn, unless it was refused a moment ago.
func (r *refusals) tries(name string) bool {
	now := r.monotonic()
	r.asked[name] = true
	known, refused := r.all[name]
	if r.tried[name] || refused && (r.began < known.due || r.budget == 0 || now-r.began > retryTime) {
		return false
	}
	if refused {
		r.budget--
	}
	r.tried[name] = true
	return true
}

// note records one more refusal, and reports whether its message is new.
func (r *refusals) note(name string, err error) (news bool) {
	known, message, most := r.all[name], bounded.Text(bounded.Line(err.Error()), refusalLimit), r.most
	isAltered := errors.As(err, new(altered)) || errors.Is(err, errRemade) && known.altered
	if isAltered {
		most = max(most, alteredFor)
	}
	r.all[name] = refusal{message, known.times + 1, r.monotonic() + min(most, r.first<<min(known.times, 9)), isAltered}
	return known.message != message
}

// forget is called for an object that was accepted. It reports whether it had been refused.
func (r *refusals) forget(name string) bool {
	_, refused := r.all[name]
	delete(r.all, name)
	return refused
}

func (r *refusals) messages() map[string]string {
	messages := make(map[string]string, len(r.all))
	for name, refused := range r.all {
		messages[name] = refused.message
	}
	return messages
}

// next is in how long the first of them is tried again; 0 is never.
func (r *refusals) next() (in time.Duration) {
	now := r.monotonic()
	for _, refused := range r.all {
		in = sooner(in, max(time.Millisecond, refused.due-now))
	}
	return in
}

// answered reports whether an error concerns one object: it is an answer of the API server, or follows from one, or there was no answer within the time
// of the request, as happens when a webhook hangs.
func answered(ctx context.Context, err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) || errors.As(err, new(altered)) || errors.Is(err, errRemade) || errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil
}
