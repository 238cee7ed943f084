package supervisor

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/kubelet-supervisor/kubelet-supervisor/decide"
)

// How the child's health is asked (design.md, Times).
const (
	healthPollFirst = 50 * time.Millisecond // until it is healthy
	healthPollLater = 10 * time.Second
	healthTimeout   = 5 * time.Second
	notifyAlive     = 10 * time.Second // without a healthz port: how long after READY=1 it counts as healthy
)

// healthAccount adds up the time that a child was healthy.
type healthAccount struct {
	mu    sync.Mutex
	since time.Duration // 0 while unhealthy
	sum   time.Duration
}

func (h *healthAccount) turn(healthy bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := bootTime()
	if h.since > 0 {
		h.sum += now - h.since
	}
	if h.since = 0; healthy {
		h.since = now
	}
}

func (h *healthAccount) handOver() handedHealth {
	h.mu.Lock()
	defer h.mu.Unlock()
	return handedHealth{Since: h.since, Sum: h.sum}
}

func (h *healthAccount) total() time.Duration {
	h.turn(false)
	return h.sum
}

// watchHealth tells of changes in the child's health until ctx ends.
func (l *loop) watchHealth(ctx context.Context, child *process) {
	client := &http.Client{Timeout: healthTimeout, Transport: &http.Transport{DisableKeepAlives: true, Proxy: nil}}
	healthy, words := false, ""
	for wait := time.Duration(0); ; {
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		err := l.probe(ctx, client, child)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil && !healthy:
			healthy, words = true, ""
			child.healthy.turn(true)
			l.send(ctx, decide.Healthy{})
		case err != nil && (healthy || err.Error() != words):
			healthy, words = false, err.Error()
			child.healthy.turn(false)
			l.send(ctx, decide.Unhealthy{Words: words})
		}
		if wait = healthPollFirst; healthy {
			wait = healthPollLater
		}
	}
}

// probe asks the child once. A healthz that somebody else answers proves nothing: the child has to own the socket.
func (l *loop) probe(ctx context.Context, client *http.Client, child *process) error {
	if child.endpoints.ReadinessByNotify {
		return l.probeNotify(child)
	}
	address := child.endpoints.HealthzAddress
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/healthz", nil)
	if err != nil {
		return fmt.Errorf("asking healthz: %w", err)
	}
	answer, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("healthz at %s does not answer", address)
	}
	defer func() { _ = answer.Body.Close() }()
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, 4<<10))
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("healthz at %s answers %s", address, answer.Status)
	}
	return child.listener.owned(child.command.Process.Pid, address)
}

func (l *loop) probeNotify(child *process) error {
	socket := l.kubelets.notify
	if socket == nil || !socket.notes().Ready {
		return fmt.Errorf("it has no healthz port and has not said READY=1 yet")
	}
	if time.Since(child.started) < notifyAlive {
		return fmt.Errorf("it has no healthz port and has not been alive for %s yet", notifyAlive)
	}
	return nil
}
