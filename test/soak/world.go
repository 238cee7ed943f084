//go:build linux

package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// A quality is what becomes of a payload that is assigned.
type quality int

const (
	none    quality = iota // no payload: local
	good                   // runs
	refused                // the pre-flight refuses it, or it does not decode
	deadly                 // the pre-flight accepts it, and the kubelet dies of it
	harmful                // runs, but with it the kubelet ends pods: it waits for an approval, as long as so many run
)

// runs: a kubelet runs with it.
func (q quality) runs() bool { return q == none || q == good || q == harmful }

// A payload is known by its number, which is its maxPods too: configz tells which one really runs. There are so few that they come
// again, as verdicts do.
type payload struct {
	quality quality
	number  int
}

func (p payload) String() string {
	return p.quality.String() + [...]string{"", fmt.Sprintf(" %d", p.number)}[min(int(p.quality), 1)]
}

func (q quality) String() string {
	return [...]string{"local", "good", "refused", "deadly", "harmful"}[q]
}

// numbers are those of the payloads of a quality.
var numbers = map[quality][]int{
	good:    {31, 32, 33, 34, 35, withStaticCPUs, withStaticCPUs, withStaticMemory, withLongLease},
	refused: {51, 52, 53},                       // by validation; by decoding; by a panic
	deadly:  {41, 42, 43, deadlyWithStaticCPUs}, // odd: at once; even: after healthz was ok
	harmful: {5, 6, 7},                          // fewer pods than run; the static ones have room
}

// Numbers of payloads that do more to a node than others.
const (
	withStaticCPUs       = 36 // another policy than the others have: the kubelet's state files are in its way (rule 17)
	withStaticMemory     = 37 // both of them
	withLongLease        = 38 // 300 s: it is renewed every 75 s, so a trial takes that long
	deadlyWithStaticCPUs = 44 // leaves a state file in the way of what comes after it
)

const (
	namespace = "kube-system"
	payloadAt = "kubelet" // the key
	malformed = "no-assignment-at-all"
	absent    = "soak-absent" // a ConfigMap that is never there
)

var configMaps = []string{"soak-a", "soak-b", "soak-c"}

func assignmentOf(configMap string) string { return namespace + "/" + configMap + "/" + payloadAt }

// A part is what the cluster is made of, as cluster.Signal names it; the network, the disk of STATE_DIR, what the API server answers to the
// supervisor, and the machine's huge pages are four more.
var parts = []string{"kube-apiserver", "etcd", "containerd", network, disk, answers, pages}

const (
	network = "network"
	disk    = "disk"
	answers = "answers"
	pages   = "huge pages"
)

// isProcess tells parts that can be killed from the others.
func isProcess(part string) bool {
	return part != network && part != disk && part != answers && part != pages
}

// A world is what the steps so far have made of everything but the supervisor.
type world struct {
	assignment string             // the annotation; "": absent
	configMaps map[string]payload // those that are there
	broken     map[string]bool    // parts that are killed, stopped, frozen, cut or hung
	frozen     bool               // the kubelet
	suspended  bool               // the supervisor, by SIGSTOP
	clock      time.Duration      // off the true time
	protected  bool               // the supervisor is to live for a while, so that growth in it can be seen
	noPod      bool               // the pod with whole processors is not there
	podChanged bool               // in this round
	hugePages  bool               // there is a pod with some
	quiet      bool               // nothing was done in this round yet
	moved      bool               // something was that a supervisor may restart the kubelet for
	approved   payload            // what was approved last; pods may be missing since
	short      bool               // they may be, for nothing that has room for all has been assigned since
}

// newWorld is how everything begins, with all pods there.
func newWorld() world { return world{configMaps: map[string]payload{}, broken: map[string]bool{}} }

// begin begins a round.
func (w *world) begin(protected bool) {
	w.protected, w.podChanged, w.quiet, w.moved = protected, false, true, false
	if p, known := w.wanted(); known && (p.quality == good || p.quality == none) {
		w.short, w.approved = false, payload{} // the last round ended with it
	}
}

func (w world) clone() world {
	w.configMaps, w.broken = maps.Clone(w.configMaps), maps.Clone(w.broken)
	return w
}

// reachable: the API server can be asked, and would answer.
func (w world) reachable() bool {
	return !w.broken["kube-apiserver"] && !w.broken["etcd"] && !w.broken[network]
}

// assigned is the ConfigMap that the annotation names, whether it is there or not.
func (w world) assigned() (configMap string, named bool) {
	words := strings.Split(w.assignment, "/")
	if len(words) != 3 {
		return "", false
	}
	return words[1], true
}

// wanted is what is to run; known is false when the assignment leads to nothing.
func (w world) wanted() (p payload, known bool) {
	if w.assignment == "" || w.assignment == "local" {
		return payload{}, true
	}
	configMap, named := w.assigned()
	p, is := w.configMaps[configMap]
	return p, named && is
}

