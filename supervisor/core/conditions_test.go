package core

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

func TestConditionsOf(t *testing.T) {
	condition := func(kind corev1.NodeConditionType, status corev1.ConditionStatus) corev1.NodeCondition {
		return corev1.NodeCondition{Type: kind, Status: status}
	}
	ready := condition(corev1.NodeReady, corev1.ConditionTrue)
	for name, test := range map[string]struct {
		conditions []corev1.NodeCondition
		want       Conditions
	}{
		"none":           {nil, Conditions{}},
		"not the Node's": {[]corev1.NodeCondition{condition("KubeletConfigOk", "True"), condition(corev1.NodeDiskPressure, "True")}, Conditions{}},
		"good": {[]corev1.NodeCondition{condition(corev1.NodeMemoryPressure, "False"), condition(corev1.NodeDiskPressure, "Unknown"),
			condition(corev1.NodePIDPressure, "False"), ready}, Conditions{Known: true}},
		"bad": {[]corev1.NodeCondition{condition(corev1.NodePIDPressure, "True"), condition(corev1.NodeMemoryPressure, "True"),
			condition(corev1.NodeDiskPressure, "True"), condition(corev1.NodeReady, "False")},
			Conditions{true, "DiskPressure, MemoryPressure, PIDPressure, Ready"}},
		"lost":                 {[]corev1.NodeCondition{condition(corev1.NodeReady, "Unknown")}, Conditions{true, "Ready"}},
		"others are no matter": {[]corev1.NodeCondition{ready, condition(corev1.NodeNetworkUnavailable, "True"), condition("KernelDeadlock", "True")}, Conditions{Known: true}},
	} {
		if got := ConditionsOf(&corev1.Node{Status: corev1.NodeStatus{Conditions: test.conditions}}); got != test.want {
			t.Errorf("%s: %+v, want %+v", name, got, test.want)
		}
	}
}

