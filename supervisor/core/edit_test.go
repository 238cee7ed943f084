package core

import (
	"fmt"
	"testing"
	"time"

	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
)

// When edits of ConfigMap cm, of which version one runs, are taken: a list of what was proved, and when.
func TestEditsSettle(t *testing.T) {
	edit := func(content, rv string) func(d *drive) {
		return func(d *drive) { d.assign(content, "cm", rv) }
	}
	every := func(span, until time.Duration) (list []step) {
		for at := time.Duration(0); at < until; at += span {
			list = append(list, step{at, edit(fmt.Sprint("edit-", at), fmt.Sprint(100+at/time.Millisecond))})
		}
		return list
	}
	for _, row := range []struct {
		name  string
		edits []step
		until time.Duration
		want  []string
	}{
		{"one", []step{{0, edit("two", "2")}}, time.Minute, []string{"2s: two"}},
		{"two in a row are one", []step{{0, edit("two", "2")}, {1500 * time.Millisecond, edit("three", "3")}}, time.Minute, []string{"3.5s: three"}},
		{"two apart", []step{{0, edit("two", "2")}, {20 * time.Second, edit("three", "3")}}, time.Minute, []string{"2s: two", "22s: three"}},
		{"two less than ten seconds apart", []step{{0, edit("two", "2")}, {5 * time.Second, edit("three", "3")}}, time.Minute, []string{"2s: two", "12s: three"}},
		{"one every 3 s", every(3*time.Second, 30*time.Second), 40 * time.Second, []string{"2s: edit-0s", "12s: edit-9s", "22s: edit-21s", "32s: edit-27s"}},
		{"one that never rests waits for ten seconds", every(100*time.Millisecond, 15*time.Second), 30 * time.Second, []string{"10s: edit-9.9s", "20s: edit-14.9s"}},
		{"one that is taken back", []step{{0, edit("two", "2")}, {time.Second, edit("one", "1")}}, time.Minute, nil},
		{"another assignment", []step{{0, edit("two", "2")}, {time.Second, func(d *drive) { d.assign("other") }}}, time.Minute, []string{"1s: other"}},
		{"an edit of what has just been assigned", []step{{0, func(d *drive) { d.assign("other", "other", "1") }}, {time.Second, func(d *drive) { d.assign("newer", "other", "2") }}},
			time.Minute, []string{"0s: other", "3s: newer"}},
		{"another Node of the name", []step{{0, func(d *drive) {
			a := assigned("cm", "2", "two")
			a.NodeUID = "another"
			d.hear(a)
		}}}, time.Minute, []string{"0s: two"}},
		{"a removal", []step{{0, edit("two", "2")}, {time.Second, func(d *drive) { d.hear(Cleared{NodeUID: "node-uid"}) }}}, time.Minute, nil},
		{"a retry", []step{{0, edit("two", "2")}, {time.Second, func(d *drive) { d.hear(Retry{Value: "now"}) }}}, time.Minute, []string{"1s: two"}},
		{"a retry soon after another edit", []step{{0, edit("two", "2")}, {5 * time.Second, edit("three", "3")}, {6 * time.Second, func(d *drive) { d.hear(Retry{Value: "now"}) }}},
			time.Minute, []string{"2s: two", "6s: three"}},
		{"one that may mend what is refused", []step{{0, edit("bad", "2")}, {30 * time.Second, edit("good", "3")}}, time.Minute, []string{"2s: bad", "30s: good"}},
		{"but not without end", []step{{0, edit("bad", "2")}, {3 * time.Second, edit("bad-2", "3")}, {4 * time.Second, edit("bad-3", "4")}},
			time.Minute, []string{"2s: bad", "12s: bad-3"}},
		{"one while the kubelet is unwell", []step{{0, func(d *drive) { d.hear(Unhealthy{}).assign("two", "cm", "2") }}}, time.Minute, []string{"0s: two"}},
		{"one of a ConfigMap that was gone", []step{{0, func(d *drive) { d.hear(gone) }}, {time.Second, edit("two", "2")}}, time.Minute, []string{"1s: two"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			d := newDrive(t, func(s *Settings) { s.EditSpread = time.Hour }).boot()
			d.refuse("bad", false).refuse("bad-2", false).refuse("bad-3", false)
			d.assign("one", "cm", "1").pass(11 * time.Minute).fresh()
			if got := d.proofs(row.edits, row.until); fmt.Sprint(got) != fmt.Sprint(row.want) {
				t.Errorf("proved %q, want %q", got, row.want)
			}
		})
	}
}

