package core

import (
	"reflect"
	"testing"
	"time"
)

// A state folder that comes with an image, or survives `kubeadm reset`, configures no kubelet of another cluster (rule 18).
func TestAnotherCluster(t *testing.T) {
	begin := func(t *testing.T) *drive {
		d := newDrive(t)
		d.cluster = []string{"key-1"}
		return d.boot().pass(time.Minute).good("good").fresh()
	}
	const active = "assigned=good@1 active=good@1 lkg=good@1 True Active"
	t.Run("at the start, local runs at once, and nothing is remembered", func(t *testing.T) {
		d := begin(t)
		d.cluster = []string{"key-2"}
		d.boot().expectDone("start local").expect("assigned=- active=- lkg=- True Local").expectMessage("is of another cluster than kube-system/good/kubelet", "which is forgotten")
		if r, _ := Report(d.s); r.Observed != nil {
			t.Errorf("it speaks of the assignment %q, which this cluster does not know", *r.Observed)
		}
		d.fresh().boot().expectDone("start local")
		d.assign("new").pass(time.Second).expect("assigned=new@1 active=new@1 lkg=- True InTrial")
	})
	t.Run("while it runs, the kubelet is restarted with local", func(t *testing.T) {
		d := begin(t).hear(ClusterSeen{Keys: []string{"key-2"}}).pass(time.Minute)
		d.expectDone("stop", "start local").expect("assigned=- active=- lkg=- True Local")
		if d.disk.Assigned != nil || d.disk.LastKnownGood != nil || d.disk.Text != "" || len(d.disk.Rejected) > 0 {
			t.Errorf("on the disk is %+v", d.disk)
		}
	})
	t.Run("local is not held, though pods die of it", func(t *testing.T) {
		d := begin(t)
		holding(&d.s.Settings)
		d.kills["local"] = 4
		d.hear(ClusterSeen{Keys: []string{"key-2"}}).pass(time.Second)
		if d.disk.Assigned != nil || d.s.Child.Foreign {
			t.Errorf("on the disk is %+v, and the kubelet %+v", d.disk, d.s.Child)
		}
		d.expectDone("stop", "start local").pass(time.Minute).expect("assigned=- active=- lkg=- True Local")
	})
	t.Run("the next change is held again", func(t *testing.T) {
		d := begin(t)
		holding(&d.s.Settings)
		d.kills["new"] = 4
		d.hear(ClusterSeen{Keys: []string{"key-2"}}).pass(time.Minute).fresh().assign("new").pass(time.Second)
		d.expectDone("prove new", "foresee new")
	})
	t.Run("what was still to be applied is not", func(t *testing.T) {
		d := begin(t)
		d.saveErr = errDisk
		d.assign("pending").hear(ClusterSeen{Keys: []string{"key-2"}})
		d.saveErr = nil
		d.pass(time.Minute).expectDone("stop", "start local")
	})
	t.Run("one that lost its assigned source and has a last known good one", func(t *testing.T) {
		d := begin(t)
		d.disk.Assigned, d.disk.Text = nil, ""
		d.cluster = []string{"key-2"}
		d.boot().expectDone("start local")
	})
	t.Run("a rotation of the authority restarts nothing", func(t *testing.T) {
		d := begin(t)
		for _, keys := range [][]string{{"key-1", "key-2"}, {"key-2"}, {"key-2", "key-3"}, {"key-3"}} {
			d.hear(ClusterSeen{Keys: keys}).pass(time.Minute)
		}
		d.cluster = []string{"key-3"}
		d.expectDone().boot().expectDone("start good").expect(active)
	})
	t.Run("nothing of what was under way is left", func(t *testing.T) {
		const says = "using current (default); this node's kubeconfig is of another cluster than kube-system/good/kubelet (UID uid-of-cm, resourceVersion 1), which is forgotten"
		for name, given := range map[string]func(d *drive){
			"a warning": func(d *drive) { a := assigned("good", "1", "good"); a.Shadowed = true; d.hear(a) },
			"an assignment that is awry": func(d *drive) {
				d.hear(SyncFailed{Text: "x", Problem: Problem{Error: "failed to sync: x", Words: "x"}})
			},
			"a Node that was re-created": func(d *drive) { d.hear(Cleared{NodeUID: "another"}) },
			"an exit":                    func(d *drive) { d.hear(ChildExited{Code: 1, Words: "boom", Delay: time.Hour}) },
			"an environment":             func(d *drive) { d.hear(ChildExited{Code: 1, Words: "boom", RuntimeDown: true, Delay: time.Hour}) },
		} {
			t.Run(name, func(t *testing.T) {
				d := begin(t)
				d.hangs[""] = true
				given(d)
				d.hear(ClusterSeen{Keys: []string{"key-2"}})
				if d.s.Child.Alive && d.s.Child.Version != nil {
					t.Errorf("done: %q", d.did)
				}
				d.pass(5 * time.Second).expectMessage("the kubelet is not healthy yet; this node's kubeconfig")
				delete(d.hangs, "")
				d.pass(10 * time.Second).says(says[:len("using current (default); ")] + "nothing is assigned; " + says[len("using current (default); "):])
				if r, _ := Report(d.s); r.Observed != nil {
					t.Errorf("it speaks of %q", *r.Observed)
				}
			})
		}
	})
	t.Run("nor a reset that waits", func(t *testing.T) {
		d := begin(t).refuse("broken", false).hear(LocalChanged{Kubelet: testKubelet, Local: "broken"}).hear(Cleared{NodeUID: "node-uid"})
		d.hear(ClusterSeen{Keys: []string{"key-2"}}).pass(time.Minute)
		d.expectMessage("using current (default); the local configuration would be refused: the kubelet says no; this node's kubeconfig is of another cluster")
		if r, _ := Report(d.s); r.Observed != nil {
			t.Errorf("it speaks of %q", *r.Observed)
		}
	})
	t.Run("what is known of kubelets, and what was asked, stays", func(t *testing.T) {
		d := begin(t).hear(Retry{Value: "asked"})
		d.s.Asides = []Aside{{BootID: "boot-1"}}
		proofs := d.disk.Proofs
		d.hear(ClusterSeen{Keys: []string{"key-2"}}).pass(time.Minute)
		want := Durable{Proofs: proofs, Account: Account{Retry: "asked", Asides: []Aside{{BootID: "boot-1"}}, Cluster: []string{"key-2"}, Renews: true}}
		if !reflect.DeepEqual(d.disk, want) {
			t.Errorf("on disk: %+v\n   want: %+v", d.disk, want)
		}
	})
	t.Run("an assignment whose source could not be read is forgotten, too", func(t *testing.T) {
		d := newDrive(t)
		d.disk.Cluster, d.disk.Text, d.cluster = []string{"key-1"}, "kube-system/good/kubelet", []string{"key-2"}
		d.boot()
		if d.disk.Text != "" {
			t.Errorf("on disk: %+v", d.disk)
		}
	})
	t.Run("no keys say nothing", func(t *testing.T) {
		d := begin(t)
		d.cluster = nil
		d.hear(ClusterSeen{}).pass(time.Minute).expectDone().boot().expectDone("start good").expect(active)
		d.fresh().hear(ClusterSeen{Keys: []string{"key-2"}}).expectDone("stop", "start local")
	})
	t.Run("a state folder of before is taken for this cluster's", func(t *testing.T) {
		d := newDrive(t).boot().pass(time.Minute).good("good")
		d.cluster = []string{"key-1"}
		d.fresh().boot().expectDone("start good").expect(active)
		d.cluster = []string{"key-2"}
		d.fresh().boot().expectDone("start local")
	})
	t.Run("a node that was assigned nothing joins quietly", func(t *testing.T) {
		d := newDrive(t)
		d.cluster = []string{"key-1"}
		d.boot().hear(ClusterSeen{Keys: []string{"key-2"}}).expectDone("start local").expect(nothing)
		if r, _ := Report(d.s); r.Message != "using current (default); nothing is assigned" {
			t.Errorf("says %q", r.Message)
		}
		d.pass(time.Minute)
		if len(d.disk.Cluster) != 1 || d.disk.Cluster[0] != "key-2" {
			t.Errorf("the disk knows %q", d.disk.Cluster)
		}
	})
}

// An assignment of the old cluster that is just being written is not adopted.
func TestAnotherClusterWhileAnAssignmentIsWritten(t *testing.T) {
	d := newDrive(t)
	d.cluster = []string{"key-1"}
	d.boot().pass(time.Minute).good("good").fresh()
	d.decide(assigned("late", "1", "late"))
	if _, saving := d.step.Do.(Save); !saving {
		t.Fatalf("under way is %T", d.step.Do)
	}
	late := d.step.Do
	d.decide(ClusterSeen{Keys: []string{"key-2"}})
	d.hear(d.answer(late)).pass(time.Minute)
	d.expectDone("stop", "start local").expect("assigned=- active=- lkg=- True Local")
	if d.disk.Assigned != nil || d.disk.Text != "" {
		t.Errorf("on disk: %+v", d.disk)
	}
}