// holds: what is wanted waits for an approval, unless it was approved and could not be applied.
func (w world) holds() bool {
	p, known := w.wanted()
	return known && p.quality == harmful && p != w.approved
}

// A step is one thing that is done; what it does not do is zero. They are done in this order.
type step struct {
	name string

	remove  string  // this ConfigMap
	put     string  // write the payload into this ConfigMap, made if need be
	payload payload // of put
	label   string  // change only the metadata of this ConfigMap
	assign  *string // set the annotation; "": remove it
	retry   bool

	approve approval  // of what is held
	pod     podChange // of the pod with whole processors

	supervisor signalName
	kubelet    signalName
	part       string // of the cluster
	harm       harm   // done to the part
	jump       time.Duration

	hold  time.Duration // what it freezes or hangs stays so for that long, if the round does not mend it before
	pause time.Duration // after it
}

type signalName string // "KILL", "TERM", "QUIT", "HUP", "STOP", "CONT"

// A podChange is something that is done to a pod; "" is nothing.
type podChange string

const (
	podDeleted podChange = "delete"
	podCreated podChange = "create"
)

// An approval is what a person says to a change that is held; "" is nothing.
type approval string

const (
	approvedOnce  approval = "once"
	approvedTwice approval = "twice" // the same word, taken away and said again
	approvedAny   approval = "any"   // whatever the fresh look names
	approvedStale approval = "stale" // a word of another hold
)

// isValid: it lets the change through.
func (a approval) isValid() bool { return a != "" && a != approvedStale }

// A harm is done to a part of the cluster; "" is none.
type harm string

const (
	killed  harm = "KILL"
	stopped harm = "TERM"
	frozen  harm = "STOP"
	cut     harm = "cut"  // the network
	hung    harm = "hang" // the disk
	busy    harm = "429"  // every other answer
	failing harm = "500"  // every answer
	podless harm = "500 for pods"
	taken   harm = "take" // huge pages
	mended  harm = "mend" // and no harm
)

func (s step) String() string {
	words := []string{s.name}
	if s.remove != "" && s.put == "" {
		words = append(words, s.remove)
	}
	if s.put != "" {
		words = append(words, s.put+" = "+s.payload.String())
	}
	if s.label != "" {
		words = append(words, s.label)
	}
	switch {
	case s.part == answers && s.harm != mended:
		words = append(words, string(s.harm))
	case s.part != "":
		words = append(words, s.part)
	}
	if s.approve != "" {
		words = append(words, string(s.approve))
	}
	if s.jump != 0 {
		words = append(words, s.jump.String())
	}
	return fmt.Sprintf("%s, then %d ms", strings.Join(words, " "), s.pause.Milliseconds())
}

// apply does to the world what the step does.
func (w *world) apply(s step) {
	delete(w.configMaps, s.remove)
	if s.put != "" {
		w.configMaps[s.put] = s.payload
	}
	if s.assign != nil {
		w.assignment = *s.assign
	}
	w.clock += s.jump
	w.quiet = false
	w.moved = w.moved || s.assign != nil || s.put != "" || s.remove != "" || s.retry || s.approve != "" || s.supervisor != ""
	if s.approve.isValid() {
		w.approved, _ = w.wanted()
		w.short = true
	}
	if s.pod != "" {
		w.noPod, w.podChanged = s.pod == podDeleted, true
	}
	switch s.harm {
	case "":
	case mended:
		delete(w.broken, s.part)
	default:
		w.broken[s.part] = true
	}
	switch s.kubelet {
	case "STOP":
		w.frozen = true
	case "KILL", "CONT":
		w.frozen = false
	}
	switch s.supervisor {
	case "STOP":
		w.suspended = true
	case "KILL", "CONT":
		w.suspended = false
	}
}

// mend gives the steps that end all harm that lasts, in the order in which they can be done.
func (w *world) mend() []step {
	var steps []step
	for _, part := range []string{pages, answers, disk, network, "etcd", "kube-apiserver", "containerd"} {
		if w.broken[part] {
			steps = append(steps, step{name: "mend", part: part, harm: mended})
		}
	}
	if w.frozen {
		steps = append(steps, step{name: "thaw the kubelet", kubelet: "CONT"})
	}
	if w.suspended {
		steps = append(steps, step{name: "thaw the supervisor", supervisor: "CONT"})
	}
	for _, s := range steps {
		w.apply(s)
	}
	return steps
}

// strikes tells whether the step may end a kubelet in a way that counts against what it runs.
func (s step) strikes() bool {
	return slices.Contains([]signalName{"KILL", "QUIT"}, s.supervisor) || s.kubelet != "" && s.kubelet != "CONT" || s.part == "containerd" && s.harm != mended
}

// isFault tells faults from changes of the configuration.
func (s step) isFault() bool {
	return s.supervisor != "" && s.supervisor != "HUP" && s.supervisor != "CONT" || s.kubelet != "" && s.kubelet != "CONT" || s.harm != "" && s.harm != mended || s.jump != 0
}
