//go:build linux

package kubelet

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// How the child's health is asked (docs/reference/contract.md, "Times").
const (
	healthPollFirst = 10 * time.Millisecond // at first, for every look that is not made adds to the time of a change
	healthFirstTime = 3 * time.Second       // that long
	healthPollNext  = 50 * time.Millisecond // until it is healthy, or the start timeout is over
	healthPollSlow  = time.Second           // from then on
	healthPollLater = 10 * time.Second
	healthTimeout   = 5 * time.Second
	notifyAlive     = 10 * time.Second // without a healthz port: how long after READY=1 it counts as healthy
)

// healthAccount adds up the time that a child was healthy.
type healthAccount struct {
	mu    sync.Mutex
	since time.Time // zero while unhealthy
	sum   time.Duration
}

func (h *healthAccount) turn(healthy bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	if !h.since.IsZero() {
		h.sum += now.Sub(h.since)
	}
	if h.since = (time.Time{}); healthy {
		h.since = now
	}
}

// sofar changes nothing.
func (h *healthAccount) sofar() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.since.IsZero() {
		return h.sum
	}
	return h.sum + time.Since(h.since)
}

// ever reports whether it was healthy at any time.
func (h *healthAccount) ever() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.sum > 0 || !h.since.IsZero()
}

func (h *healthAccount) total() time.Duration {
	h.turn(false)
	return h.sum
}

// watchHealth reports changes in the child's health until ctx ends. It looks at fixed times, and when the kubelet says READY=1, which comes
// with its healthz.
func (c *Child) watchHealth(ctx context.Context, tell func(Event)) {
	client := newHealthClient()
	healthy, words := false, ""
	ready := c.notify.readiness(c.command.Process.Pid)
	for wait := time.Duration(0); ; {
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		case <-ready:
			ready = nil // it is said once
		}
		err := c.probe(ctx, client)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil && !healthy:
			healthy, words = true, ""
			c.healthy.turn(true)
			c.lookAtUse(true, tell)
			tell(Healthy{})
		case err != nil && err.Error() != words: // "" while it is healthy
			healthy, words = false, err.Error()
			c.healthy.turn(false)
			tell(Unhealthy{Words: words})
		}
		if !healthy { // it may listen elsewhere, because it runs with something else
			c.lookAtUse(false, tell)
		}
		wait = healthPoll(healthy, time.Since(c.started), c.launcher.StartTimeout)
	}
}

// newHealthClient follows no redirect: the kubelet answers 200 itself, or it is not healthy.
func newHealthClient() *http.Client {
	return &http.Client{Timeout: healthTimeout, Transport: &http.Transport{DisableKeepAlives: true, Proxy: nil},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// healthPoll is the wait before the next look at a kubelet of that age.
func healthPoll(healthy bool, age, startTimeout time.Duration) time.Duration {
	switch {
	case healthy:
		return healthPollLater
	case age > startTimeout:
		return healthPollSlow
	case age > healthFirstTime:
		return healthPollNext
	}
	return healthPollFirst
}

// probe asks the child once. A healthz answer of another process proves nothing: the child has to own the socket.
func (c *Child) probe(ctx context.Context, client *http.Client) error {
	if c.endpoints.ReadinessByNotify {
		return c.probeNotify()
	}
	address := c.endpoints.HealthzAddress
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/healthz", nil)
	if err != nil {
		return fmt.Errorf("asking healthz: %w", err)
	}
	answer, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("healthz at %s does not answer", address)
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("healthz at %s answers %s", address, answer.Status)
	}
	return c.listener.owned(c.command.Process.Pid, address)
}

func (c *Child) probeNotify() error {
	if !c.notify.notes(c.command.Process.Pid).Ready {
		return fmt.Errorf("it has no healthz port and has not said READY=1 yet")
	}
	if time.Since(c.started) < notifyAlive {
		return fmt.Errorf("it has no healthz port and has not been alive for %s yet", notifyAlive)
	}
	return nil
}
