package controller

import (
	"net/http"
	"sync"
	"time"
)

// serverClock tells the API server's time, by the Date of its newest answer.
type serverClock struct {
	monotonic func() time.Duration

	mutex sync.Mutex
	date  time.Time
	heard time.Duration
}

// dated is a client's transport that a clock is set by.
type dated struct {
	next  http.RoundTripper
	clock *serverClock
}

// RoundTrip reads the Date of the answer.
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

// now is the zero time as long as there was no answer.
func (c *serverClock) now() time.Time {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.date.IsZero() {
		return c.date
	}
	return c.date.Add(c.monotonic() - c.heard).Truncate(time.Second)
}
