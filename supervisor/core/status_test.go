package core

import (
	"testing"
	"time"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
)

// tells is what programs are told, as JSON; without what is the same all over the table, and times.
func (d *drive) tells() string {
	r, _ := Report(d.s)
	details := r.Details
	details.Features, details.Since, details.Change, details.Observed = nil, time.Time{}, nil, ""
	return details.Encode()
}

// What programs are told in each state of the condition.
func TestDetails(t *testing.T) {
	for name, row := range map[string]struct {
		when func(d *drive)
		want string
	}{
		"nothing":  {func(*drive) {}, `{"reason":"Local"}`},
		"a retry":  {func(d *drive) { d.hear(Retry{Value: "pool/hash/1"}) }, `{"reason":"Local","retry":"pool/hash/1"}`},
		"on trial": {func(d *drive) { d.assign("good").pass(90 * time.Second) }, `{"reason":"InTrial","content":{"assigned":"good","active":"good"},"trial":{"healthy":"1m29s","of":"10m0s","tries":1}}`},
		"proven": {func(d *drive) { d.version = "v1.36.3"; d.good("good") },
			`{"reason":"Active","content":{"assigned":"good","active":"good","lastKnownGood":"good","kubeletVersion":"v1.36.3"}}`},
		"proven by a kubelet that does not tell": {func(d *drive) { d.good("good") }, `{"reason":"Active","content":{"assigned":"good","active":"good","lastKnownGood":"good"}}`},
		"proven by the kubelet before": {func(d *drive) {
			d.version = "v1.36.3"
			d.good("good")
			d.version = "v1.37.0"
			d.hear(LocalChanged{Kubelet: newerKubelet, Local: "local"}).hear(ChildExited{Code: 0}).pass(time.Second)
		}, `{"reason":"InTrial","content":{"assigned":"good","active":"good","lastKnownGood":"good","kubeletVersion":"v1.36.3"},"trial":{"healthy":"0s","of":"10m0s","tries":1}}`},
		"proven by the same kubelet under other flags that come to the same": {func(d *drive) {
			d.version, d.effect["good"], d.effect["same"] = "v1.36.3", "same", "same"
			d.good("good").assign("same").pass(time.Second)
		}, `{"reason":"Active","content":{"assigned":"same","active":"same","lastKnownGood":"same","kubeletVersion":"v1.36.3"}}`},
		"digits": {func(d *drive) { d.assign("sha256:0123456789abcdef").pass(time.Second) },
			`{"reason":"InTrial","content":{"assigned":"0123456789ab","active":"0123456789ab"},"trial":{"healthy":"0s","of":"10m0s","tries":1}}`},
		"refused": {func(d *drive) { d.refuse("bad", true).assign("bad") }, `{"reason":"Refused","content":{"assigned":"bad"},"failure":{"kind":"Refused","message":"the kubelet says no"}}`},
		"rolled back": {func(d *drive) { d.deadly["bad"] = time.Second; d.assign("bad").pass(7 * time.Second) },
			`{"reason":"RolledBack","content":{"assigned":"bad"},"failure":{"kind":"Exited","exitCode":1,"times":3,"message":"exited 3 times in its trial: exit code 1: it is deadly"}}`},
		"rejected": {func(d *drive) { d.deadly["bad"] = time.Second; d.assign("bad").pass(time.Minute) },
			`{"reason":"Rejected","content":{"assigned":"bad"},"failure":{"kind":"Exited","exitCode":1,"times":3,"message":"exited 3 times in its trial: exit code 1: it is deadly"}}`},
		"ended by a signal": {func(d *drive) {
			d.good("good")
			for range 5 {
				d.hear(ChildExited{Code: -1, Words: "killed"})
			}
			d.pass(time.Second)
		}, `{"reason":"LastKnownGoodFailed","content":{"assigned":"good","lastKnownGood":"good"},"failure":{"kind":"Exited","times":5,"message":"exited 5 times in 10m0s: killed"}}`},
		"never healthy": {func(d *drive) { d.hangs["bad"] = true; d.assign("bad").pass(7 * time.Minute) },
			`{"reason":"Rejected","content":{"assigned":"bad"},"failure":{"kind":"NotHealthy","message":"not healthy within 2m0s of its start"}}`},
		"its Lease is lost": {func(d *drive) {
			d.lease["bad"] = false
			d.good("good").assign("bad").pass(time.Minute + 11*time.Second)
		},
			`{"reason":"RolledBack","content":{"assigned":"bad","active":"good","lastKnownGood":"good"},"failure":{"kind":"LeaseLost","message":"healthy, but its Lease was not renewed for 1m0s although the API server is in reach: the kubelet has lost the node"}}`},
		"its port is held": {func(d *drive) { d.portHeld["bad"] = true; d.assign("bad").pass(10 * time.Second) },
			`{"reason":"RolledBack","content":{"assigned":"bad"},"failure":{"kind":"PortHeld","message":"was never healthy: ` + heldByNginx + `"}}`},
		"the node's own port is held": {func(d *drive) {
			d.portHeld[""] = true
			d.hear(ChildExited{Code: 1, Words: "boom"}).pass(10 * time.Second)
		}, `{"reason":"EnvironmentFailing","failure":{"kind":"PortHeld","message":"` + heldByNginx + `"}}`},
		"the supervisor died": {func(d *drive) {
			d.assign("bad").pass(time.Second)
			d.s.Trial.Tries, d.disk.Trial.Tries = 3, 3
			d.boot()
		}, `{"reason":"RolledBack","content":{"assigned":"bad"},"failure":{"kind":"Exited","times":3,"message":"the supervisor died during its trial"}}`},
		"exits, no verdict yet": {func(d *drive) {
			d.assign("bad").pass(time.Second).hear(ChildExited{Code: 2, Words: "boom", Delay: time.Minute}).pass(time.Second)
		},
			`{"reason":"Applying","content":{"assigned":"bad","active":"bad"},"trial":{"healthy":"0s","of":"10m0s","tries":1},"failure":{"kind":"Exited","exitCode":2,"message":"boom"}}`},
		"malformed": {func(d *drive) {
			d.hear(SyncFailed{Text: "a/b", Problem: Problem{Malformed: true, Error: "failed to sync: x", Words: "annotation x: malformed"}})
		}, `{"reason":"InvalidAssignment","failure":{"kind":"Invalid","message":"annotation x: malformed"}}`},
		"not to be had": {func(d *drive) {
			d.hear(SyncFailed{Text: "a/b/c", Problem: Problem{Error: "failed to sync: x", Words: "ConfigMap a/b does not exist"}})
		}, `{"reason":"SyncFailed","failure":{"kind":"Unavailable","message":"ConfigMap a/b does not exist"}}`},
		"a disk that is full": {func(d *drive) { d.s.SaveError = "no space left" }, `{"reason":"InternalError","failure":{"kind":"Internal","message":"the state folder cannot be used, nothing new is applied: no space left"}}`},
		"a local file that is refused": {func(d *drive) {
			d.s.Proofs = []Proof{{Content: "local", Kubelet: testKubelet, Outcome: kubeletconfig.Refused, Words: "no"}}
		},
			`{"reason":"FallbackBroken","failure":{"kind":"Environment","message":"the local configuration would be refused: no"}}`},
		"the Node was made anew": {func(d *drive) { d.good("good").s.Lost = true }, `{"reason":"AssignmentLost","content":{"assigned":"good","active":"good","lastKnownGood":"good"}}`},
		"a stop":                 {func(d *drive) { d.hear(StopAsked{}) }, `{"reason":"Stopped"}`},
		"unreadable checkpoints": {func(d *drive) {
			d.good("good").disk.Assigned.Content, d.disk.LastKnownGood.Content = "", ""
			d.boot()
		}, `{"reason":"LastKnownGoodFailed","failure":{"kind":"Internal","message":"kube-system/good/kubelet (UID uid-of-cm, resourceVersion 1): its checkpoint cannot be read"}}`},
		"warnings": {func(d *drive) {
			d.refused["good"] = Proof{Outcome: kubeletconfig.Accepted, Warnings: []string{`field "maxPodz" is unknown to v0.37`}, UnknownFields: []string{"maxPodz"},
				Shadowed: []nodev1.ShadowedField{{Field: "maxPods", Value: "60", By: "--max-pods", Effective: "20"}}}
			d.assign("good").pass(time.Second)
		}, `{"reason":"InTrial","content":{"assigned":"good","active":"good"},"trial":{"healthy":"0s","of":"10m0s","tries":1},` +
			`"shadowed":[{"field":"maxPods","value":"60","by":"--max-pods","effective":"20","inferred":true}],"unknownFields":["maxPodz"],"warnings":["field \"maxPodz\" is unknown to v0.37"]}`},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDrive(t).boot()
			if row.when(d); d.tells() != row.want {
				t.Errorf("told\n%s, want\n%s", d.tells(), row.want)
			}
		})
	}
}