// A configuration under which the Node cannot run pods does not become the last known good one (rule 7), and is not rolled back for it.
func TestConditionsInATrial(t *testing.T) {
	const stands = "the trial clock stands: bad conditions of the Node, since this configuration was started: "
	const unknown = "the trial clock stands: bad conditions of the Node, and whether it was so before this configuration was started is not known: "
	disk, memory := "DiskPressure", "MemoryPressure"
	for _, row := range []struct {
		name  string
		when  func(d *drive)
		shown string
		says  string
	}{
		{"bad since the start", func(d *drive) {
			d.bad["good"] = disk
			d.assign("good").pass(time.Hour).expectEvents("KubeletConfigChanged")
		}, inTrial, stands + disk + "; free what the Node is short of"},
		{"several", func(d *drive) { d.bad["good"] = disk + ", Ready"; d.assign("good").pass(time.Hour) }, inTrial, stands + disk + ", Ready; free"},
		{"bad before, too", func(d *drive) {
			d.bad[""], d.bad["good"] = disk, disk
			d.assign("good").pass(11 * time.Minute)
		}, goodActive, ""},
		{"bad in the first seconds of the kubelet before", func(d *drive) {
			d.hear(ChildExited{Code: 1, Words: "boom"}).pass(2 * time.Second)
			d.s.Before, d.bad[""], d.bad["good"] = Conditions{}, "Ready", "Ready"
			d.assign("good").pass(11 * time.Minute)
		}, inTrial, unknown + "Ready"},
		{"before the kubelet before has measured", func(d *drive) {
			d.hear(ChildExited{Code: 1, Words: "boom"}).pass(15 * time.Second)
			d.s.Before, d.bad["good"] = Conditions{}, disk
			d.assign("good").pass(time.Hour)
		}, inTrial, unknown + disk},
		{"started again at the very end, it has to measure", func(d *drive) {
			d.assign("good").pass(time.Minute)
			d.disk.Trial.Healthy = Span(d.s.TrialPeriod)
			d.boot().pass(15 * time.Second).expect(inTrial)
			d.bad["good"] = disk
			d.pass(time.Hour)
		}, inTrial, stands + disk},
		{"and then needs no more", func(d *drive) {
			d.assign("good").pass(time.Minute)
			d.disk.Trial.Healthy = Span(d.s.TrialPeriod)
			d.boot().pass(30 * time.Second)
		}, goodActive, ""},
		{"another one than before", func(d *drive) {
			d.bad[""], d.bad["good"] = disk, disk+", "+memory
			d.assign("good").pass(time.Hour)
		}, inTrial, stands + memory + ";"},
		{"bad before, not now", func(d *drive) { d.bad[""] = disk; d.assign("good").pass(11 * time.Minute) }, goodActive, ""},
		{"it passes, and the rest of the time is to come", func(d *drive) {
			d.assign("good").pass(5 * time.Minute)
			d.bad["good"] = memory
			d.pass(20 * time.Minute).expect(inTrial).expectMessage(stands + memory)
			d.bad["good"] = ""
			d.pass(4 * time.Minute).expect(inTrial)
			if d.s.Trial.worseWarning(d.s.Node, d.s.Child) != "" {
				d.t.Errorf("still warns: %s", d.s.Trial.worseWarning(d.s.Node, d.s.Child))
			}
			d.pass(3 * time.Minute)
		}, goodActive, ""},
		{"bad at the very end", func(d *drive) {
			d.assign("good").pass(9*time.Minute + 59*time.Second)
			d.bad["good"] = "Ready"
			d.pass(time.Hour)
		}, inTrial, stands + "Ready"},
		{"for a moment after the start", func(d *drive) {
			d.bad["good"] = "Ready"
			d.assign("good").pass(11 * time.Second).expect(inTrial)
			d.bad["good"] = ""
			if d.s.Trial.worse(d.s.Node) != "Ready" || d.s.Trial.worseWarning(d.s.Node, d.s.Child) != "" {
				d.t.Errorf("bad: %s; warns: %s", d.s.Trial.worse(d.s.Node), d.s.Trial.worseWarning(d.s.Node, d.s.Child))
			}
			d.pass(10*time.Minute + 20*time.Second)
		}, goodActive, ""},
		{"of a trial shorter than a minute", func(d *drive) {
			d.s.TrialPeriod = 6 * time.Second
			d.bad["good"] = disk
			d.assign("good").pass(time.Hour)
		}, inTrial, stands + disk},
		{"a trial shorter than a minute is looked at before its end", func(d *drive) {
			d.s.TrialPeriod = 6 * time.Second
			d.ownNode = true
			d.assign("good").pass(time.Second)
			d.hear(ConditionsSeen{Conditions: Conditions{Known: true}, Posted: true}).pass(5 * time.Second).expect(inTrial)
			d.pass(20 * time.Second).expect(inTrial)
			if !d.looks {
				d.t.Error("it is not looked at")
			}
			pressed := ConditionsSeen{Conditions: Conditions{Known: true, Bad: disk}, Posted: true}
			d.hear(pressed).expectMessage("in reach and conditions of the Node are good again: " + disk).pass(time.Minute).hear(pressed).pass(time.Minute)
		}, inTrial, unknown + disk},
		{"what was so before is kept over a restart of the supervisor", func(d *drive) {
			d.bad["good"] = disk
			d.assign("good").pass(time.Minute).boot().pass(time.Hour)
		}, inTrial, stands + disk},
		{"and over a crash of the kubelet", func(d *drive) {
			d.bad[""], d.bad["good"] = disk, disk
			d.assign("good").pass(time.Minute).hear(ChildExited{Code: 1, Words: "boom"}).pass(12 * time.Minute)
		}, goodActive, ""},
		{"it is what was before the trial, and not before the next configuration on trial", func(d *drive) {
			d.bad["bad"], d.bad["good"] = disk, disk
			d.assign("bad").pass(3 * time.Minute).assign("good").pass(time.Hour)
		}, inTrial, stands + disk},
		{"what a rollback finds is not what the fallback left", func(d *drive) {
			d.bad["bad"], d.deadly["bad"] = disk, time.Minute
			d.assign("bad").pass(2 * time.Minute)
			d.online = false
			d.pass(5*time.Minute).expectEvents("KubeletConfigChanged", "KubeletConfigRolledBack", "KubeletConfigRejected")
			d.online, d.bad["good"] = true, disk
			d.assign("good").pass(time.Hour)
		}, inTrial, stands + disk},
		{"bad, and nothing known of before", func(d *drive) {
			d.online, d.bad["good"] = false, disk
			d.s.Before = Conditions{}
			d.assign("good").pass(time.Minute)
			d.online = true
			d.pass(time.Hour)
		}, inTrial, unknown + disk},
		{"nothing known of before, and good", func(d *drive) {
			d.online = false
			d.s.Before = Conditions{}
			d.assign("good").pass(time.Minute)
			d.online = true
			d.pass(11 * time.Minute)
		}, goodActive, ""},
		{"offline, the promotion waits for a look", func(d *drive) {
			d.assign("good").pass(time.Minute)
			d.online = false
			d.pass(time.Hour)
		}, inTrial, "which it has had; it becomes the last known good one when the API server is in reach and its kubelet was seen to post the Node's conditions"},
		{"and does not wait longer", func(d *drive) {
			d.assign("good").pass(time.Minute)
			d.online = false
			d.pass(time.Hour)
			d.online = true
			d.pass(lookRetryMost)
		}, goodActive, ""},
		{"offline, what was seen last holds", func(d *drive) {
			d.bad["good"] = disk
			d.assign("good").pass(time.Minute)
			d.online = false
			d.pass(time.Hour)
		}, inTrial, stands + disk},
		{"a kubelet that posts nothing", func(d *drive) {
			d.ownNode = true
			d.assign("good").pass(time.Second)
			for range 100 {
				d.hear(ConditionsSeen{Conditions: Conditions{Known: true}, Before: true}).pass(10 * time.Second)
			}
		}, inTrial, "its kubelet was seen to post"},
		{"what a kubelet before it posted is not its own", func(d *drive) {
			d.ownNode = true
			d.assign("good").pass(time.Second)
			d.hear(ConditionsSeen{Conditions: Conditions{Known: true, Bad: disk}, Before: true}).pass(10 * time.Second)
			d.ownNode = false
			d.pass(11 * time.Minute)
		}, goodActive, ""},
		{"the identity may not look", func(d *drive) {
			d.ownNode = true
			d.assign("good").pass(time.Second).hear(ConditionsSeen{Problem: "nodes is forbidden"}).pass(time.Hour)
		}, inTrial, "it does not become the last known good one before its Node was read: nodes is forbidden; let the supervisor's identity get that Node"},
		{"no pod can be started", func(d *drive) {
			d.came = PodStarts{Known: true}
			d.assign("good").pass(time.Minute)
			d.came = PodStarts{Known: true, Waiting: "a/b"}
			d.pass(time.Minute)
			d.came.Failing = true
			d.pass(time.Hour).expectEvents("KubeletConfigChanged")
		}, inTrial, "; no pod could be started since this configuration was: these have no sandbox: a/b; see the events of these pods, or assign another configuration"},
		{"also though they are gone", func(d *drive) {
			d.came = PodStarts{Known: true, Waiting: "a/b", Failing: true}
			d.assign("good").pass(time.Minute)
			d.came = PodStarts{Known: true}
			d.pass(time.Hour)
		}, inTrial, "these have no sandbox: a/b; see"},
		{"also over a restart of the supervisor", func(d *drive) {
			d.came = PodStarts{Known: true, Waiting: "a/b", Failing: true}
			d.assign("good").pass(time.Minute)
			d.came = PodStarts{}
			d.boot().pass(time.Hour)
		}, inTrial, "these have no sandbox: a/b; see"},
		{"until one was started", func(d *drive) {
			d.came = PodStarts{Known: true, Waiting: "a/b", Failing: true}
			d.assign("good").pass(20 * time.Minute).expect(inTrial)
			d.came = PodStarts{Known: true, Started: true}
			d.pass(2 * time.Minute)
		}, goodActive, ""},
		{"one that has just come is waited for", func(d *drive) {
			d.assign("good").pass(9 * time.Minute)
			d.came = PodStarts{Known: true, Waiting: "a/b"}
			d.pass(2 * time.Minute).expect(inTrial).expectMessage("in reach and a pod that has come since then was seen to be started: a/b")
			d.came = PodStarts{Known: true, Started: true}
			d.pass(lookRetryMost)
		}, goodActive, ""},
		{"what is not known of pods changes nothing", func(d *drive) {
			d.came = PodStarts{Known: true, Waiting: "a/b", Failing: true}
			d.assign("good").pass(time.Minute)
			d.came = PodStarts{}
			d.pass(time.Hour)
		}, inTrial, "these have no sandbox: a/b"},
		{"nor keeps it from promotion", func(d *drive) { d.came = PodStarts{}; d.assign("good").pass(11 * time.Minute) }, goodActive, ""},
		{"of many pods some are named", func(d *drive) {
			d.came = PodStarts{Known: true, Waiting: strings.Repeat("x", 300), Failing: true}
			d.assign("good").pass(20 * time.Minute)
		}, inTrial, "these have no sandbox: " + strings.Repeat("x", 197) + "…; see"},
		{"a kubelet without a kubeconfig has no Node", func(d *drive) {
			d.s.Standalone, d.s.Lease = true, Lease{}
			d.bad["good"] = disk
			d.assign("good").pass(11 * time.Minute)
			if len(d.looked) > 0 {
				d.t.Errorf("looked at %s", d.looked)
			}
		}, goodActive, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			d := newDrive(t).boot().pass(time.Minute).fresh()
			row.when(d)
			d.expect(row.shown).expectMessage(row.says)
		})
	}
}

