package core

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
)

// drive plays the shell for the core: it answers every action at once, keeps the disk, moves the clock to each due time, and writes
// down what was done. Tests read like: hear this, let so much time pass, and this was done and this is shown.
type drive struct {
	t          *testing.T
	s          State
	step       Step
	now        time.Duration
	wallOff    time.Duration // how wrong the wall clock is
	disk       Durable
	did        []string
	saves      []time.Duration         // when something was written
	began      time.Duration           // when the test began to look
	actions    map[reflect.Type]Action // the last of each kind
	events     []string
	told       []NodeEvent       // the same, in full
	phases     []string          // of changes that have ended
	refused    map[string]Proof  // by content; what is not named is accepted
	effect     map[string]string // by content, and the drop-in files behind a blank if they are not those of testKubelet: its effective configuration
	shadowed   []nodev1.ShadowedField
	version    string // of the kubelet, as it tells
	saveErr    error
	startErr   map[string]error          // by content: its file cannot be made
	deadly     map[string]time.Duration  // by content ("" = local): exits so long after its start
	short      map[string]bool           // by content: for want of inotify instances
	lease      map[string]bool           // by content: whether it renews the Lease; absent = yes
	hangs      map[string]bool           // never healthy
	portShared bool                      // that one is the fallback's, too
	portHeld   map[string]bool           // never healthy either: its healthz port is another process's
	kills      map[string]int            // by content: so many running pods would be killed at its start
	obstacles  map[string][]Obstacle     // by content: what its start would meet on the host
	doubtful   []nodev1.Loss             // pods of which no look can tell whether they go
	deaf       time.Duration             // until then nobody tells what runs
	unsure     string                    // what a forecast does not know, and nobody can say
	silent     string                    // who does not answer a look
	untold     bool                      // what is to run is not told to a look
	mute       map[string]int            // by content: so many pre-flights give no answer; negative = none ever does
	pods       string                    // a prefix of the uids of the pods that would be killed
	starts     func(Start) (Event, bool) // what answers a start in the place of a child
	begins     func(Start)               // beside a child that starts
	proves     func(content string)      // beside a pre-flight
	parks      map[string]ParkEnded      // by content; absent: it waits
	waited     bool                      // the supervisor that boots found a kubelet that waited
	sets       func(SetAside) FilesSetAside
	writes     func(WriteBack) LimitsWrittenBack
	bootID     string
	ownLooks   bool              // the test looks at the Lease itself
	ownNode    bool              // and at the Node's conditions
	looks      bool              // at the Node: one is under way
	looked     []time.Duration   // when it was looked at
	bad        map[string]string // by content: the Node's conditions that are bad with it
	posted     string            // the newest of them, by a kubelet that was healthy
	came       PodStarts         // what a look at the pods says
	cluster    []string
	online     bool
	tries      []int // what the pre-flights without an answer were told of those before
	nonces     int
	asked      []string          // kubelets, for what they run with
	knows      map[HoldTold]harm // what the looks at each change have answered
	used       map[string]bool   // approvals that had their effect
	said       []string          // approvals that a person has read
	own        string            // content of the node's own file
	broken     map[string]bool   // by content of the node's own file: no layers can be laid over it
	guilty     string            // what comes of looking for whom to blame
	watch      func(before, after *State, e Event)
}

var (
	testKubelet  = kubeletconfig.Identity{Binary: "binary-1", Arguments: "arguments-1", Local: "local-1"}
	testSettings = Settings{TrialPeriod: 10 * time.Minute, TrialFailures: 3, StartTimeout: 2 * time.Minute, EditSpread: 0}
)

const (
	healthyAfter  = 300 * time.Millisecond
	lookInterval  = 10 * time.Second // at the Lease
	portSeenAfter = 4 * time.Second
	heldByNginx   = "its healthz port 10248 is held by another process (nginx, pid 123)"
)

func newDrive(t *testing.T, changes ...func(*Settings)) *drive {
	settings := testSettings
	for _, change := range changes {
		change(&settings)
	}
	return &drive{t: t, s: New(settings), now: time.Hour, refused: map[string]Proof{}, deadly: map[string]time.Duration{}, short: map[string]bool{},
		lease: map[string]bool{}, effect: map[string]string{}, actions: map[reflect.Type]Action{}, hangs: map[string]bool{}, portHeld: map[string]bool{}, parks: map[string]ParkEnded{}, kills: map[string]int{}, mute: map[string]int{}, knows: map[HoldTold]harm{}, used: map[string]bool{}, bad: map[string]string{}, bootID: "boot-1", online: true,
		own: "local", broken: map[string]bool{}, obstacles: map[string][]Obstacle{}}
}

