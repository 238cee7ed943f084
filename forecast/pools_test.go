package forecast

import (
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// A kubelet starts with the CPU manager's file that is there where the machine and the reservation are as the file has them.
func TestKeepsCPUState(t *testing.T) {
	file := func(policy, shared string, own ...int) func(*Host) {
		return func(h *Host) {
			list, _ := parseCPUs(shared)
			h.CPUState = &CPUState{Policy: policy, Shared: list, Entries: map[string]map[string][]int{"uid": {"main": own, "again": own}}}
		}
	}
	blind := func(change func(*Host)) func(*Host) { return func(h *Host) { change(h); h.CPUs = nil } }
	none := func(*Configuration) {}
	strict := staticCPUs("1", strictReservation)
	list := func(cpus string) func(*Configuration) {
		return func(c *Configuration) { staticCPUs("1")(c); c.ReservedSystemCPUs = cpus }
	}
	for name, row := range map[string]struct {
		now, then func(*Configuration)
		host      func(*Host)
		want      certainty
	}{
		"not known, and as before":                {staticCPUs("1"), staticCPUs("1"), func(*Host) {}, yes},
		"not known, as much in other words":       {staticCPUs("700m"), staticCPUs("1"), func(*Host) {}, yes},
		"not known, no policy before":             {none, staticCPUs("1"), func(*Host) {}, no},
		"not known, another number":               {staticCPUs("2"), staticCPUs("1"), func(*Host) {}, perhaps},
		"not known, another list":                 {list("1"), list("0"), func(*Host) {}, perhaps},
		"not known, strict now":                   {staticCPUs("1"), strict, func(*Host) {}, perhaps},
		"not known, strict before":                {strict, staticCPUs("1"), func(*Host) {}, perhaps},
		"not known, and no quantity before":       {staticCPUs("x"), staticCPUs("1"), func(*Host) {}, perhaps},
		"as the machine is":                       {none, staticCPUs("1"), file("static", "0-2", 3), yes},
		"of another policy":                       {none, staticCPUs("1"), file("none", "0-2", 3), no},
		"without shared CPUs":                     {none, staticCPUs("1"), file("static", "", 0, 1, 2, 3), no},
		"of a machine with more CPUs":             {none, staticCPUs("1"), file("static", "0-3", 4), no},
		"of a machine with fewer CPUs":            {none, staticCPUs("1"), file("static", "0-1", 2), no},
		"a reserved CPU is somebody's":            {none, staticCPUs("1"), file("static", "1-3", 0), no},
		"strict, and the reserved ones are in it": {none, strict, file("static", "0-2", 3), no},
		"strict, and they are not":                {none, strict, file("static", "1-2", 3), yes},
		"which are reserved is not known":         {none, staticCPUs("1"), blind(file("static", "0-2", 3)), perhaps},
		"as many as the machine has":              {none, list("0"), blind(file("static", "0-2", 3)), yes},
		"not as many":                             {none, list("0"), blind(file("static", "0-1", 3)), no},
	} {
		h := machine()
		row.host(&h)
		if got := keepsState(configuration(row.then), configuration(row.now), h, 4, 1); got != row.want {
			t.Errorf("%s: %v, want %v", name, got, row.want)
		}
	}
}

func TestSpans(t *testing.T) {
	for name, row := range map[string]struct{ got, want span }{
		"less":                   {span{3, 5}.less(span{1, 2}), span{1, 4}},
		"less than nothing":      {span{3, 5}.less(span{6, 7}), span{0, 0}},
		"more":                   {span{3, 5}.plus(span{1, 2}), span{4, 7}},
		"without":                {span{3, 5}.without(2, true), span{1, 3}},
		"without what is hidden": {span{3, 5}.without(2, false), span{0, 5}},
	} {
		if row.got != row.want {
			t.Errorf("%s: %v, want %v", name, row.got, row.want)
		}
	}
}

// What a CPU manager has without a file, and whether it takes CPUs in one order.
func TestFreshPools(t *testing.T) {
	twoSockets := func(h *Host) { built(4, 1, 1)(h); h.CPUs[2].Socket, h.CPUs[3].Socket = 1, 1 }
	unevenSockets := func(h *Host) { built(4, 1, 1)(h); h.CPUs[3].Socket = 1 }
	unevenCores := func(h *Host) { built(4, 1, 1)(h); h.CPUs[3].Core = 2 }
	list := func(cpus string, options ...string) func(*Configuration) {
		return func(c *Configuration) { staticCPUs("1", options...)(c); c.ReservedSystemCPUs = cpus }
	}
	for name, row := range map[string]struct {
		config                   func(*Configuration)
		host                     func(*Host)
		whole                    span
		inOrder, uneven, oneNode bool
	}{
		"CPUs without siblings":     {staticCPUs("1"), built(4, 1, 1), exactly(3), true, false, true},
		"siblings":                  {staticCPUs("1"), built(4, 2, 1), exactly(2), false, false, true},
		"siblings, whole cores":     {staticCPUs("1", wholeCores), built(4, 2, 1), exactly(2), true, false, true},
		"by cache":                  {staticCPUs("1", preferUncoreCache), built(4, 1, 1), exactly(3), false, false, true},
		"by cache, siblings":        {staticCPUs("1", preferUncoreCache), built(4, 2, 1), span{0, 3}, false, false, true},
		"by cache, a list":          {list("0", preferUncoreCache), built(4, 2, 1), exactly(2), false, false, true},
		"two sockets":               {staticCPUs("1"), twoSockets, exactly(3), false, false, true},
		"two nodes":                 {staticCPUs("1"), built(4, 1, 2), exactly(3), false, false, false},
		"two nodes of one socket":   {staticCPUs("1"), func(h *Host) { built(4, 1, 2)(h); h.CPUs[2].Socket, h.CPUs[3].Socket = 0, 0 }, exactly(3), false, false, false},
		"sockets that differ":       {staticCPUs("1"), unevenSockets, exactly(3), false, true, true},
		"cores that differ":         {staticCPUs("1"), unevenCores, exactly(3), false, true, true},
		"a list of two cores' CPUs": {list("0-1"), built(8, 2, 1), exactly(5), false, false, true},
		"the CPUs are not known":    {list("0"), func(h *Host) { h.CPUs, h.NUMANodes = nil, nil }, span{0, 3}, false, false, false},
	} {
		h := machine()
		row.host(&h)
		all := max(len(h.CPUs), 4)
		p := freshPool(configuration(row.config), h, all, 1)
		if p.free != exactly(all-1) || p.whole != row.whole || p.inOrder != row.inOrder || p.uneven != row.uneven || p.oneNode != row.oneNode || p.has != nil || p.allHave {
			t.Errorf("%s: %+v, want %+v", name, p, row)
		}
	}
}

// What a container gets, or keeps, or does not get, and what is left then.
func TestTakingCPUs(t *testing.T) {
	runs, waits := &candidate{pod: &corev1.Pod{}, runs: true}, &candidate{pod: &corev1.Pod{}}
	main, first := container{name: "main", cpus: 2}, container{name: "first", cpus: 2, ends: true}
	pool := func(free, whole span, changes ...func(*cpuPool)) cpuPool {
		p := cpuPool{free: free, whole: whole, threads: 2, oneNode: true}
		for _, change := range changes {
			change(&p)
		}
		return p
	}
	wholeCores := func(p *cpuPool) { p.wholeCores = true }
	allHave := func(p *cpuPool) { p.allHave = true }
	inOrder := func(p *cpuPool) { p.inOrder = true }
	twoNodes := func(p *cpuPool) { p.oneNode = false }
	noThreads := func(p *cpuPool) { p.wholeCores, p.threads = true, 0 }
	for name, row := range map[string]struct {
		pool               cpuPool
		turn               cpuTurn
		pod                *candidate
		wants              container
		says               string // with ? where it is in doubt
		free, whole, again span
	}{
		"enough":                           {pool(exactly(3), exactly(3)), cpuTurn{}, runs, main, "", exactly(1), exactly(1), span{}},
		"none is wanted":                   {pool(exactly(0), exactly(0)), cpuTurn{}, runs, container{}, "", exactly(0), exactly(0), span{}},
		"an init container":                {pool(exactly(3), exactly(3)), cpuTurn{}, runs, first, "", exactly(1), exactly(1), exactly(2)},
		"what it had is taken again":       {pool(exactly(1), exactly(1), inOrder), cpuTurn{again: exactly(2)}, runs, main, "", exactly(1), exactly(1), exactly(0)},
		"what it had may be taken":         {pool(exactly(1), exactly(1)), cpuTurn{again: exactly(2)}, runs, main, "", span{0, 1}, span{0, 1}, span{0, 1}},
		"too few":                          {pool(exactly(1), exactly(1)), cpuTurn{}, runs, main, "UnexpectedAdmissionError", exactly(1), exactly(1), span{}},
		"perhaps too few":                  {pool(span{1, 3}, span{1, 3}), cpuTurn{}, runs, main, "UnexpectedAdmissionError?", span{0, 3}, span{0, 3}, span{}},
		"it may have been refused":         {pool(exactly(3), exactly(3)), cpuTurn{doubted: true}, runs, main, "", span{1, 3}, span{1, 3}, span{}},
		"it has them":                      {pool(exactly(0), exactly(0), allHave), cpuTurn{}, runs, main, "", exactly(0), exactly(0), span{}},
		"it has them, and ends":            {pool(exactly(0), exactly(0), allHave), cpuTurn{}, runs, first, "", exactly(0), exactly(0), span{0, 2}},
		"it has them, and others had some": {pool(exactly(0), exactly(0), allHave), cpuTurn{again: exactly(3)}, runs, main, "", exactly(0), exactly(0), span{1, 3}},
		"an init container after another":  {pool(exactly(3), exactly(3), inOrder), cpuTurn{again: exactly(1)}, runs, first, "", exactly(2), exactly(2), exactly(2)},
		"only those that run have":         {pool(exactly(0), exactly(0), allHave), cpuTurn{}, waits, main, "UnexpectedAdmissionError", exactly(0), exactly(0), span{}},
		"two nodes":                        {pool(exactly(3), exactly(2), twoNodes), cpuTurn{}, runs, main, "", exactly(1), span{0, 1}, span{}},
		"two nodes, all are whole":         {pool(exactly(3), exactly(3), twoNodes), cpuTurn{}, runs, main, "", exactly(1), exactly(1), span{}},
		"two nodes, few are whole":         {pool(exactly(6), exactly(2), twoNodes), cpuTurn{}, runs, main, "", exactly(4), span{0, 2}, span{}},
		"half a core":                      {pool(exactly(3), exactly(3), wholeCores), cpuTurn{}, runs, container{name: "main", cpus: 1}, "SMTAlignmentError", exactly(3), exactly(3), span{}},
		"no whole cores":                   {pool(exactly(3), exactly(1), wholeCores), cpuTurn{}, runs, main, "SMTAlignmentError", exactly(3), exactly(1), span{}},
		"just one whole core":              {pool(exactly(3), exactly(2), wholeCores), cpuTurn{}, runs, main, "", exactly(1), exactly(0), span{}},
		"perhaps a whole core":             {pool(exactly(3), span{0, 2}, wholeCores), cpuTurn{}, runs, main, "SMTAlignmentError?", span{1, 3}, span{0, 2}, span{}},
		"cores of unknown size":            {pool(exactly(3), exactly(3), noThreads), cpuTurn{}, runs, main, "SMTAlignmentError?", span{1, 3}, span{1, 3}, span{}},
		"its own do not count":             {pool(exactly(0), exactly(0), wholeCores, allHave), cpuTurn{}, runs, main, "SMTAlignmentError", exactly(0), exactly(0), span{}},
		"machines whose cores differ":      {pool(exactly(3), exactly(3), func(p *cpuPool) { p.uneven = true }), cpuTurn{}, runs, main, "", span{1, 3}, span{1, 3}, span{}},
		"again, and a part of it only":     {pool(exactly(3), exactly(3), inOrder), cpuTurn{again: exactly(1)}, runs, main, "", exactly(2), exactly(2), exactly(0)},
	} {
		v := row.pool.take(&row.turn, row.pod, row.wants)
		says := v.Reason
		if v.refused() && !v.certain {
			says += "?"
		}
		if says != row.says || row.pool.free != row.free || row.pool.whole != row.whole || row.turn.again != row.again || v.refused() && v.why == "" {
			t.Errorf("%s: %q, free %v, whole %v, again %v; want %q, %v, %v, %v", name, says, row.pool.free, row.pool.whole, row.turn.again, row.says, row.free, row.whole, row.again)
		}
	}
}

// A memory manager starts with its file where that is of the same machine and the same reservations.
func TestKeepsMemoryState(t *testing.T) {
	reserves := func(memory string) func(*Configuration) {
		return func(c *Configuration) {
			c.MemoryManagerPolicy, c.ReservedMemory = "Static", []ReservedMemory{{Limits: map[string]string{"memory": memory, "hugepages-2Mi": "0"}}}
		}
	}
	amounts := func(memory, reserved uint64) map[string]MemoryAmounts {
		return map[string]MemoryAmounts{"memory": {Total: memory, Reserved: reserved, Free: memory - reserved}, "hugepages-2Mi": {Total: 64}}
	}
	type nodes = map[int]map[string]MemoryAmounts
	file := func(policy string, all nodes) *MemoryState { return &MemoryState{Policy: policy, Nodes: all} }
	node := func(id int, memory, pages int64) NUMANode {
		return NUMANode{ID: id, Memory: memory, HugePages: map[corev1.ResourceName]int64{"hugepages-2Mi": pages}}
	}
	extra := amounts(8, 1)
	extra["hugepages-1Gi"] = MemoryAmounts{}
	for name, row := range map[string]struct {
		now   func(*Configuration)
		state *MemoryState
		nodes []NUMANode
		want  certainty
	}{
		"not known, and as before":    {reserves("1"), nil, nil, yes},
		"not known, no policy before": {func(*Configuration) {}, nil, nil, no},
		"not known, and other":        {reserves("2"), nil, nil, perhaps},
		"not known, and no quantity":  {reserves("x"), nil, nil, perhaps},
		"as it was":                   {nil, file("Static", nodes{0: amounts(8, 1)}), []NUMANode{node(0, 8, 64)}, yes},
		"of another policy":           {nil, file("None", nodes{0: amounts(8, 1)}), []NUMANode{node(0, 8, 64)}, no},
		"of no node":                  {nil, file("Static", nil), nil, no},
		"another reservation":         {nil, file("Static", nodes{0: amounts(8, 2)}), []NUMANode{node(0, 8, 64)}, no},
		"the machine is not known":    {nil, file("Static", nodes{0: amounts(8, 1)}), nil, perhaps},
		"one more node":               {nil, file("Static", nodes{0: amounts(8, 1)}), []NUMANode{node(0, 8, 64), node(1, 8, 64)}, no},
		"one node less":               {nil, file("Static", nodes{0: amounts(8, 1), 1: amounts(8, 0)}), []NUMANode{node(0, 8, 64)}, no},
		"another node":                {nil, file("Static", nodes{0: amounts(8, 1)}), []NUMANode{node(1, 8, 64)}, no},
		"other memory":                {nil, file("Static", nodes{0: amounts(8, 1)}), []NUMANode{node(0, 9, 64)}, no},
		"other huge pages":            {nil, file("Static", nodes{0: amounts(8, 1)}), []NUMANode{node(0, 8, 66)}, no},
		"fewer kinds of pages":        {nil, file("Static", nodes{0: extra}), []NUMANode{node(0, 8, 64)}, no},
		"more kinds of pages":         {nil, file("Static", nodes{0: {"memory": {Total: 8, Reserved: 1}}}), []NUMANode{node(0, 8, 0)}, no},
	} {
		now := configuration()
		if row.now != nil {
			row.now(now)
		}
		reserved, err := configuration(reserves("1")).reservedOnNodes()
		if err != nil {
			t.Fatal(err)
		}
		if got := keepsMemory(now, Host{MemoryState: row.state, NUMANodes: row.nodes}, reserved); got != row.want {
			t.Errorf("%s: %v, want %v", name, got, row.want)
		}
	}
}

// What a memory manager has for Guaranteed pods: of one node what is not reserved, huge pages by their size.
func TestMemoryPools(t *testing.T) {
	c := configuration(func(c *Configuration) {
		c.MemoryManagerPolicy, c.ReservedMemory = "Static", []ReservedMemory{{Limits: map[string]string{"memory": "100", "hugepages-2Mi": "10"}}, {NUMANode: 1, Limits: map[string]string{"memory": "7"}}}
	})
	one := []NUMANode{{Memory: 1000, HugePages: map[corev1.ResourceName]int64{"hugepages-2Mi": 50}}}
	fresh := map[corev1.ResourceName]uint64{"memory": 850, "hugepages-2Mi": 40}
	kept := &MemoryState{Policy: "Static", Nodes: map[int]map[string]MemoryAmounts{0: {"memory": {Total: 1000, Reserved: 100, Free: 3}, "hugepages-2Mi": {Total: 50, Reserved: 10, Free: 4}}}}
	for name, row := range map[string]struct {
		now   *Configuration
		host  Host
		known bool
		all   bool
		free  map[corev1.ResourceName]uint64
	}{
		"one node":              {configuration(), Host{NUMANodes: one}, true, false, fresh},
		"one node of one byte":  {configuration(), Host{NUMANodes: []NUMANode{{Memory: 1}}}, true, false, nil},
		"memory that is hidden": {configuration(), Host{NUMANodes: []NUMANode{{}}}, false, false, nil},
		"two nodes":             {configuration(), Host{NUMANodes: append(one, one...)}, false, false, nil},
		"by the file":           {configuration(), Host{NUMANodes: one, MemoryState: kept}, true, false, map[corev1.ResourceName]uint64{"memory": 3, "hugepages-2Mi": 4}},
		"the file is not known": {c, Host{NUMANodes: one}, false, true, nil},
	} {
		pools, err := memoryPoolsOf(c, row.now, row.host)
		if err != nil || len(pools) != 1 || pools[0].known != row.known || pools[0].allHave != row.all || row.free != nil && !maps.Equal(pools[0].free, row.free) {
			t.Errorf("%s: %+v, %v", name, pools, err)
		}
	}
	if pools, err := memoryPoolsOf(configuration(), c, Host{NUMANodes: one}); err != nil || pools != nil {
		t.Errorf("no manager: %+v, %v", pools, err)
	}
}

// What a container takes of the memory, and what an init container leaves to the next ones.
func TestTakingMemory(t *testing.T) {
	runs, waits := &candidate{pod: &corev1.Pod{}, runs: true}, &candidate{pod: &corev1.Pod{}}
	wants := func(ends bool, bytes uint64) container {
		return container{name: "main", ends: ends, memory: map[corev1.ResourceName]uint64{"memory": bytes}}
	}
	for name, row := range map[string]struct {
		pool        memoryPool
		turn        memoryTurn
		pod         *candidate
		wants       container
		says        string
		free, again uint64
	}{
		"enough":                        {memoryPool{known: true}, memoryTurn{}, runs, wants(false, 10), "", 0, 0},
		"too little":                    {memoryPool{known: true}, memoryTurn{}, runs, wants(false, 11), "UnexpectedAdmissionError", 10, 0},
		"none":                          {memoryPool{known: true}, memoryTurn{}, runs, container{}, "", 10, 0},
		"none, of what is hidden":       {memoryPool{}, memoryTurn{}, runs, container{}, "", 10, 0},
		"an init container":             {memoryPool{known: true}, memoryTurn{}, runs, wants(true, 7), "", 3, 7},
		"taken again":                   {memoryPool{known: true}, memoryTurn{again: map[corev1.ResourceName]uint64{"memory": 7}}, runs, wants(false, 12), "", 5, 0},
		"taken again, and some is left": {memoryPool{known: true}, memoryTurn{again: map[corev1.ResourceName]uint64{"memory": 7}}, runs, wants(false, 4), "", 10, 3},
		"two init containers":           {memoryPool{known: true}, memoryTurn{again: map[corev1.ResourceName]uint64{"memory": 7}}, runs, wants(true, 4), "", 10, 7},
		"a larger one":                  {memoryPool{known: true}, memoryTurn{again: map[corev1.ResourceName]uint64{"memory": 7}}, runs, wants(true, 9), "", 8, 9},
		"more than both":                {memoryPool{known: true}, memoryTurn{again: map[corev1.ResourceName]uint64{"memory": 7}}, runs, wants(false, 18), "UnexpectedAdmissionError", 10, 7},
		"what is hidden":                {memoryPool{}, memoryTurn{}, runs, wants(false, 1), "UnexpectedAdmissionError?", 10, 0},
		"it has its own":                {memoryPool{allHave: true}, memoryTurn{}, runs, wants(false, 99), "", 10, 0},
		"it has its own, by the file":   {memoryPool{has: map[string]map[string]bool{"": {"main": true}}}, memoryTurn{}, waits, wants(true, 99), "", 10, 99},
		"only those that run":           {memoryPool{known: true, allHave: true}, memoryTurn{}, waits, wants(false, 99), "UnexpectedAdmissionError", 10, 0},
	} {
		row.pool.free = map[corev1.ResourceName]uint64{"memory": 10}
		v := row.pool.take(&row.turn, row.pod, row.wants)
		says := v.Reason
		if v.refused() && !v.certain {
			says += "?"
		}
		if says != row.says || row.pool.free["memory"] != row.free || row.turn.again["memory"] != row.again || v.certain && !v.ordered || row.pool.known && row.turn.doubted {
			t.Errorf("%s: %+v, free %d, again %d; want %q, %d, %d", name, v, row.pool.free["memory"], row.turn.again["memory"], row.says, row.free, row.again)
		}
	}
	p := memoryPool{known: true, free: map[corev1.ResourceName]uint64{"memory": 10}}
	if v := p.take(&memoryTurn{doubted: true}, runs, wants(false, 1)); v.refused() || p.known {
		t.Errorf("after a doubt: %+v, %+v", v, p)
	}
}

// The other threads of reserved cores are nobody's whole cores.
func TestSiblingsOfReserved(t *testing.T) {
	threads, none := machine(), machine()
	built(4, 2, 1)(&threads) // 0 and 2 are one core, 1 and 3 the other
	for name, row := range map[string]struct {
		host  Host
		among []int
		want  int
		known bool
	}{
		"of all":                    {threads, nil, 1, true},
		"among them":                {threads, []int{2, 3}, 1, true},
		"not among them":            {threads, []int{1, 3}, 0, true},
		"among none":                {threads, []int{}, 0, true},
		"no siblings":               {none, nil, 0, true},
		"the threads are not known": {Host{}, nil, 0, false},
	} {
		c := configuration(staticCPUs("1"), func(c *Configuration) { c.ReservedSystemCPUs = "0" })
		if got, known := row.host.siblingsOfReserved(c, 1, row.among); got != row.want || known != row.known {
			t.Errorf("%s: %d, %t, want %d, %t", name, got, known, row.want, row.known)
		}
	}
}

// A pod takes what its containers get alone, one after the other, until one is refused; after a doubt it is not known what is left.
func TestTakingCPUsAndMemory(t *testing.T) {
	wants := func(cpus int, bytes uint64) container {
		c := container{name: "main", cpus: cpus, memory: map[corev1.ResourceName]uint64{}}
		if bytes > 0 {
			c.memory["memory"] = bytes
		}
		return c
	}
	two := Host{NUMANodes: []NUMANode{{}, {ID: 1}}}
	doubtful := numaRule{strict: true, host: two} // all that is given anew is in doubt
	const refused = "UnexpectedAdmissionError"
	for name, row := range map[string]struct {
		numa       numaRule
		turn       turn
		free       span
		containers []container
		want       string // with ? where it is in doubt
		left       span
		memory     uint64 // of 10
		known      bool
	}{
		"enough of both":                     {numaRule{}, turn{}, exactly(4), []container{wants(1, 2), wants(2, 3)}, "", exactly(1), 5, true},
		"too few CPUs":                       {numaRule{}, turn{}, exactly(1), []container{wants(2, 3)}, refused, exactly(1), 10, true},
		"too few CPUs for the second":        {numaRule{}, turn{}, exactly(2), []container{wants(1, 2), wants(2, 3)}, refused, exactly(1), 8, true},
		"too little memory":                  {numaRule{}, turn{}, exactly(4), []container{wants(2, 11)}, refused, exactly(2), 10, true},
		"perhaps too few CPUs":               {numaRule{}, turn{}, span{1, 3}, []container{wants(2, 3)}, refused + "?", span{0, 3}, 7, false},
		"perhaps, and too little memory":     {numaRule{}, turn{}, span{1, 3}, []container{wants(2, 11)}, refused, span{0, 3}, 10, true},
		"perhaps, and then certainly":        {numaRule{}, turn{}, span{1, 3}, []container{wants(2, 0), wants(0, 11)}, refused, span{0, 3}, 10, true},
		"perhaps, and then something":        {numaRule{}, turn{}, span{1, 3}, []container{wants(2, 0), wants(0, 1)}, refused + "?", span{0, 3}, 9, false},
		"perhaps, and who is in doubt goes":  {numaRule{}, turn{othersGo: true}, span{1, 3}, []container{wants(2, 3), wants(0, 1)}, refused + "?", span{0, 3}, 7, false},
		"its place is in doubt":              {doubtful, turn{}, exactly(4), []container{wants(2, 3)}, affinityError + "?", span{2, 4}, 7, false},
		"its place is in doubt, and it goes": {doubtful, turn{othersGo: true}, exactly(4), []container{wants(2, 3)}, affinityError + "?", exactly(4), 10, true},
		"its place, and too few CPUs":        {doubtful, turn{}, exactly(1), []container{wants(2, 3)}, refused, exactly(1), 10, true},
		"the second after a doubt":           {numaRule{}, turn{}, span{1, 3}, []container{wants(2, 0), wants(1, 0)}, refused + "?", span{0, 3}, 10, true},
		"none":                               {doubtful, turn{}, exactly(1), nil, "", exactly(1), 10, true},
	} {
		pod := aPod("a", 0)
		a := &admission{turn: row.turn, world: world{managers: managers{numa: row.numa, cpus: []cpuPool{{free: row.free, whole: row.free, oneNode: true}},
			memory: []memoryPool{{known: true, free: map[corev1.ResourceName]uint64{"memory": 10}}}}}}
		v := a.take(&candidate{pod: &pod, containers: row.containers})
		got := v.Reason
		if v.refused() && !v.certain {
			got += "?"
		}
		if pools := a.managers; got != row.want || pools.cpus[0].free != row.left || pools.memory[0].free["memory"] != row.memory || pools.memory[0].known != row.known {
			t.Errorf("%s: %q, %v CPUs and %+v are left; want %q, %v, %d, %t", name, got, pools.cpus[0].free, pools.memory[0], row.want, row.left, row.memory, row.known)
		}
	}
	pod := aPod("a", 0)
	whole := doubtful
	whole.wholePod = true
	a := &admission{world: world{managers: managers{numa: whole}}}
	if v := a.take(&candidate{pod: &pod, devices: true}); v.Reason != affinityError || v.certain {
		t.Errorf("devices of a pod without containers: %+v", v)
	}
}