// When the Node is looked at: once a minute in a trial and once at its end, and before a change.
func TestLooksAtTheNode(t *testing.T) {
	seconds := func(d *drive) (list []int) {
		for _, at := range d.looked {
			list = append(list, int((at - d.began).Seconds()))
		}
		return list
	}
	for _, row := range []struct {
		name string
		when func(d *drive)
		want []int
	}{
		{"never, with nothing in sight", func(d *drive) { d.pass(time.Hour) }, nil},
		{"a trial", func(d *drive) { d.assign("good").pass(time.Hour) }, []int{0, 0, 10, 70, 130, 190, 250, 310, 370, 430, 490, 550, 609}},
		{"a short one", func(d *drive) { d.s.TrialPeriod = 5 * time.Second; d.assign("good").pass(time.Hour) }, []int{0, 0, 1, 14}},
		{"one whose clock stands", func(d *drive) { d.bad["good"] = "Ready"; d.assign("good").pass(3 * time.Minute) }, []int{0, 0, 10, 20, 30, 40, 50, 60, 120, 180}},
		{"what is refused", func(d *drive) { d.refuse("bad", false).assign("bad").pass(time.Hour) }, []int{0}},
		{"while another waits", func(d *drive) {
			d.s.EditSpread = time.Hour
			d.good("good").fresh().looked = nil
			for rv := 2; d.s.ApplyAt-d.now < 11*time.Minute; rv++ {
				d.assign("other", "good", string(rune('0'+rv))).pass(10 * time.Second)
				d.fresh().looked = nil
			}
			d.pass(10 * time.Minute)
		}, []int{292, 592}},
		{"while a change is held", func(d *drive) { d.s.Disruption = Hold; d.kills["few"] = 1; d.assign("few").pass(time.Hour) }, []int{0}},
	} {
		t.Run(row.name, func(t *testing.T) {
			d := newDrive(t).boot().pass(time.Minute).fresh()
			row.when(d)
			if got := seconds(d); !slices.Equal(got, row.want) {
				t.Errorf("looked after %d s, want %d; %s", got, row.want, d.shown())
			}
		})
	}
}

// What was so before the start is on the disk before the start.
func TestConditionsBeforeTheStart(t *testing.T) {
	d := newDrive(t).boot().pass(time.Minute)
	d.bad[""] = "DiskPressure"
	d.hear(Ticked{})
	d.begins = func(Start) {
		want := Conditions{Known: true, Bad: "DiskPressure"}
		if d.disk.Trial.Before != want || d.disk.Before != want {
			t.Errorf("on disk: %+v, %+v", d.disk.Trial.Before, d.disk.Before)
		}
	}
	d.assign("good")
}