var gone = SyncFailed{Text: "kube-system/cm/kubelet", Problem: Problem{Error: "failed to sync: x", Words: "gone"}}

// step is what happens so long after the test began to look.
type step struct {
	at time.Duration
	do func(d *drive)
}

// proofs lets the steps happen, and gives what was proved until then, and when.
func (d *drive) proofs(steps []step, until time.Duration) (list []string) {
	d.proves = func(content string) {
		if content != "local" {
			list = append(list, fmt.Sprintf("%s: %s", d.now-d.began, content))
		}
	}
	for _, s := range steps {
		d.pass(d.began + s.at - d.now)
		s.do(d)
	}
	d.pass(d.began + until - d.now)
	return list
}

// Sixty seconds of an edit each tenth of a second: six are proved and written, whatever is in them, and the last one is what stays.
func TestAStormOfEdits(t *testing.T) {
	for name, of := range map[string]struct {
		content func(i int) string
		proofs  int
	}{
		"a new content each": {func(i int) string { return fmt.Sprint("new-", i) }, 6},
		"refused":            {func(i int) string { return fmt.Sprint("bad-", i) }, 6},
		"a label":            {func(int) string { return "one" }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDrive(t, func(s *Settings) { s.EditSpread = time.Hour }).boot()
			d.assign("one", "cm", "1").pass(11 * time.Minute).fresh()
			var steps []step
			for i := range 600 {
				content := of.content(i)
				if name == "refused" {
					d.refuse(content, false)
				}
				steps = append(steps, step{time.Duration(i) * 100 * time.Millisecond, func(d *drive) {
					d.assign(content, "cm", fmt.Sprint(1000+i))
					if waits := d.now - d.began - d.lastTaken(); waits > editPeriod {
						t.Errorf("nothing was taken for %s", waits)
					}
				}})
			}
			if got := d.proofs(steps, time.Minute); len(got) != of.proofs {
				t.Errorf("proved %q", got)
			}
			if len(d.saves) > 4*6 {
				t.Errorf("%d writes", len(d.saves))
			}
			if d.pass(editPeriod); contentOf(d.s.Assigned) != of.content(599) || d.s.Assigned.Source.ResourceVersion != "1599" {
				t.Errorf("in the end %s is assigned", Describe(d.s.Assigned))
			}
		})
	}
}

// lastTaken is when the last edit was taken, from when the test began to look.
func (d *drive) lastTaken() time.Duration {
	return max(0, d.s.NextEdit-editPeriod-d.began)
}

// An edit that settles is not spoken of, nor is it forgotten that the ConfigMap was gone, until it is taken.
func TestAnEditThatSettlesIsNotTold(t *testing.T) {
	d := newDrive(t, func(s *Settings) { s.EditSpread = time.Hour }).boot()
	d.assign("one", "cm", "1").pass(11*time.Minute).assign("two", "cm", "2")
	d.pass(editQuiet - time.Millisecond).expect("assigned=one@1 active=one@1 lkg=one@1 True Active")
	d.pass(2 * time.Second).expect("assigned=two@2 active=one@1 lkg=one@1 Unknown Applying").expectMessage("waits for its turn until 20")
	d.hear(gone).pass(time.Second).expect("assigned=two@2 active=one@1 lkg=one@1 False SyncFailed sync: x")
	d.assign("three", "cm", "3").pass(time.Second).expect("assigned=two@2 active=one@1 lkg=one@1 False SyncFailed sync: x")
	d.pass(editPeriod).expect("assigned=three@3 active=one@1 lkg=one@1 Unknown Applying")
	t.Run("nor is a ConfigMap that is back as it was", func(t *testing.T) {
		d.hear(gone).pass(time.Second).assign("three", "cm", "3").expect("assigned=three@3 active=one@1 lkg=one@1 Unknown Applying")
	})
}

