package status

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
	corev1 "k8s.io/api/core/v1"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
)

// logs is an option, and the lines that come of it.
func logs() (func(*Options), *observer.ObservedLogs) {
	core, lines := observer.New(zapcore.DebugLevel)
	return func(o *Options) { o.Logger = zap.New(core) }, lines
}

// prepare lets a publisher send a request of each kind next.
var prepare = map[string]func(t *testing.T, p *publishing){
	"get": func(_ *testing.T, p *publishing) { p.Offer(report("True", "Active", "")) },
	"patch": func(t *testing.T, p *publishing) {
		p.Offer(report("True", "Active", ""))
		p.expect(t, "get patch")
		p.Offer(report("True", "InTrial", ""))
	},
	"post": func(t *testing.T, p *publishing) {
		p.Offer(report("True", "Active", ""))
		p.expect(t, "get patch")
		p.Event(Event{time.Now(), corev1.EventTypeNormal, "Reason", "message"})
	},
}

// A request that is refused for now is made again by the publisher, with its growing pauses, and not by its client beside that.
func TestOneRequestATry(t *testing.T) {
	for verb, prepare := range prepare {
		t.Run(verb, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api := newFakeAPI()
				api.again = "1"
				api.after = func(done string) {
					if verb == "get" || done == "patch" {
						api.after, api.fail[verb] = nil, code(500)
					}
				}
				if verb == "get" {
					api.after, api.fail[verb] = nil, code(500)
				}
				p := publish(t, api)
				prepare(t, p)
				elapse(2500 * time.Millisecond)
				if n := strings.Count(api.asked(), verb); n != 2 { // at 0 and 1 s; the next one is at 3 s
					t.Errorf("%d requests", n)
				}
			})
		})
	}
}

// A request that gets no answer is given up after 10 s.
func TestARequestWithoutAnAnswer(t *testing.T) {
	for verb, prepare := range prepare {
		t.Run(verb, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api := newFakeAPI()
				api.silent = map[string]bool{}
				api.after = func(done string) { api.silent[verb] = done == "patch" }
				api.silent[verb] = verb == "get"
				logger, lines := logs()
				p := publish(t, api, logger)
				prepare(t, p)
				elapse(10*time.Second - time.Millisecond)
				if lines.Len() > 0 {
					t.Errorf("it was given up: %v", lines.All())
				}
				elapse(time.Millisecond)
				if lines.Len() != 1 {
					t.Errorf("it was not given up: %v", lines.All())
				}
			})
		})
	}
}

// The end of the supervisor is no failure.
func TestARequestAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newFakeAPI()
		api.silent = map[string]bool{"get": true}
		logger, lines := logs()
		p := publish(t, api, logger)
		p.Offer(report("True", "Active", ""))
		p.expect(t, "get")
		api.change(func() { clear(api.silent) })
		p.stop()
		p.expect(t, "get patch")
		if lines.Len() > 0 {
			t.Errorf("log lines: %v", lines.All())
		}
	})
}

// While nothing is wrong, nothing is logged.
func TestAQuietHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logger, lines := logs()
		p := publish(t, newFakeAPI(), logger, patient)
		for version := range 30 {
			p.Offer(moved(version))
			elapse(2 * time.Minute)
		}
		if lines.Len() > 0 {
			t.Errorf("log lines: %v", lines.All())
		}
	})
}

// A publisher that has nobody to tell needs a client and a name.
func TestNobodyToTell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newFakeAPI()
		p := NewPublisher(Options{Client: api.client(t), NodeName: "n1"})
		ctx, cancel := context.WithCancel(t.Context())
		p.Offer(report("True", "Active", ""))
		cancel()
		if err := p.Run(ctx); err != nil || nodev1.ConditionOf(api.node) == nil {
			t.Errorf("%v, and the Node shows %v", err, api.node.Status.Conditions)
		}
	})
}

// Each part of a report is news by itself.
func TestNews(t *testing.T) {
	for name, change := range map[string]func(*Report){
		"status":        func(r *Report) { r.Condition.Status = "Unknown" },
		"reason":        func(r *Report) { r.Condition.Reason = "InTrial" },
		"message":       func(r *Report) { r.Condition.Message = "other words" },
		"assignment":    func(r *Report) { other := "ns/b/kubelet"; r.Observed = &other },
		"configuration": func(r *Report) { r.Config.Assigned = source("b") },
		"retry":         func(r *Report) { r.Status.Retry = "pool/hash/1" },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := publish(t, newFakeAPI())
				p.Offer(report("True", "Active", "ns/a/kubelet"))
				p.expect(t, "get patch")
				next := report("True", "Active", "ns/a/kubelet")
				change(&next)
				p.Offer(next)
				p.expect(t, "patch")
				p.Offer(next)
				p.expect(t, "")
			})
		})
	}
}

// A message of any length is shown as one line that the API takes.
func TestALongMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newFakeAPI()
		p := publish(t, api)
		r := report("False", "Refused", "")
		r.Condition.Message = strings.Repeat("much\n", 1000)
		p.Offer(r)
		p.expect(t, "get patch")
		if got := nodev1.ConditionOf(api.node).Message; len(got) > MaxMessage || strings.Contains(got, "\n") {
			t.Errorf("%d bytes: %q", len(got), got)
		}
	})
}
