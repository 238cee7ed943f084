//go:build linux

package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/cluster"
)

const (
	healthzURL    = "http://127.0.0.1:10248/healthz"
	healthzEvery  = 5 * time.Millisecond
	healthzWithin = time.Second
)

// A health is what polls of the kubelet's healthz saw, each by a new connection.
type health struct {
	mutex   sync.Mutex // guards what follows
	changes []healthChange
}

type healthChange struct {
	at      time.Time
	healthy bool
}

// watchHealth polls until ctx ends; wait returns when it has stopped. The kubelet is taken for unhealthy at first.
func watchHealth(ctx context.Context, c *cluster.Cluster) (h *health, wait func(), err error) {
	client, err := c.KubeletHTTP()
	if err != nil {
		return nil, nil, err
	}
	client.Timeout = healthzWithin
	h = &health{changes: []healthChange{{time.Now(), false}}}
	var polling sync.WaitGroup
	polling.Go(func() {
		ticker := time.NewTicker(healthzEvery)
		defer ticker.Stop()
		for ctx.Err() == nil {
			begin := time.Now()
			response, err := client.Get(healthzURL)
			if err == nil {
				_, err = io.Copy(io.Discard, response.Body)
				_ = response.Body.Close()
			}
			h.saw(begin, time.Now(), err == nil && response.StatusCode == http.StatusOK)
			select {
			case <-ticker.C:
			case <-ctx.Done():
			}
		}
	})
	return h, polling.Wait, nil
}

// saw notes a poll. The kubelet is unhealthy from the begin of the first poll that failed to the end of the first that did not.
func (h *health) saw(begin, end time.Time, healthy bool) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if h.changes[len(h.changes)-1].healthy == healthy {
		return
	}
	at := begin
	if healthy {
		at = end
	}
	h.changes = append(h.changes, healthChange{at, healthy})
}

// down tells for how long the kubelet was not healthy since begin.
func (h *health) down(begin time.Time) (total time.Duration) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	for i, change := range h.changes {
		end := time.Now()
		if i+1 < len(h.changes) {
			end = h.changes[i+1].at
		}
		from := change.at
		if from.Before(begin) {
			from = begin
		}
		if !change.healthy && end.After(from) {
			total += end.Sub(from)
		}
	}
	return total
}

// last is the newest change.
func (h *health) last() healthChange {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	return h.changes[len(h.changes)-1]
}

// awaitUp waits until the kubelet is healthy, and gives the time since when it is.
func (h *health) awaitUp(ctx context.Context) (since time.Time, err error) {
	err = await(ctx, "the kubelet is healthy", func() error {
		last := h.last()
		if since = last.at; !last.healthy {
			return fmt.Errorf("it is not since %s", last.at.Format(time.TimeOnly))
		}
		return nil
	})
	return since, err
}

// changesSince gives the changes that were seen since begin.
func (h *health) changesSince(begin time.Time) (changes []healthChange) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	for _, change := range h.changes {
		if change.at.After(begin) {
			changes = append(changes, change)
		}
	}
	return changes
}