// While an edit is written, more come: they wait like those that come after it.
func TestEditsDuringTheWriteOfOne(t *testing.T) {
	for _, last := range []string{"three", "four"} {
		d := newDrive(t, func(s *Settings) { s.EditSpread = time.Hour }).boot()
		d.assign("one", "cm", "1").pass(11*time.Minute).fresh().assign("two", "cm", "2").now += editQuiet
		d.decide(Ticked{})
		d.decide(assigned("cm", "3", "three"))
		d.hear(d.answer(d.s.Doing)).expectDone("prove two").pass(time.Second)
		if last == "four" {
			d.assign("four", "cm", "4")
		}
		d.pass(editPeriod-time.Second-time.Millisecond).expectDone("prove two").pass(time.Millisecond).expectDone("prove two", "prove "+last)
	}
}

// --edit-spread=0 is upstream's way: each edit at once.
func TestEditsAtOnce(t *testing.T) {
	d := newDrive(t).boot().assign("one", "cm", "1").pass(11 * time.Minute).fresh()
	d.refused["two"] = Proof{Outcome: kubeletconfig.Refused, Words: "no"}
	d.assign("two", "cm", "2").assign("three", "cm", "3").expectDone("prove two", "prove three", "stop", "start three")
}

// Which statements differ in uids and resourceVersions alone: those can be published later.
func TestGist(t *testing.T) {
	gist := func(d *drive) string {
		r, due := Report(d.s)
		if !due {
			t.Fatal("nothing to report")
		}
		return r.Gist
	}
	for _, row := range []struct {
		name           string
		before, change func(d *drive)
		same           bool
	}{
		{"a label", func(*drive) {}, func(d *drive) { d.edit("one", "2") }, true},
		{"re-created with equal content", func(*drive) {}, func(d *drive) {
			a := assigned("cm", "2", "one")
			a.Version.Source.UID = "another"
			d.hear(a).pass(time.Minute)
		}, true},
		{"a label of what is refused", func(d *drive) { d.edit("bad", "2").pass(time.Minute) }, func(d *drive) { d.edit("bad", "3") }, true},
		{"refused, and so is the next one", func(d *drive) { d.edit("bad", "2").pass(time.Minute) }, func(d *drive) { d.edit("bad-2", "3") }, false},
		{"an edit waits for its turn", func(*drive) {}, func(d *drive) { d.edit("two", "2").pass(time.Second) }, false},
		{"and another one takes that", func(d *drive) { d.edit("two", "2").pass(time.Minute) }, func(d *drive) { d.edit("three", "3") }, true},
		{"its turn comes", func(d *drive) { d.edit("two", "2").pass(time.Minute) }, func(d *drive) { d.pass(time.Hour) }, false},
		{"another one on trial", func(d *drive) { d.s.EditSpread = 0; d.assign("two", "cm", "2").pass(time.Minute) },
			func(d *drive) { d.assign("three", "cm", "3").pass(time.Minute) }, false},
		{"a warning", func(*drive) {}, func(d *drive) { d.hear(LocalChanged{Kubelet: newerKubelet, Local: "local"}) }, false},
		{"the ConfigMap is gone", func(*drive) {}, func(d *drive) { d.hear(gone) }, false},
		{"promoted", func(d *drive) { d.assign("other").pass(time.Minute) }, func(d *drive) { d.pass(time.Hour) }, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			d := newDrive(t, func(s *Settings) { s.EditSpread = time.Hour }).boot().refuse("bad", false).refuse("bad-2", false)
			d.assign("one", "cm", "1").pass(11 * time.Minute)
			row.before(d)
			before := gist(d)
			row.change(d)
			if after := gist(d); (before == after) != row.same {
				t.Errorf("before %q, after %q", before, after)
			}
		})
	}
}
