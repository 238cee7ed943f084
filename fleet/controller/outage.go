package controller

import (
	"net/http"
	"sync"
	"time"

	"github.com/go-logr/logr"
)

// outageSaid is how often an outage is logged.
const outageSaid = 30 * time.Second

// outage wraps a client's transport. It logs when the API server does not answer, and when it answers again, because the libraries retry without a
// message.
type outage struct {
	monotonic func() time.Duration
	log       logr.Logger

	mutex       sync.Mutex
	away        bool
	since, said time.Duration
}

func (o *outage) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		answer, err := next.RoundTrip(request)
		switch {
		case err == nil:
			o.answers()
		case request.Context().Err() == nil: // otherwise the request was cancelled here
			o.fails(err)
		}
		return answer, err
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip calls the function.
func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }

func (o *outage) fails(err error) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	now := o.monotonic()
	if !o.away {
		o.away, o.since = true, now
	} else if now-o.said < outageSaid {
		return
	}
	o.said = now
	o.log.Info("the API server does not answer, and the controller waits for it", "for", (now - o.since).Round(time.Second).String(), "error", err.Error())
}

func (o *outage) answers() {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	if o.away {
		o.away = false
		o.log.Info("the API server answers again", "after", (o.monotonic() - o.since).Round(time.Second).String())
	}
}
