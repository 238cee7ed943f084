//go:build linux

package supervisor

import (
	"context"
	"errors"
	"time"

	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/core"
	configsync "github.com/kubelet-supervisor/kubelet-supervisor/sync"
)

// noNode stands for the uid of a Node that does not exist.
const noNode = "none"

// checkpointRetry is the wait before a payload that could not be written is tried again.
const checkpointRetry = 10 * time.Second

// rewriteAfter keeps the rewriting of checkpoints that vanish again and again from spinning.
const rewriteAfter = time.Second

// editPause is the least between two checkpoints of one assignment: a ConfigMap that is edited without end does not keep the disk busy.
const editPause = time.Second

// receive makes payloads durable before the loop hears of them, and tells it of everything else at once. A payload that cannot be
// written is tried again until a newer update takes its place. recreated is called when the name stands for another Node.
func (a *apiSession) receive(ctx context.Context, updates <-chan configsync.Update, recreated func()) {
	var update configsync.Update
	var retry <-chan time.Time
	var before received
	nodeUID, retried := "", ""
	for {
		select {
		case update = <-updates:
			if wait := before.pause(update); wait > 0 && a.EditSpread > 0 {
				retry = time.After(wait)
				continue
			}
		case <-a.payloads.rewrite:
			retry = time.After(rewriteAfter)
			continue
		case <-retry:
			if update.Source == nil {
				continue
			}
		case <-ctx.Done():
			return
		}
		if retry = nil; update.NodeGone {
			nodeUID = noNode
			a.send(ctx, core.NodeGone{})
			continue
		}
		if update.NodeUID != "" { // it is unknown while the Node cannot be read
			if nodeUID != "" && update.NodeUID != nodeUID { // also a Node that has just come: the publisher need not wait for its next try
				recreated()
			}
			nodeUID = update.NodeUID
		}
		if update.Retry != "" && update.Retry != retried {
			retried = update.Retry
			a.send(ctx, core.Retry{Value: retried})
			a.reconsider() // a download that waits for its next try is tried now
		}
		if before.at.IsZero() || update.Consent != before.Consent { // what was said in an earlier session may no longer hold
			a.send(ctx, core.Consented{Value: update.Consent})
		}
		before = received{update, time.Now()}
		event, again := a.eventOf(update)
		a.send(ctx, event)
		if again {
			retry = time.After(checkpointRetry)
		}
	}
}

// received is an update that was taken.
type received struct {
	configsync.Update
	at time.Time
}

// pause is how long an update has to wait that is an edit and nothing else; zero = it does not.
func (r received) pause(next configsync.Update) time.Duration {
	if r.Source == nil || next.Source == nil || next.Text != r.Text || next.NodeUID != r.NodeUID || next.Retry != r.Retry ||
		next.Consent != r.Consent {
		return 0
	}
	return editPause - time.Since(r.at)
}

// eventOf returns the loop's event; again asks for another try later.
func (a *apiSession) eventOf(update configsync.Update) (event core.Event, again bool) {
	switch {
	case update.Problem != nil:
		p := update.Problem
		return core.SyncFailed{Problem: core.Problem{Malformed: p.Malformed, Error: p.Error, Words: p.Words}, Text: update.Text}, false
	case update.Source == nil:
		return core.Cleared{Text: update.Text, NodeUID: update.NodeUID}, false
	}
	version, err := a.payloads.keepInTime(*update.Source, update.Payload)
	if err == nil {
		return core.Assigned{Version: version, Text: update.Text, NodeUID: update.NodeUID, Shadowed: update.Shadowed,
			Download: downloadTime(update)}, false
	}
	problem := core.Problem{Error: "failed to sync: internal failure, see Kubelet log for details",
		Words: "the configuration cannot be written to the state folder: " + err.Error()}
	var fault *kubeletconfig.BaseError
	if errors.As(err, &fault) {
		problem.OfNode, problem.Words = true, "the layers cannot be laid over the local configuration: "+fault.Words
	}
	return core.SyncFailed{Problem: problem, Text: update.Text}, true
}

// downloadTime is how long it took until the payload was on the disk; zero where that is not known.
func downloadTime(update configsync.Update) time.Duration {
	if update.Asked.IsZero() {
		return 0
	}
	return max(0, time.Since(update.Asked))
}

// replace puts a value into a channel of one place, instead of one that was not taken yet.
func replace[T any](box chan T, value T) {
	for {
		select {
		case box <- value:
			return
		default:
		}
		select {
		case <-box:
		default:
		}
	}
}
