package controller

import (
	"errors"
	"maps"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kubelet-supervisor/kubelet-supervisor/internal/bounded"
)

// refusal is that the API server does not take an object: for want of a quota or a namespace, by a webhook, or because it is in trouble itself.
// Who needs the object waits, and all else goes on.
type refusal struct {
	words string
	times int           // one after the other
	at    time.Duration // the last time
}

const (
	// refusedFirst and refusedFor are when something refused is tried again: soon at first, for that may be over in a moment, and then seldom.
	refusedFirst = time.Second
	refusedFor   = 10 * time.Second
	refusalLimit = 512
)

// refusals are what was refused, by name.
type refusals map[string]refusal

// due is when it is tried again.
func (r refusal) due() time.Duration {
	return r.at + min(refusedFor, refusedFirst<<min(r.times-1, 8))
}

// standing are those that it is too soon to try again.
func (all refusals) standing(now time.Duration) map[string]string {
	standing := map[string]string{}
	for name, r := range all {
		if now < r.due() {
			standing[name] = r.words
		}
	}
	return standing
}

// next is in how long the first of them is tried again; 0 is never.
func (all refusals) next(now time.Duration) (in time.Duration) {
	for _, r := range all {
		in = sooner(in, max(time.Millisecond, r.due()-now))
	}
	return in
}

// note takes in one more refusal. new: its words have not been heard before.
func (all refusals) note(name string, err error, now time.Duration) (isNew bool) {
	words := bounded.Text(err.Error(), refusalLimit)
	isNew = all[name].words != words
	all[name] = refusal{words, all[name].times + 1, now}
	return isNew
}

// tell adds those that do not stand. Whether there were any.
func (all refusals) tell(standing map[string]string) (more bool) {
	for name, r := range all {
		if standing[name] == "" {
			standing[name], more = r.words, true
		}
	}
	return more
}

// forget leaves those that stand.
func (all refusals) forget(standing map[string]string) {
	maps.DeleteFunc(all, func(name string, _ refusal) bool { return standing[name] == "" })
}

// answered: it is the API server's own word.
func answered(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status)
}
