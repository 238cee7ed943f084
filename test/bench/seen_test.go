package main

import (
	"fmt"
	"maps"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestHealthSumsTheTimesInWhichItWasDown(t *testing.T) {
	at := func(ms int) time.Time { return time.UnixMilli(int64(ms)) }
	h := &health{changes: []healthChange{{at(0), false}}}
	for _, poll := range []struct {
		begin, end int
		healthy    bool
	}{{5, 6, false}, {10, 11, true}, {15, 16, true}, {20, 21, false}, {25, 26, false}, {30, 31, true}, {40, 41, false}, {50, 52, true}} {
		h.saw(at(poll.begin), at(poll.end), poll.healthy)
	}
	for begin, expected := range map[int]int{0: 11 + 11 + 12, 11: 11 + 12, 25: 6 + 12, 52: 0} {
		if down := h.down(at(begin)); down != time.Duration(expected)*time.Millisecond {
			t.Errorf("down since %d is %s, expected was %d ms", begin, down, expected)
		}
	}
	if since := h.changesSince(at(31)); len(since) != 2 || since[0].healthy || !since[1].healthy {
		t.Errorf("the changes since 31 are %v", since)
	}
}

func TestTrafficIsCountedByProgram(t *testing.T) {
	const user = "system:node:n1"
	var log strings.Builder
	from := 0
	event := func(second int, id, stage, verb, agent, user string) {
		if second <= 10 {
			defer func() { from = log.Len() }()
		}
		fmt.Fprintf(&log, `{"auditID":%q,"stage":%q,"verb":%q,"userAgent":%q,"user":{"username":%q},"objectRef":{"resource":"things","subresource":"status"}}`+"\n",
			id, stage, verb, agent, user)
	}
	event(1, "a", "ResponseStarted", "watch", "kubelet-supervisor", user) // before, and still open
	event(1, "b", "ResponseStarted", "watch", "kubelet-supervisor", user) // before, and ended
	event(2, "c", "ResponseComplete", "get", "kubelet-supervisor", user)  // before
	event(11, "b", "ResponseComplete", "watch", "kubelet-supervisor", user)
	event(12, "d", "ResponseStarted", "watch", "kubelet-supervisor", user)
	event(13, "e", "ResponseComplete", "get", "kubelet-supervisor", user)
	event(14, "f", "ResponseComplete", "patch", "kubelet-supervisor", user)
	event(14, "g", "ResponseComplete", "update", "kubelet/v1.36.3 (linux/amd64)", user)
	event(15, "h", "ResponseComplete", "patch", "kubelet-supervisor", "admin") // the benchmark's own
	log.WriteString(`{"auditID":"i","sta`)                                     // being written
	for own, expected := range map[bool]traffic{
		true:  {requests: 3, writes: 1, watches: 2, kinds: map[string]int{"get things/status": 1, "patch things/status": 1, "watch things/status": 1}},
		false: {requests: 1, writes: 1, kinds: map[string]int{"update things/status": 1}},
	} {
		if seen, err := trafficOf(log.String(), int64(from), own); err != nil || !reflect.DeepEqual(seen, expected) {
			t.Errorf("own %t: %+v, %v; expected was %+v", own, seen, err, expected)
		}
	}
	if _, err := trafficOf("nonsense\n", 0, true); err == nil {
		t.Error("a line that is no event is not told")
	}
}

func TestBytesAreThoseOfAllConnectionsOfAProcess(t *testing.T) {
	seen := kilobytesIn(`ESTAB 0 0 127.0.0.1:40000 127.0.0.1:6443 users:(("kubelet",pid=12,fd=9)) timer:(keepalive,1sec,0) ino:1 sk:1 cubic rto:201 bytes_sent:1500 bytes_acked:1501 bytes_received:500 segs_out:9
ESTAB 0 0 127.0.0.1:40002 127.0.0.1:6443 users:(("kubelet",pid=12,fd=10)) cubic bytes_sent:1000 bytes_acked:1001 bytes_received:3000
ESTAB 0 0 127.0.0.1:40004 127.0.0.1:6443 users:(("kubelet-supervi",pid=7,fd=10)) cubic bytes_sent:250 bytes_acked:251 bytes_received:250
TIME-WAIT 0 0 127.0.0.1:40006 127.0.0.1:6443
`)
	if !maps.Equal(seen, map[int]float64{12: 6, 7: 0.5}) {
		t.Errorf("seen: %v", seen)
	}
}

func TestTraceIsInTheOrderOfTime(t *testing.T) {
	began := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	at := func(ms int) time.Time { return began.Add(time.Duration(ms) * time.Millisecond) }
	log := `I0101 00:00:00.000000 kubelet's own
{"level":"info","ts":"2026-01-01T00:00:00.090+0000","msg":"pre-flight"}
{"level":"info","ts":"2026-01-01T00:00:00.091+0000","msg":"Kubelet restarting to use kube-system/a"}
{"level":"info","ts":"2026-01-01T00:00:00.091+0000","msg":"stopping the kubelet"}
{"level":"info","ts":"2026-01-01T00:00:00.100+0000","msg":"starting the kubelet with kube-system/a/kubelet (UID 1, resourceVersion 2)"}
{"level":"info","ts":"2026-01-01T00:00:01.000+0000","msg":"after the end"}
`
	trace := trace{began: began, answered: at(5), ended: at(400), end: "the Node names it active", lines: ownLines(log), down: []healthChange{{at(95), false}, {at(380), true}}}
	expected := []Phase{
		{"the API server has answered the PATCH of the Node", 5, 5}, {"log: pre-flight's verdict", 90, 85}, {"log: stopping the kubelet", 91, 1},
		{"healthz, polled: does not answer", 95, 4}, {"log: starting the kubelet with kube-system/a/kubelet", 100, 5}, {"healthz, polled: answers", 380, 280}, {"the Node names it active", 400, 20},
	}
	if seen := trace.phases(); fmt.Sprint(seen) != fmt.Sprint(expected) {
		t.Errorf("seen:\n%v\nexpected was:\n%v", seen, expected)
	}
}