// boot starts a supervisor on what the disk holds.
func (d *drive) boot() *drive { return d.start().pass(time.Second) }

// start boots, up to a kubelet that does not answer yet.
func (d *drive) start() *drive {
	noted, said := d.s.LastChange, d.s.Said
	d.s = New(d.s.Settings)
	disk := d.disk
	if v := disk.Assigned; v != nil && v.Base != "" {
		disk.Assigned = d.over(*v)
	}
	d.hear(Booted{Disk: disk, Kubelet: testKubelet, Local: d.own, BootID: d.bootID, Cluster: d.cluster, Waited: d.waited, LastChange: noted, Said: said})
	return d
}

func (d *drive) hear(e Event) *drive {
	d.decide(e)
	for range 100 {
		do := d.step.Do
		if d.looks && !d.ownNode { // beside the action
			d.decide(d.lookAtNode())
			do = cmp.Or(do, d.step.Do)
		}
		answer := d.answer(do)
		if answer == nil {
			return d
		}
		d.decide(answer)
	}
	d.t.Fatalf("the core does not come to rest: %s", strings.Join(d.did[len(d.did)-20:], ", "))
	return d
}

func (d *drive) decide(e Event) {
	wall := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(d.now + d.wallOff)
	before := d.s
	d.s, d.step = Decide(d.s, Moment{Now: d.now, Wall: wall}, e)
	if d.watch != nil {
		d.watch(&before, &d.s, e)
	}
	d.looks = d.looks || d.step.LookAtNode
	for _, e := range d.step.Events {
		d.events = append(d.events, e.Reason)
		d.told = append(d.told, e)
	}
	for _, p := range d.step.Phases {
		d.phases = append(d.phases, fmt.Sprintf("%s of %s %s", p.Phase, nameOf(p.To), p.Took))
	}
	d.expectDurable()
	d.expectAlone()
	d.expectApproved(e)
	d.expectAlike()
}

// expectAlike: programs and people are told the same.
func (d *drive) expectAlike() {
	d.t.Helper()
	r, _ := Report(d.s)
	if r.Details.Reason != r.Reason || r.Status != nodev1.ConditionStatus(r.Reason) {
		d.t.Errorf("the condition says %s %s, the details %s", r.Status, r.Reason, r.Details.Reason)
	}
	switch r.Reason {
	case nodev1.ReasonRefused, nodev1.ReasonRolledBack, nodev1.ReasonRejected, nodev1.ReasonLastKnownGoodFailed:
		if r.Details.Failure == nil {
			d.t.Errorf("%s without a failure: %s", r.Reason, r.Message)
		}
	case nodev1.ReasonLocal, nodev1.ReasonActive, nodev1.ReasonInTrial:
		if f := r.Details.Failure; f != nil {
			d.t.Errorf("%s with failure %+v", r.Reason, *f)
		}
	}
}

// expectDurable: a verdict is told once it is on the disk, if that can be written.
func (d *drive) expectDurable() {
	if _, due := Report(d.s); !due || d.s.Stopping || d.s.SaveError != "" || d.saveErr != nil {
		return
	}
	if !reflect.DeepEqual(d.s.LastKnownGood, d.disk.LastKnownGood) {
		d.t.Errorf("%s is told to be lastKnownGood, and on the disk is %s", nameOf(d.s.LastKnownGood), nameOf(d.disk.LastKnownGood))
	}
	for _, x := range d.s.Rejected {
		if !slices.Contains(d.disk.Rejected, x) {
			d.t.Errorf("told is the rejection of %+v, and on the disk are %+v", x, d.disk.Rejected)
		}
	}
}