// An edit that waits for its turn says when that is.
func TestTheTurnOfAnEdit(t *testing.T) {
	d := newDrive(t, func(s *Settings) { s.EditSpread = 24 * time.Hour }).boot()
	d.assign("good").pass(9*time.Minute).assign("edited", "good", "2").pass(2 * time.Minute)
	r, _ := Report(d.s)
	if c := r.Details.Change; c == nil || !c.Due.Equal(d.s.ApplyAtWall) || !c.Due.After(d.s.Wall) || !c.Ended.IsZero() {
		t.Errorf("told %+v at %s", c, d.s.Wall)
	}
	d.hear(Retry{}).pass(time.Minute)
	if r, _ := Report(d.s); !r.Details.Change.Due.IsZero() {
		t.Errorf("told %+v of an edit that was made", r.Details.Change)
	}
}

// What was observed is the same in both places, and what was not leaves out the word.
func TestDetailsNameTheAssignment(t *testing.T) {
	d := newDrive(t).boot()
	if r, _ := Report(d.s); r.Observed != nil || r.Details.Observed != "" {
		t.Errorf("told %+v", r.Details)
	}
	d.assign("good").pass(time.Second)
	if r, _ := Report(d.s); r.Details.Observed != "kube-system/good/kubelet" || *r.Observed != r.Details.Observed {
		t.Errorf("told %+v", r.Details)
	}
}

