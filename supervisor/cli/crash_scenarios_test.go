//go:build linux

package cli

import "github.com/kubelet-supervisor/kubelet-supervisor/test/fakenode"

// scenario is a change that a supervisor is killed in the middle of.
type scenario struct {
	base      bool // a configuration that passed its trial runs before; else local
	flags     []string
	do        func(api *apiServer)
	unproven  bool           // base was not tried with this kubelet yet: it is on trial once more
	stops     bool           // the change is SIGTERM to the supervisor
	reloads   bool           // it is SIGHUP: its own program takes its place
	whole     bool           // also the points before the change
	after     []string       // what the Node shows in the end: one of these
	candidate string         // what is on trial
	pods      int            // that run on the node; a person approves that they are killed
	starts    map[string]int // how often what may be started, a crash included; what is absent never

	baseBehaviour string   // of base's kubelet; empty: ok
	dropIns       bool     // there is a folder of them
	ownKubelet    bool     // the kubelet's program is this node's alone
	baseFields    string   // more fields of base
	localFields   string   // more fields of local
	wrote         string   // the policy of the CPU manager's state file before; empty = there is none
	policy        string   // and in the end; empty = none
	asides        []string // the state files that are aside in the end
	limits        bool     // the node has a cgroup of the system whose limit is limitBefore, before and in the end
	baseLimits    string   // what base makes of it
}

const (
	static      = "cpuManagerPolicy: static\n"
	noneAside   = "cpu_manager_state.aside-none"
	staticAside = "cpu_manager_state.aside-static"
)

const someStarts = 3 // one more than without a crash, and one for a crash while it was restarted

var scenarios = map[string]scenario{
	"start": {
		base: true, whole: true,
		do:     func(*apiServer) {},
		after:  []string{"Active assigned=base@1 active=base@1 lkg=base@1"},
		starts: map[string]int{"base": 2},
	},
	"stop in a trial": {
		base: true, unproven: true, stops: true,
		do:     func(*apiServer) {},
		after:  []string{"InTrial assigned=base@1 active=base@1 lkg=base@1"}, // a stop that was asked for costs no try
		starts: map[string]int{"base": 2},
	},
	"reload": {
		base: true, reloads: true,
		do:     func(*apiServer) {},
		after:  []string{"Active assigned=base@1 active=base@1 lkg=base@1"},
		starts: map[string]int{"base": 2},
	},
	"assign": {
		wrote: "none", policy: "static", asides: []string{noneAside},
		do: func(api *apiServer) {
			api.put("next", fakenode.Configuration("mode: ok")+static)
			api.assign("next")
		},
		after:     []string{"InTrial assigned=next@1 active=next@1 lkg=local"},
		candidate: "next",
		starts:    map[string]int{"local": someStarts, "next": 2},
	},
	"edit": {
		base:      true,
		do:        func(api *apiServer) { api.put("base", fakenode.Configuration("mode: ok, words: edited")) },
		after:     []string{"InTrial assigned=base@2 active=base@2 lkg=base@1"},
		candidate: "base",
		starts:    map[string]int{"older": someStarts, "base": 2},
	},
	"refused": {
		base: true,
		do: func(api *apiServer) {
			api.put("bad", fakenode.Configuration("mode: refuse, words: maxPods must not be -1"))
			api.assign("bad")
		},
		after:  []string{"Refused assigned=bad@1 active=base@1 lkg=base@1"},
		starts: map[string]int{"base": 2},
	},
	"deadly": {
		base: true,
		do: func(api *apiServer) {
			api.put("deadly", fakenode.Configuration("mode: crash, after: 20ms, words: no such cgroup"))
			api.assign("deadly")
		},
		after:  []string{"RolledBack assigned=deadly@1 active=base@1 lkg=base@1", "Rejected assigned=deadly@1 active=base@1 lkg=base@1"},
		starts: map[string]int{"base": someStarts, "deadly": 3},
	},
	"approve": { // of two pods one is killed
		pods: 2,
		do: func(api *apiServer) {
			api.put("next", fakenode.Configuration("mode: ok")+"maxPods: 1\n")
			api.assign("next")
		},
		after:     []string{"InTrial assigned=next@1 active=next@1 lkg=local"},
		candidate: "next",
		starts:    map[string]int{"local": someStarts, "next": 2},
	},
	"approve the way back": {
		base: true, pods: 2, localFields: "maxPods: 1\n",
		do:     func(api *apiServer) { api.assign("") },
		after:  []string{"Local assigned=local active=local lkg=local"},
		starts: map[string]int{"base": someStarts, "local": 2},
	},
	"remove": {
		base: true, baseFields: static, wrote: "static", asides: []string{staticAside},
		do:     func(api *apiServer) { api.assign("") },
		after:  []string{"Local assigned=local active=local lkg=local"},
		starts: map[string]int{"base": someStarts, "local": 2},
	},
	"promote": { // what was set aside for it is of no use any more
		flags: []string{"--trial-period=1s"}, wrote: "none", policy: "static",
		do: func(api *apiServer) {
			api.put("next", fakenode.Configuration("mode: ok")+static)
			api.assign("next")
		},
		after:     []string{"Active assigned=next@1 active=next@1 lkg=next@1"},
		candidate: "next",
		starts:    map[string]int{"local": someStarts, "next": 2},
	},
	"another after static": {
		base: true, baseFields: static, wrote: "static", asides: []string{staticAside},
		do: func(api *apiServer) {
			api.put("next", fakenode.Configuration("mode: ok"))
			api.assign("next")
		},
		after:     []string{"InTrial assigned=next@1 active=next@1 lkg=base@1"},
		candidate: "next",
		starts:    map[string]int{"base": someStarts, "next": 2},
	},
	"limits that are removed": {
		base: true, limits: true, baseLimits: "66",
		do:     func(api *apiServer) { api.assign("") },
		after:  []string{"Local assigned=local active=local lkg=local"},
		starts: map[string]int{"base": someStarts, "local": 2},
	},
	"deadly limits": { // it sets them before it dies of something else, and the fallback has others
		base: true, limits: true, baseLimits: "66",
		do: func(api *apiServer) {
			api.put("deadly", fakenode.Configuration("mode: crash, healthyFirst: true, after: 100ms, words: no such cgroup")+api.limitedTo("55"))
			api.assign("deadly")
		},
		after:  []string{"RolledBack assigned=deadly@1 active=base@1 lkg=base@1", "Rejected assigned=deadly@1 active=base@1 lkg=base@1"},
		starts: map[string]int{"base": someStarts, "deadly": 3},
	},
	"deadly static": { // it writes its state file before it dies of something else
		wrote: "none", asides: []string{noneAside, staticAside},
		do: func(api *apiServer) {
			api.put("deadly", fakenode.Configuration("mode: crash, healthyFirst: true, after: 100ms, words: no such cgroup")+static)
			api.assign("deadly")
		},
		after:  []string{"RolledBack assigned=deadly@1 active=local lkg=local", "Rejected assigned=deadly@1 active=local lkg=local"},
		starts: map[string]int{"local": someStarts, "deadly": 3},
	},
}
