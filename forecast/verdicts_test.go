package forecast

import "testing"

// What goes at a turn: what is certain always; what is in doubt with its like.
func TestWhoGoesAtATurn(t *testing.T) {
	stay, shared, others, all := turn{}, turn{sharedGo: true}, turn{othersGo: true}, turn{sharedGo: true, othersGo: true}
	for name, row := range map[string]struct {
		verdict
		goes []turn
	}{
		"admitted":                          {verdict{certain: true, shared: true}, nil},
		"certain":                           {verdict{Reason: "a", certain: true}, []turn{stay, shared, others, all}},
		"certain, for a shared reason":      {verdict{Reason: "a", certain: true, shared: true}, []turn{stay, shared, others, all}},
		"in doubt":                          {verdict{Reason: "a"}, []turn{others, all}},
		"in doubt, for a shared reason":     {verdict{Reason: "a", shared: true}, []turn{shared, all}},
		"in doubt, and it stays for others": {verdict{Reason: "a", stays: true}, nil},
	} {
		for _, at := range []turn{stay, shared, others, all} {
			want := false
			for _, goes := range row.goes {
				want = want || goes == at
			}
			if got := at.lost(row.verdict); got != want {
				t.Errorf("%s: at %+v %t, want %t", name, at, got, want)
			}
		}
	}
}

// Of two verdicts the first counts, but for one that is certain; of those of several pools what only some say is not certain.
func TestVerdictsOfSeveral(t *testing.T) {
	no, perhaps, certain := admitted, verdict{Reason: "perhaps"}, verdict{Reason: "certain", certain: true}
	other := verdict{Reason: "other", certain: true}
	for name, row := range map[string]struct{ got, want verdict }{
		"nothing":                   {no.first(no), no},
		"the second":                {no.first(perhaps), perhaps},
		"the first":                 {perhaps.first(no), perhaps},
		"the first of two in doubt": {perhaps.first(verdict{Reason: "x"}), perhaps},
		"a certain one":             {perhaps.first(certain), certain},
		"the first of two certain":  {certain.first(other), certain},
		"a certain one before":      {certain.first(perhaps), certain},
		"an admission that is said to be certain": {perhaps.first(verdict{certain: true}), perhaps},
	} {
		if row.got != row.want {
			t.Errorf("%s: %+v, want %+v", name, row.got, row.want)
		}
	}
	inDoubt := func(v verdict) verdict { v.certain = false; return v }
	for name, row := range map[string]struct {
		pools []verdict
		want  verdict
	}{
		"no pool":                   {nil, no},
		"none refuses":              {[]verdict{no, no}, no},
		"one pool":                  {[]verdict{certain}, certain},
		"both":                      {[]verdict{certain, other}, certain},
		"the first":                 {[]verdict{certain, no}, inDoubt(certain)},
		"the second":                {[]verdict{no, certain}, inDoubt(certain)},
		"both, the first in doubt":  {[]verdict{perhaps, certain}, perhaps},
		"both, the second in doubt": {[]verdict{certain, perhaps}, inDoubt(certain)},
	} {
		got := eachOf(row.pools, func(p *verdict, i int) verdict {
			if p != &row.pools[i] {
				t.Errorf("%s: another pool is the one of number %d", name, i)
			}
			return *p
		})
		if got != row.want {
			t.Errorf("%s: %+v, want %+v", name, got, row.want)
		}
	}
}

// Where one of two words may hold, the less certain is said, and of equals the one that depends on other pods.
func TestEitherOfTwoWords(t *testing.T) {
	certain, perhaps := verdict{Reason: "c", certain: true}, verdict{Reason: "p"}
	ordered, orderedPerhaps := verdict{Reason: "oc", certain: true, ordered: true}, verdict{Reason: "op", ordered: true}
	for name, row := range map[string]struct{ one, other, want verdict }{
		"two certain":                          {certain, verdict{Reason: "c2", certain: true}, certain},
		"two in doubt":                         {perhaps, verdict{Reason: "p2"}, perhaps},
		"certain, then not":                    {certain, perhaps, perhaps},
		"not, then certain":                    {perhaps, certain, perhaps},
		"by the order, both certain":           {certain, ordered, ordered},
		"by the order, said first":             {ordered, certain, ordered},
		"by the order and in doubt":            {certain, orderedPerhaps, orderedPerhaps},
		"by the order, and another in doubt":   {perhaps, ordered, ordered.oneOfSeveral()},
		"by the order first, another in doubt": {ordered, perhaps, ordered.oneOfSeveral()},
		"by the order, both":                   {ordered, orderedPerhaps, orderedPerhaps},
		"by the order, both in doubt":          {orderedPerhaps, verdict{Reason: "op2", ordered: true}, orderedPerhaps},
	} {
		if got := row.one.or(row.other); got != row.want {
			t.Errorf("%s: %+v, want %+v", name, got, row.want)
		}
	}
	if v := ordered.oneOfSeveral(); v.certain || v.why == "" {
		t.Errorf("%+v", v)
	}
}