func (d *drive) answer(do Action) Event {
	d.actions[reflect.TypeOf(do)] = do
	switch do := do.(type) {
	case Save:
		d.saves = append(d.saves, d.now)
		if d.saveErr == nil {
			d.disk = do.Durable
		}
		return Saved{Err: d.saveErr}
	case Prove:
		content := do.Local
		if do.Version != nil {
			content = do.Version.Content
		}
		d.note("prove " + content)
		if d.proves != nil {
			d.proves(content)
		}
		if left := d.mute[content]; left != 0 {
			d.mute[content] = max(left-1, -1)
			d.tries = append(d.tries, do.Tries)
			return Proved{Proof: Proof{Content: content, Kubelet: do.Kubelet, Outcome: kubeletconfig.Unknown, Words: mutePreflight}, Unanswered: true, Nonce: d.nonce()}
		}
		proof, known := d.refused[content]
		if !known {
			effect := content
			if do.Kubelet.Local != testKubelet.Local {
				effect += " " + do.Kubelet.Local
			}
			proof = Proof{Outcome: kubeletconfig.Accepted, Effective: d.effect[effect], Shadowed: d.shadowed, Version: d.version}
		}
		proof.Content, proof.Kubelet = content, do.Kubelet
		return Proved{Proof: proof, NoRoom: proof.Words == errCrowded.Error(), Nonce: d.nonce()}
	case Foresee:
		d.note("foresee " + do.Content)
		return d.foresees(do)
	case Ask:
		d.asked = append(d.asked, nameOf(do.Version))
		return Asked{Open: d.now < d.deaf}
	case Park:
		d.note("park " + nameOf(do.Version))
		if ended, is := d.parks[nameOf(do.Version)]; is {
			return ended
		}
		return ParkEnded{Waits: true}
	case Unpark:
		d.note("unpark")
		return Unparked{}
	case Start:
		switch {
		case d.s.Child.Alive:
			d.t.Fatal("two kubelets: a start beside a running one")
		case do.Waits:
			d.note("let through " + nameOf(do.Version))
		case d.s.Parked != nil:
			d.t.Fatal("two kubelets: a start beside one that waits")
		default:
			d.note("start " + nameOf(do.Version))
		}
		if d.starts != nil {
			if answer, is := d.starts(do); is {
				return answer
			}
		}
		if d.begins != nil {
			d.begins(do)
		}
		err := d.startErr[contentOf(do.Version)]
		if do.Waits {
			return Started{Locked: true}
		}
		return Started{Err: err, Unrenderable: err != nil, Delay: time.Second, Locked: do.Lock}
	case Merge:
		d.note("merge " + do.Version.Source.Name)
		if d.broken[do.Local] {
			return Merged{Local: do.Local, Fault: "it does not decode"}
		}
		return Merged{Local: do.Local, Version: d.over(do.Version)}
	case Blame:
		d.note("blame " + do.Version.Content)
		return Blamed{Content: do.Version.Content, Kubelet: do.Kubelet, Words: d.guilty}
	case Stop:
		if do.Hung != "" {
			d.note("dump")
			return ChildExited{Code: 2, Words: do.Hung, Delay: 250 * time.Millisecond}
		}
		d.note("stop")
		return ChildExited{Asked: true, Code: 143, Words: "exit code 143", Delay: time.Minute}
	case SetAside:
		d.note("set aside")
		if d.sets != nil {
			return d.sets(do)
		}
		return FilesSetAside{}
	case WriteBack:
		d.note("write back")
		if d.writes != nil {
			return d.writes(do)
		}
		return LimitsWrittenBack{}
	case Exit:
		d.note("exit")
	}
	return nil
}

// lookAtNode is a look at the Node's conditions, which a kubelet posts as soon as it is healthy.
func (d *drive) lookAtNode() ConditionsSeen {
	d.looks = false
	if !d.online {
		return ConditionsSeen{}
	}
	d.looked = append(d.looked, d.now)
	c := d.s.Child
	if c.EverHealthy {
		d.posted = d.bad[contentOf(c.Version)]
	}
	return ConditionsSeen{Conditions: Conditions{Known: true, Bad: d.posted}, Posted: c.EverHealthy, Before: !c.EverHealthy, Pods: d.came}
}

const mutePreflight = "no verdict of the pre-flight: the kubelet did not finish"

// foresees answers a look.
func (d *drive) foresees(do Foresee) Foreseen {
	if d.silent != "" || d.untold {
		return Foreseen{Change: do.Change, WaitsFor: cmp.Or(d.silent, mutePreflight), Nonce: d.nonce(), Obstacles: d.obstacles[do.Content], Unseen: d.untold}
	}
	answer := Foreseen{Change: do.Change, Known: d.unsure == "", Lost: d.kills[do.Content], InDoubt: d.doubtful, Warning: d.unsure, Nonce: d.nonce(), Obstacles: d.obstacles[do.Content]}
	for i := range answer.Lost {
		pod := fmt.Sprintf("%s%d", d.pods, i+1)
		answer.Losses = append(answer.Losses, nodev1.Loss{Pod: "default/" + pod, UID: "uid-" + pod, Reason: "OutOfpods"})
	}
	if answer.Lost > 0 {
		answer.Words = fmt.Sprintf("%d of 7 running pods would be killed at the restart", answer.Lost)
	}
	return answer
}

