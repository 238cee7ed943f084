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

// objection is the way in which the API server does not accept the PATCH of a Node.
type objection int

const (
	// refusesPatch means that it refuses the PATCH.
	refusesPatch objection = iota
	// altersPatch means that it accepts the PATCH, and stores something else.
	altersPatch
	// failsPatch means that it fails for this Node, for example because a webhook is not available.
	failsPatch
)

// denial means that PATCHes of one Node are not accepted. The other nodes go on.
type denial struct {
	objection objection
	message   string
	times     int // in a row
	at        time.Duration
}

const (
	// deniedFirst is the first pause. It doubles with each denial, up to deniedFor.
	deniedFirst = 5 * time.Second
	deniedFor   = 5 * time.Minute
	// A failure may be over in a moment. The third one in a row counts against the Node.
	failures     = 3
	failureFirst = time.Second
	failedFirst  = time.Minute
)

// until is when the Node is tried again.
func (d denial) until() time.Duration {
	first, times := deniedFirst, d.times
	if d.objection == failsPatch {
		if first = failureFirst; times >= failures {
			first, times = failedFirst, times-failures+1
		}
	}
	return d.at + min(deniedFor, first<<min(times-1, 8))
}

// counts reports whether the Node is denied, and not only delayed for a moment.
func (d denial) counts() bool { return d.objection != failsPatch || d.times >= failures }

// denials are the denials of all Nodes.
type denials struct {
	all    map[types.UID]denial
	looked time.Duration // when a decision last read them
}

func newDenials() denials { return denials{all: map[types.UID]denial{}} }

// look returns the messages of the denials for a decision. A denial that was not repeated for long after its time
// is forgotten, because the Node no longer has to be patched, or is deleted.
func (d *denials) look(now time.Duration) map[types.UID]string {
	messages := make(map[types.UID]string, len(d.all))
	for uid, one := range d.all {
		switch until := one.until(); {
		case now < until && one.counts():
			messages[uid] = one.message
		case now-until > 2*deniedFor:
			delete(d.all, uid)
		}
	}
	d.looked = now
	return messages
}

// rests reports whether the Node is not tried again yet.
func (d *denials) rests(uid types.UID, now time.Duration) bool {
	one, is := d.all[uid]
	return is && now < one.until()
}

// next is in how long the first Node is tried again that the last decision had as denied; 0 is never.
func (d *denials) next(now time.Duration) (in time.Duration) {
	for _, one := range d.all {
		if until := one.until(); until > d.looked {
			in = sooner(in, max(time.Millisecond, until-now))
		}
	}
	return in
}

func (d *denials) note(uid types.UID, objection objection, message string, now time.Duration) denial {
	one := denial{objection, message, d.all[uid].times + 1, now} // of any kind, because two webhooks may object in turn
	d.all[uid] = one
	return one
}

// taken is called for a Node whose PATCH was accepted. If a failure of this Node is over, it may be over for others as well, so these are forgotten too.
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

// alter reports whether admission has changed a PATCH lately, so that a dry run comes before the next ones.
func (d *denials) alter() bool {
	for _, one := range d.all {
		if one.objection == altersPatch {
			return true
		}
	}
	return false
}

// altered is the error for an object that the API server accepted, and stored as another one.
type altered struct{ message string }

func (a altered) Error() string { return a.message }

// fails reports whether the API server failed for this object, or did not answer within the time of the request, as happens when a webhook hangs.
func fails(ctx context.Context, err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Code >= http.StatusInternalServerError ||
		errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil
}

// deny records that a Node is not patched for a while, in the log and as an Event. The other nodes go on.
func (p *patcher) deny(w *rollout.Write, objection objection, err error) {
	now := p.monotonic()
	d := p.denied.note(w.UID, objection, bounded.Text(bounded.Line(err.Error()), refusalLimit), now)
	p.log.Info("the API server refuses to patch a Node", "pool", w.Pool, "node", w.Node, "message", d.message, "times", d.times,
		"again", (d.until() - now).String())
	if read := p.nodes.read[w.UID]; read != nil && d.counts() {
		p.events.Event(read.object, corev1.EventTypeWarning, rollout.EventPoolRefused,
			bounded.Text(fmt.Sprintf("pool %s cannot write to the Node: %s", w.Pool, d.message), refusalLimit))
	}
}
