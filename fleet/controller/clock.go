package controller

import (
	"net/http"
	"sync"
	"time"
)

// serverClock is the clock of the API server, from the Date of its newest answer.
type serverClock struct {
	monotonic func() time.Duration

	mutex sync.Mutex
	date  time.Time
	heard time.Duration
}

// dated wraps a client's transport, and sets a clock.
type dated struct {
	next  http.RoundTripper
	clock *serverClock
}

// RoundTrip sets the clock to the Date of the answer.
func (d dated) RoundTrip(request *http.Request) (*http.Response, error) {
	answer, err := d.next.RoundTrip(request)
	if err != nil {
		return answer, err
	}
	if date, err := http.ParseTime(answer.Header.Get("Date")); err == nil {
		d.clock.set(date)
	}
	return answer, nil
}

func (c *serverClock) set(date time.Time) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.date, c.heard = date, c.monotonic()
}

// now returns the zero time before the first answer.
func (c *serverClock) now() time.Time {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.date.IsZero() {
		return c.date
	}
	return c.date.Add(c.monotonic() - c.heard).Truncate(time.Second)
}
