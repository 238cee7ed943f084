package forecast

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// A topology manager asks the same as before where nothing of it has changed.
func TestNUMARules(t *testing.T) {
	base := func(c *Configuration) {
		staticCPUs("1")(c)
		c.TopologyManagerPolicy, c.TopologyManagerScope = "restricted", "pod"
	}
	for name, row := range map[string]struct {
		change                                      func(*Configuration)
		strict, single, wholePod, asItWas, bySocket bool
	}{
		"nothing":    {func(*Configuration) {}, true, false, true, true, false},
		"the policy": {func(c *Configuration) { c.TopologyManagerPolicy = "single-numa-node" }, true, true, true, false, false},
		"no policy":  {func(c *Configuration) { c.TopologyManagerPolicy = "none" }, false, false, true, false, false},
		"the scope":  {func(c *Configuration) { c.TopologyManagerScope = "container" }, true, false, false, false, false},
		"an option": {func(c *Configuration) {
			c.TopologyManagerOptions = map[string]string{"prefer-closest-numa-nodes": "true"}
		}, true, false, true, false, false},
		"align by socket": {func(c *Configuration) { c.CPUManagerPolicyOptions[alignBySocket] = "true" }, true, false, true, false, true},
		"another option":  {func(c *Configuration) { c.CPUManagerPolicyOptions[wholeCores] = "true" }, true, false, true, true, false},
	} {
		r := numaRuleOf(configuration(base, row.change), configuration(base), Host{})
		if r.strict != row.strict || r.single != row.single || r.wholePod != row.wholePod || r.asItWas != row.asItWas || r.bySocket != row.bySocket {
			t.Errorf("%s: %+v", name, r)
		}
	}
	h := machine()
	built(4, 1, 2)(&h)
	h.CPUs[2].Node = 0
	r := numaRuleOf(configuration(base), configuration(base), h)
	if !slices.Equal(r.nodes, []int{3, 1}) || r.fewest(3) != 1 || r.fewest(4) != 2 || r.fewest(1) != 1 || r.fewest(9) != 2 {
		t.Errorf("%v: %d, %d, %d and %d nodes", r.nodes, r.fewest(3), r.fewest(4), r.fewest(1), r.fewest(9))
	}
}