// A threshold is met, or not, or nobody can tell: near to it, and where what is compared is lowered while it is measured.
func TestThresholdsThatAreNear(t *testing.T) {
	hundred := func(available int64) reading { return reading{Amount: Amount{available, 100}, margin: 0.03} }
	half := threshold{quantity: 50}
	for name, row := range map[string]struct {
		threshold
		reading
		want certainty
		says string
	}{
		"far above":                  {half, hundred(60), no, ""},
		"far below":                  {half, hundred(40), yes, "x: less than 50 is available"},
		"near":                       {half, hundred(51), perhaps, "x: about 51 would be available, and the threshold is 50"},
		"at it":                      {half, hundred(50), perhaps, "x: about 50 would be available, and the threshold is 50"},
		"near, below":                {half, hundred(48), perhaps, "x: about 48 would be available, and the threshold is 50"},
		"just not near":              {half, hundred(53), no, ""},
		"just not near, below":       {half, hundred(47), yes, "x: less than 50 is available"},
		"none":                       {threshold{}, reading{missing: "all"}, no, ""},
		"none, and little is there":  {threshold{}, hundred(1), no, ""},
		"nothing to run out of":      {half, reading{margin: 0.03}, no, ""},
		"less than nothing":          {half, reading{Amount: Amount{-1, -1}, margin: 0.03}, no, ""},
		"of one":                     {threshold{quantity: 1}, reading{Amount: Amount{0, 1}, margin: 0.03}, yes, "x: less than 1 is available"},
		"what is lowered, below":     {half, reading{Amount: Amount{0, 100}, margin: 1}, perhaps, "x: about 0 would be available, and the threshold is 50"},
		"what is lowered, above":     {half, reading{Amount: Amount{51, 100}, margin: 1}, no, ""},
		"what is lowered, and is it": {half, reading{Amount: Amount{50, 100}, margin: 1}, no, ""},
	} {
		p := pressure{unmeasured: map[string]string{}}
		p.look("x", true, row.threshold, row.reading)
		if p.others != row.want || p.othersWhy != row.says || p.memory != no || p.hardMemory != no || len(p.unmeasured) > 0 {
			t.Errorf("%s: %+v, want %v, %q", name, p, row.want, row.says)
		}
		row.reading.memory = true
		p = pressure{unmeasured: map[string]string{}}
		p.look("x", true, row.threshold, row.reading)
		if p.memory != row.want || p.memoryWhy != row.says || p.hardMemory != row.want || p.others != no {
			t.Errorf("%s, of memory: %+v, want %v, %q", name, p, row.want, row.says)
		}
	}
	p := pressure{unmeasured: map[string]string{}}
	for _, text := range []string{"first", "second"} { // of two that are met, the first is named
		p.look(text, false, half, hundred(1))
	}
	p.look("lacking", true, half, reading{missing: "what it lacks"})
	if p.othersWhy != "first: less than 50 is available" || p.unmeasured["lacking"] != "what it lacks" {
		t.Errorf("%+v", p)
	}
}

// Each signal is read from its own fact, and where that is missing it is told which.
func TestSignals(t *testing.T) {
	all := Host{Memory: &Amount{1, 10}, PIDs: &Amount{2, 20}, NodeFS: &Filesystem{Amount{3, 30}, Amount{4, 40}}, ImageFS: &Filesystem{Amount{5, 50}, Amount{6, 60}}}
	for signal, want := range map[string]reading{
		"memory.available":      {"the machine's memory in use", Amount{1, 10}, memoryMargin, true},
		"pid.available":         {"the number of processes", Amount{2, 20}, otherMargin, false},
		"nodefs.available":      {"the file system of the kubelet's root folder", Amount{3, 30}, otherMargin, false},
		"nodefs.inodesFree":     {"the file system of the kubelet's root folder", Amount{4, 40}, otherMargin, false},
		"imagefs.available":     {"the file system of the images", Amount{5, 50}, otherMargin, false},
		"imagefs.inodesFree":    {"the file system of the images", Amount{6, 60}, otherMargin, false},
		"containerfs.available": {},
	} {
		missing := want.missing
		want.missing = ""
		if got := readSignal(signal, all); got != want {
			t.Errorf("%s: %+v, want %+v", signal, got, want)
		}
		if got := readSignal(signal, Host{}); got != (reading{missing: missing}) {
			t.Errorf("%s of nothing: %+v, want %q", signal, got, missing)
		}
	}
	use := int64(30)
	if got := podMemoryReading(Host{PodsMemory: &use}, room{podLimit: 100}); got != (reading{Amount: Amount{70, 100}, margin: 1, memory: true}) {
		t.Errorf("%+v", got)
	}
	if got := podMemoryReading(Host{}, room{podLimit: 100}); got != (reading{missing: "the memory in use by pods"}) {
		t.Errorf("%+v", got)
	}
}

// The threshold of memory is one of all pods, too, where they have a limit together.
func TestThresholdOfAllPods(t *testing.T) {
	off := false
	for name, row := range map[string]struct {
		change func(*Configuration)
		want   bool
	}{
		"limited":      {func(*Configuration) {}, true},
		"no limit":     {func(c *Configuration) { c.EnforceNodeAllocatable = []string{"none"} }, false},
		"no cgroups":   {func(c *Configuration) { c.CgroupsPerQOS = &off }, false},
		"no threshold": {func(c *Configuration) { c.EvictionHard = nil }, false},
		"no hard threshold": {func(c *Configuration) {
			c.EvictionHard, c.EvictionSoft = nil, map[string]string{"memory.available": "1Gi"}
		}, false},
	} {
		host := machine()
		host.PodsMemory = nil
		p, err := pressureOf(configuration(row.change), host, room{podLimit: gi})
		if _, got := p.unmeasured[podMemory]; err != nil || got != row.want {
			t.Errorf("%s: %t, %v, want %t", name, got, err, row.want)
		}
	}
}
