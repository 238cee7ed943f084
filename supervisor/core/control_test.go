package core

import (
	"reflect"
	"testing"
	"time"

	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
)

// The control: how long it takes, what it needs, and whom its verdict is about (rule 8).
func TestControl(t *testing.T) {
	const (
		rolledBack  = "assigned=bad@1 active=- lkg=- False RolledBack run config"
		rejected    = "assigned=bad@1 active=- lkg=- False Rejected run config"
		environment = "assigned=bad@1 active=- lkg=- Unknown EnvironmentFailing"
	)
	suspect := func(content string, change func(*Suspect)) Suspect {
		x := Suspect{Version: *version(content, "1", content), Kubelet: testKubelet, Cause: Exited, Words: "exited 3 times"}
		change(&x)
		return x
	}
	bad := suspect("bad", func(*Suspect) {})
	for _, row := range []struct {
		name     string
		suspects []Suspect
		when     func(d *drive)
		shown    string
		left     []Suspect
		rejected int
	}{
		{"ten seconds of health", []Suspect{bad},
			func(d *drive) { d.pass(9 * time.Second).expect(rolledBack).pass(400 * time.Millisecond) }, rejected, nil, 1},
		{"twice as long as the suspect lived", []Suspect{suspect("bad", func(x *Suspect) { x.Life = Span(30 * time.Second) })},
			func(d *drive) { d.pass(59 * time.Second).expect(rolledBack).pass(time.Second) }, rejected, nil, 1},
		{"an excuse has no pause", []Suspect{suspect("bad", func(x *Suspect) { x.Excused = true })},
			func(d *drive) { d.pass(10 * time.Second) }, "assigned=bad@1 active=bad@1 lkg=- True InTrial", nil, 0},
		{"but for one that was excused before", []Suspect{suspect("bad", func(x *Suspect) { x.Excused = true })},
			func(d *drive) {
				d.s.Excuses = Excuses{"bad", 3}
				d.pass(58 * time.Second).expect(environment).pass(2 * time.Second)
			}, "assigned=bad@1 active=bad@1 lkg=- True InTrial", nil, 0},
		{"a verdict has none, however often it was excused", []Suspect{bad},
			func(d *drive) { d.s.Excuses = Excuses{"bad", 9}; d.pass(10 * time.Second) }, rejected, nil, 1},
		{"the pause is that of the excused one alone", []Suspect{bad, suspect("good", func(x *Suspect) { x.Excused = true })},
			func(d *drive) { d.s.Excuses = Excuses{"bad", 9}; d.pass(10 * time.Second) }, rejected, nil, 1},
		{"what failed with another kubelet is no concern of it", []Suspect{suspect("bad", func(x *Suspect) { x.Kubelet = newerKubelet })},
			func(d *drive) { d.pass(time.Minute) }, "assigned=bad@1 active=bad@1 lkg=- True InTrial",
			[]Suspect{suspect("bad", func(x *Suspect) { x.Kubelet = newerKubelet })}, 0},
		{"nor is its Lease", []Suspect{bad, suspect("other", func(x *Suspect) { x.Kubelet, x.Cause = newerKubelet, LeaseLost })},
			func(d *drive) { d.online = false; d.pass(time.Minute) }, rejected, nil, 1},
		{"a lost Lease is judged by a renewed one", []Suspect{suspect("bad", func(x *Suspect) { x.Cause = LeaseLost })},
			func(d *drive) {
				d.online = false
				d.pass(time.Minute).expect(rolledBack).online = true
				d.pass(10 * time.Second)
			}, rejected, nil, 1},
		{"by health alone, where the kubelet has none any more", []Suspect{suspect("bad", func(x *Suspect) { x.Cause = LeaseLost })},
			func(d *drive) { d.s.Standalone = true; d.hear(Ticked{}).pass(time.Minute) }, rejected, nil, 1},
		{"exits are judged by health alone, though the fallback loses its Lease", []Suspect{suspect("bad", func(x *Suspect) { x.Life = Span(time.Minute) })},
			func(d *drive) { d.lease[""] = false; d.pass(2*time.Minute + time.Second) }, rejected, nil, 1},
		{"a fallback that is not healthy in time excuses", []Suspect{bad},
			func(d *drive) {
				d.hangs[""] = true
				d.s.Child.Healthy, d.s.Child.EverHealthy = false, false
				d.pass(118 * time.Second).expect("assigned=bad@1 active=- lkg=- Unknown Applying run config").pass(2 * time.Second)
			}, environment, []Suspect{suspect("bad", func(x *Suspect) { x.Excused, x.Words = true, "the fallback fails as well; exited 3 times" })}, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			d := newDrive(t)
			d.disk.Assigned, d.disk.Text, d.disk.NodeUID = version("bad", "1", "bad"), "kube-system/bad/kubelet", "node-uid"
			d.disk.Suspects = row.suspects
			d.disk.Proofs = []Proof{{Content: "bad", Kubelet: testKubelet, Outcome: kubeletconfig.Accepted}}
			d.boot()
			row.when(d)
			d.expect(row.shown)
			if !reflect.DeepEqual(d.disk.Suspects, row.left) {
				t.Errorf("suspects on disk: %+v\n want %+v", d.disk.Suspects, row.left)
			}
			var verdicts []Rejection
			if row.rejected > 0 {
				verdicts = []Rejection{{Content: "bad", Binary: "binary-1", Arguments: "arguments-1", Cause: row.suspects[0].Cause, Words: "exited 3 times"}}
			}
			if !reflect.DeepEqual(d.disk.Rejected, verdicts) {
				t.Errorf("rejected on disk: %+v\n want %+v", d.disk.Rejected, verdicts)
			}
		})
	}
}