// The time of a reason is kept as long as it is the reason, also over a supervisor that dies; what is over before it is published is no reason.
func TestSince(t *testing.T) {
	d := newDrive(t).boot()
	since := func() time.Time { r, _ := Report(d.s); return r.Details.Since }
	first := since()
	if first.IsZero() || first.After(d.s.Wall) {
		t.Errorf("since %s, at %s", first, d.s.Wall)
	}
	d.pass(time.Hour)
	if !since().Equal(first) {
		t.Errorf("since %s, and before since %s", since(), first)
	}
	d.assign("good").pass(time.Second)
	trial := since()
	if !trial.After(first) {
		t.Errorf("since %s, and before since %s", trial, first)
	}
	for name, quick := range map[string]func(){
		"time":                     func() { d.pass(time.Minute) },
		"another supervisor":       func() { d.boot() },
		"a change to the same end": func() { d.assign("other").pass(time.Second) },
	} {
		if quick(); !since().Equal(trial) {
			t.Errorf("%s: since %s, and before since %s", name, since(), trial)
		}
	}
	d.hear(ChildExited{Code: 1, Words: "boom", Delay: time.Minute}).pass(30 * time.Second)
	if !since().After(trial) {
		t.Errorf("a kubelet that is not there: since %s, and before since %s", since(), trial)
	}
}