// Where its containers are, and have to be, decides over a pod; what it gets alone counts, and nothing else.
func TestPlacesOfContainers(t *testing.T) {
	h := machine()
	built(4, 1, 2)(&h) // CPUs 0 and 1 on node 0, 2 and 3 on node 1
	rule := func(changes ...func(*numaRule)) numaRule {
		r := numaRule{strict: true, host: h, nodes: []int{2, 2}}
		for _, change := range changes {
			change(&r)
		}
		return r
	}
	single, whole := func(r *numaRule) { r.single = true }, func(r *numaRule) { r.wholePod = true }
	asItWas, bySocket := func(r *numaRule) { r.asItWas = true }, func(r *numaRule) { r.bySocket = true }
	lax, oneNode := func(r *numaRule) { r.strict = false }, func(r *numaRule) { r.host.NUMANodes = r.host.NUMANodes[:1] }
	unknown := func(r *numaRule) { r.nodes = nil }
	sizes := func(list ...int) func(*numaRule) { return func(r *numaRule) { r.nodes = list } }
	has := func(cpus ...int) []cpuPool {
		return []cpuPool{{has: map[string]map[string][]int{"uid-a": {"main": cpus}}}}
	}
	none := []cpuPool{{}}
	all := []cpuPool{{allHave: true}}
	free := []memoryPool{{}}
	own := []memoryPool{{allHave: true}}
	memory := map[corev1.ResourceName]uint64{"memory": 1}
	cpus := func(list ...int) (containers []container) {
		for i, count := range list {
			containers = append(containers, container{name: []string{"main", "second"}[i], cpus: count})
		}
		return containers
	}
	for name, row := range map[string]struct {
		rule       numaRule
		cpus       []cpuPool
		memory     []memoryPool
		containers []container
		devices    bool
		at         int
		want       string // with ? where it is in doubt
	}{
		"nothing is asked":                     {rule(lax), none, nil, cpus(2), true, 0, ""},
		"one node":                             {rule(oneNode), none, nil, cpus(2), true, 0, ""},
		"nothing alone":                        {rule(), nil, nil, cpus(2), false, 0, ""},
		"no CPUs alone":                        {rule(), none, nil, cpus(0), false, 0, ""},
		"memory without a manager":             {rule(), none, nil, []container{{name: "main", memory: memory}}, false, 0, ""},
		"memory":                               {rule(), none, free, []container{{name: "main", memory: memory}}, false, 0, affinityError + "?"},
		"no memory":                            {rule(), none, free, cpus(0), false, 0, ""},
		"memory of one of two":                 {rule(whole), none, free, []container{{name: "main", memory: memory}, {name: "second"}}, false, 0, affinityError + "?"},
		"devices":                              {rule(), nil, nil, cpus(0), true, 0, affinityError + "?"},
		"devices without containers":           {rule(), nil, nil, nil, true, 0, affinityError + "?"},
		"given anew":                           {rule(), none, nil, cpus(1), false, 0, affinityError + "?"},
		"more than a node has":                 {rule(single), none, nil, cpus(3), false, 0, affinityError},
		"as many as a node has":                {rule(single), none, nil, cpus(2), false, 0, affinityError + "?"},
		"more than a node has, together":       {rule(single), none, nil, cpus(2, 1), false, 0, affinityError + "?"},
		"more than a node has, of a whole pod": {rule(single, whole), none, nil, cpus(2, 1), false, 0, affinityError},
		"of a whole pod, the second":           {rule(single, whole), none, nil, cpus(2, 1), false, 1, ""},
		"the second":                           {rule(single), none, nil, cpus(0, 3), false, 1, affinityError},
		"more than one node may take":          {rule(), none, nil, cpus(3), false, 0, affinityError + "?"},
		"nodes of unknown size":                {rule(single, unknown), none, nil, cpus(3), false, 0, affinityError + "?"},
		"as it was, and it has them":           {rule(asItWas), has(0, 2), nil, cpus(2), false, 0, ""},
		"as it was, and it has none":           {rule(asItWas), none, nil, cpus(2), false, 0, affinityError + "?"},
		"as it was, and its memory":            {rule(asItWas), has(0, 2), own, []container{{name: "main", cpus: 2, memory: memory}}, false, 0, ""},
		"as it was, and not its memory":        {rule(asItWas), has(0, 2), free, []container{{name: "main", cpus: 2, memory: memory}}, false, 0, affinityError + "?"},
		"as it was, and another has no memory": {rule(asItWas, whole), has(0, 2), own, []container{{name: "main", cpus: 2}, {name: "second", memory: memory}}, false, 0, ""},
		"on one node":                          {rule(), has(0, 1), nil, cpus(2), false, 0, ""},
		"on two nodes":                         {rule(), has(0, 2), nil, cpus(2), false, 0, affinityError},
		"on two nodes, as it takes":            {rule(), has(0, 1, 2), nil, cpus(3), false, 0, ""},
		"on two nodes, by socket":              {rule(bySocket), has(0, 2), nil, cpus(2), false, 0, affinityError + "?"},
		"on two nodes, of a whole pod":         {rule(whole), has(0, 2), nil, cpus(2), false, 0, affinityError + "?"},
		"on two nodes, with devices":           {rule(), has(0, 2), nil, cpus(2), true, 0, affinityError + "?"},
		"on two nodes, with memory":            {rule(), has(0, 2), own, []container{{name: "main", cpus: 2, memory: memory}}, false, 0, affinityError + "?"},
		"on two nodes of unknown size":         {rule(unknown), has(0, 2), nil, cpus(2), false, 0, affinityError + "?"},
		"as many as the larger node has":       {rule(single, sizes(3, 1)), none, nil, cpus(3), false, 0, affinityError + "?"},
		"more than the larger node has":        {rule(single, sizes(3, 1)), none, nil, cpus(4), false, 0, affinityError},
		"more than the one node with CPUs has": {rule(single, sizes(2)), none, nil, cpus(3), false, 0, affinityError},
		"on two nodes, and one has all CPUs":   {rule(sizes(4)), has(0, 2), nil, cpus(2), false, 0, affinityError},
		"as it was, and one has no memory":     {rule(asItWas, whole), has(0, 2), []memoryPool{{has: map[string]map[string]bool{"uid-a": {"second": true}}}}, []container{{name: "main", cpus: 2}, {name: "second", memory: memory}}, false, 0, ""},
		"they all have theirs, and not where":  {rule(), all, nil, cpus(2), false, 0, affinityError + "?"},
	} {
		pod := aPod("a", 0)
		m := managers{numa: row.rule, cpus: row.cpus, memory: row.memory}
		v := m.place(&candidate{pod: &pod, runs: true, containers: row.containers, devices: row.devices}, row.at)
		got := v.Reason
		if v.refused() && !v.certain {
			got += "?"
		}
		if got != row.want || v.refused() && v.why == "" {
			t.Errorf("%s: %q (%s), want %q", name, got, v.why, row.want)
		}
	}
}

// The words have the size of the largest node.
func TestTheLargestNode(t *testing.T) {
	m := managers{numa: numaRule{strict: true, single: true, nodes: []int{3, 1}}, cpus: []cpuPool{{}}}
	pod := aPod("a", 0)
	if v := m.place(&candidate{pod: &pod, containers: []container{{cpus: 4}}}, 0); v.why != "it wants 4 CPUs of one NUMA node, and none has more than 3" {
		t.Errorf("%+v", v)
	}
}