// A last known good one is a control like local: it fails like any other outside a trial, and then local is the control of both.
func TestALastKnownGoodOneFailsAsTheControl(t *testing.T) {
	d := newDrive(t).boot().good("good").fresh()
	d.deadly["bad"], d.deadly["good"], d.deadly[""] = time.Second, 5*time.Second, 5*time.Second
	d.assign("bad").pass(28 * time.Second)
	d.expectDone("prove bad", "stop", "start bad", "start bad", "start bad", "start good", "start good", "start good", "start good", "start good").fresh()
	d.pass(3 * time.Second).expectDone("start local").pass(6 * time.Second)
	d.expect("assigned=bad@1 active=- lkg=good@1 Unknown EnvironmentFailing").expectMessage("the fallback fails as well; exited 3 times in its trial: exit code 1: it is deadly")
	if want := (Excuses{"bad", 1}); d.s.Excuses != want {
		t.Errorf("excused: %+v, want %+v", d.s.Excuses, want)
	}
	clear(d.deadly)
	d.fresh().pass(time.Minute).expect("assigned=bad@1 active=bad@1 lkg=good@1 True InTrial")
	t.Run("and its exits are counted anew", func(t *testing.T) {
		d := newDrive(t).boot().good("good")
		for range 5 {
			d.hear(ChildExited{Code: 1, Words: "boom"})
		}
		d.hear(ChildExited{Code: 1, Words: "boom"}).pass(15 * time.Second).fresh()
		d.hear(ChildExited{Code: 1, Words: "boom"}).expectDone("start good")
	})
	t.Run("its verdict is exact", func(t *testing.T) {
		d := newDrive(t).boot().good("good")
		for range 5 {
			d.pass(20 * time.Second).hear(ChildExited{Code: 1, Words: "boom"})
		}
		want := []Suspect{{Version: *version("good", "1", "good"), Kubelet: testKubelet, Cause: Exited, Life: Span(20 * time.Second), Words: "exited 5 times in 10m0s: boom", Times: 5, ExitCode: 1}}
		if !reflect.DeepEqual(d.disk.Suspects, want) {
			t.Errorf("on disk: %+v\n   want: %+v", d.disk.Suspects, want)
		}
	})
}

// What the node is short of is no fault of a configuration, although the fallback gets by: it may take less, or find some again. The
// fallback runs meanwhile, and the pause before the next try grows.
func TestOutOfInotify(t *testing.T) {
	short := ChildExited{Code: 1, Words: "no inotify instance", OutOfInotify: true}
	begin := func(t *testing.T) *drive {
		d := newDrive(t).boot().good("good").fresh().assign("fine").pass(time.Second)
		for range 3 {
			d.hear(short).pass(10 * time.Millisecond)
		}
		return d.expectDone("prove fine", "stop", "start fine", "start fine", "start fine", "start good").fresh()
	}
	t.Run("the fallback runs, and nothing is blamed", func(t *testing.T) {
		d := begin(t).pass(9 * time.Second)
		d.expect("assigned=fine@1 active=good@1 lkg=good@1 Unknown EnvironmentFailing")
		d.expectMessage("exited 3 times in its trial: no inotify instance; fix the node")
		if len(d.disk.Rejected) > 0 {
			t.Errorf("rejected: %+v", d.disk.Rejected)
		}
	})
	t.Run("it is tried again when the fallback has been healthy", func(t *testing.T) {
		begin(t).pass(11*time.Second).expectDone("stop", "start fine").expect("assigned=fine@1 active=fine@1 lkg=good@1 True InTrial")
	})
	t.Run("the second time after 30 s", func(t *testing.T) {
		d := begin(t).pass(11 * time.Second)
		for range 3 {
			d.hear(short).pass(10 * time.Millisecond)
		}
		d.fresh().pass(25*time.Second).expectDone().pass(10*time.Second).expectDone("stop", "start fine")
	})
	t.Run("a failure of its own in the end is one", func(t *testing.T) {
		d := newDrive(t).boot().good("good").assign("bad").pass(time.Second)
		d.hear(short).pass(10 * time.Millisecond).hear(short).pass(10 * time.Millisecond)
		d.hear(ChildExited{Code: 1, Words: "boom"}).pass(time.Minute).expect("assigned=bad@1 active=good@1 lkg=good@1 False Rejected run config")
	})
	t.Run("outside of a trial as well", func(t *testing.T) {
		d := newDrive(t).boot().good("good").fresh()
		for range 5 {
			d.hear(short).pass(10 * time.Millisecond)
		}
		d.expectDone("start good", "start good", "start good", "start good", "start local").pass(9 * time.Second).expect("assigned=good@1 active=- lkg=good@1 Unknown EnvironmentFailing")
		d.fresh().pass(2*time.Second).expectDone("stop", "start good")
	})
	t.Run("a single one is a failed try like any other", func(t *testing.T) {
		d := newDrive(t).boot().good("good").assign("fine").pass(time.Second).hear(short).pass(time.Second)
		if got := d.s.Trial.Tries; got != 2 {
			t.Errorf("%d tries, want the one that failed and the one that runs", got)
		}
	})
}