func (d *drive) nonce() string {
	d.nonces++
	return fmt.Sprint("nonce-", d.nonces)
}

// approve gives the approval that the status tells of, as a person does who reads it.
func (d *drive) approve() *drive {
	d.t.Helper()
	return d.hear(Consented{Value: d.approval()})
}

func (d *drive) approval() string {
	d.t.Helper()
	h := d.s.HoldStatus()
	if h == nil {
		d.t.Fatalf("nothing is held: %s", d.shown())
	}
	return h.Approval
}

// pass lets time pass. Children become healthy, renew their Lease and die as told; due times are kept.
func (d *drive) pass(span time.Duration) *drive {
	end := d.now + span
	for range 10_000 {
		at, is := d.next(end)
		d.now = at
		d.hear(is)
		if at == end {
			return d
		}
	}
	d.t.Fatal("time does not pass")
	return d
}

// next is what happens first until end.
func (d *drive) next(end time.Duration) (time.Duration, Event) {
	at, is := end, Event(Ticked{})
	sooner := func(t time.Duration, event Event) {
		if t = max(t, d.now); t < at {
			at, is = t, event
		}
	}
	if d.step.Wake >= 0 {
		sooner(d.step.Wake, Ticked{})
	}
	c := d.s.Child
	if !c.Alive {
		return at, is
	}
	content := contentOf(c.Version)
	if life, deadly := d.deadly[content]; deadly {
		sooner(c.Started+life, ChildExited{Code: 1, Words: "exit code 1: it is deadly", OutOfInotify: d.short[content], Delay: 250 * time.Millisecond})
	}
	switch {
	case d.portHeld[content] && !c.EverHealthy:
		if c.PortHeld == "" {
			sooner(c.Started+portSeenAfter, PortSeen{HeldBy: heldByNginx, Shared: d.portShared})
		}
	case !c.Healthy && !d.hangs[content]:
		sooner(c.Started+healthyAfter, Healthy{})
	}
	if d.step.WatchLease && !d.ownLooks {
		renews, said := d.lease[content]
		if look := (d.now/lookInterval + 1) * lookInterval; look <= at { // a look is as good as a tick
			at, is = look, LeaseSeen{Reachable: d.online, Renewed: d.online && (renews || !said)}
		}
	}
	return at, is
}

func nameOf(v *Version) string {
	if v == nil {
		return "local"
	}
	return v.Content
}

// note writes an action down. Saves have a list of their own.
func (d *drive) note(action string) { d.did = append(d.did, action) }

// assign resolves an assignment to NAME at resourceVersion rv with the given content.
func (d *drive) assign(content string, source ...string) *drive {
	name, rv := content, "1"
	if len(source) == 2 {
		name, rv = source[0], source[1]
	}
	return d.hear(assigned(name, rv, content))
}

// edit edits ConfigMap cm in place, and lets the edit settle.
func (d *drive) edit(content, rv string) *drive {
	d.assign(content, "cm", rv)
	if d.s.Edit != nil {
		d.pass(d.s.SettlesAt - d.now)
	}
	return d
}

func assigned(name, rv, content string) Assigned {
	return Assigned{Text: "kube-system/" + name + "/kubelet", NodeUID: "node-uid", Version: *version(name, rv, content)}
}

func version(name, rv, content string) *Version {
	return &Version{Content: content, Source: corev1.ConfigMapNodeConfigSource{
		Namespace: "kube-system", Name: name, KubeletConfigKey: "kubelet", UID: "uid-of-" + "cm", ResourceVersion: rv}}
}

func (d *drive) refuse(content string, load bool) *drive {
	d.refused[content] = Proof{Outcome: kubeletconfig.Refused, Load: load, Words: "the kubelet says no"}
	return d
}

// good brings a configuration to lastKnownGood.
func (d *drive) good(content string) *drive {
	d.assign(content).pass(testSettings.TrialPeriod + time.Minute)
	if contentOf(d.s.LastKnownGood) != content {
		d.t.Fatalf("%s did not become lastKnownGood: %s", content, d.shown())
	}
	return d
}

var errDisk = errors.New("no space left on device")
