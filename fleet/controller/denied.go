package controller

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/rollout"
	"github.com/kubelet-supervisor/kubelet-supervisor/internal/bounded"
)

// objection is how the API server does not take the PATCH of a Node.
type objection int

const (
	// refuses: it says no.
	refusesPatch objection = iota
	// alters: it says yes, and stores something else.
	altersPatch
	// fails: it is in trouble over this Node, such as a webhook that is away.
	failsPatch
)

// denial is that the PATCHes of one Node are not taken. The other nodes go on.
type denial struct {
	objection objection
	words     string
	times     int // one after the other
	at        time.Duration
}

const (
	// deniedFirst doubles with each time, to deniedFor.
	deniedFirst = 5 * time.Second
	deniedFor   = 5 * time.Minute
	// A failure may be over in a moment. The third one in a row is about the Node.
	failures     = 3
	failureFirst = time.Second
	failedFirst  = time.Minute
)

// until is when such a Node is tried again.
func (d denial) until() time.Duration {
	first, times := deniedFirst, d.times
	if d.objection == failsPatch {
		if first = failureFirst; times >= failures {
			first, times = failedFirst, times-failures+1
		}
	}
	return d.at + min(deniedFor, first<<min(times-1, 8))
}

// counts: the Node is denied, and not merely put off for a moment.
func (d denial) counts() bool { return d.objection != failsPatch || d.times >= failures }

// denials are those of all Nodes.
type denials struct {
	all    map[types.UID]denial
	looked time.Duration // when a decision last got them
}

func newDenials() denials { return denials{all: map[types.UID]denial{}} }

// look gives those for a decision. One that was not repeated for long after its time is forgotten: nobody needs that Node
// patched, or it is gone.
func (d *denials) look(now time.Duration) map[types.UID]string {
	words := make(map[types.UID]string, len(d.all))
	for uid, one := range d.all {
		switch until := one.until(); {
		case now < until && one.counts():
			words[uid] = one.words
		case now-until > 2*deniedFor:
			delete(d.all, uid)
		}
	}
	d.looked = now
	return words
}

// rests: it was put off for a moment, which is not over.
func (d *denials) rests(uid types.UID, now time.Duration) bool {
	one, is := d.all[uid]
	return is && now < one.until()
}

// next is in how long the first of those is tried again that the last decision got; 0 is never.
func (d *denials) next(now time.Duration) (in time.Duration) {
	for _, one := range d.all {
		if until := one.until(); until > d.looked {
			in = sooner(in, max(time.Millisecond, until-now))
		}
	}
	return in
}

func (d *denials) note(uid types.UID, objection objection, words string, now time.Duration) denial {
	one := denial{objection, words, d.all[uid].times + 1, now} // in whichever ways: two webhooks may take turns
	d.all[uid] = one
	return one
}

// taken forgets one. What has failed for this Node, and fails no more, may fail no more for others either.
func (d *denials) taken(uid types.UID) {
	one, is := d.all[uid]
	if !is {
		return
	}
	delete(d.all, uid)
	for other, o := range d.all {
		if one.objection == failsPatch && one.counts() && o.objection == failsPatch {
			delete(d.all, other)
		}
	}
}

// alter: admission has changed what was sent lately, so what is sent next is tried by a dry run first.
func (d *denials) alter() bool {
	for _, one := range d.all {
		if one.objection == altersPatch {
			return true
		}
	}
	return false
}

// altered is that the API server has said yes, and means another object.
type altered struct{ words string }

func (a altered) Error() string { return a.words }

// fails: the API server is in trouble over this object, or has no answer within the request's time, as where a webhook hangs.
func fails(ctx context.Context, err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Code >= http.StatusInternalServerError ||
		errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil
}

// deny names a Node that is not patched for a while. The others go on.
func (p *patcher) deny(w *rollout.Write, objection objection, err error) {
	now := p.monotonic()
	d := p.denied.note(w.UID, objection, bounded.Text(bounded.Line(err.Error()), refusalLimit), now)
	p.log.Info("the API server refuses to patch a Node", "pool", w.Pool, "node", w.Node, "words", d.words, "times", d.times,
		"again", (d.until() - now).String())
	if read := p.nodes.read[w.UID]; read != nil && d.counts() {
		p.events.Event(read.object, corev1.EventTypeWarning, rollout.EventPoolRefused,
			bounded.Text(fmt.Sprintf("pool %s cannot write to the Node: %s", w.Pool, d.words), refusalLimit))
	}
}
