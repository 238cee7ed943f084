package forecast

import (
	"maps"
	"math"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

const most, least = math.MaxInt64, math.MinInt64

// Anybody can write any number; nothing turns into another sign.
func TestSum(t *testing.T) {
	for _, row := range []struct{ a, b, want int64 }{
		{1, 2, 3}, {1, -2, -1}, {0, 0, 0}, {most, 0, most}, {least, 0, least}, {most, 1, most}, {1, most, most}, {most, most, most}, {least, -1, least}, {-1, least, least},
		{most, -1, most - 1}, {least, 1, least + 1}, {most - 1, 1, most}, {least + 1, -1, least}, {most, least, -1}, {-5, most, most - 5}, {5, least, least + 5},
	} {
		if got := sum(row.a, row.b); got != row.want {
			t.Errorf("%d and %d are %d, want %d", row.a, row.b, got, row.want)
		}
	}
}

func TestMilli(t *testing.T) {
	for text, want := range map[string]int64{"1": 1000, "250m": 250, "0": 0, "9223372036854775": 9223372036854775000, "9223372036854776": most, "9E": most} {
		if got := milli(resource.MustParse(text)); got != want {
			t.Errorf("%s is %d, want %d", text, got, want)
		}
	}
}

// Of extended resources and huge pages what there is counts; of other names nothing.
func TestAmountsOf(t *testing.T) {
	a := amountsOf(quantities([]string{"cpu", "2", "memory", "1Ki", "ephemeral-storage", "2Ki", "hugepages-2Mi", "2Mi", "hugepages-1Gi", "0", "example.com/gpu", "1", "example.com/none", "0", "pods", "7"}))
	if a.milliCPU != 2000 || a.memory != 1024 || a.storage != 2048 || !maps.Equal(a.scalars, map[corev1.ResourceName]int64{"hugepages-2Mi": 2 << 20, "example.com/gpu": 1}) {
		t.Errorf("%+v", a)
	}
}

// Amounts are added and taken away by name, and neither summand changes.
func TestPlus(t *testing.T) {
	gpu := amounts{milliCPU: 1, memory: 2, storage: 3, scalars: map[corev1.ResourceName]int64{"gpu": 4}}
	none := amounts{}
	for name, row := range map[string]struct {
		got, want amounts
	}{
		"added to nothing":       {none.plus(gpu, 1), gpu},
		"nothing added":          {gpu.plus(none, 1), gpu},
		"twice":                  {gpu.plus(gpu, 1), amounts{2, 4, 6, map[corev1.ResourceName]int64{"gpu": 8}}},
		"taken away":             {gpu.plus(gpu, -1), amounts{0, 0, 0, map[corev1.ResourceName]int64{"gpu": 0}}},
		"others":                 {gpu.plus(amounts{scalars: map[corev1.ResourceName]int64{"nic": 5}}, 1), amounts{1, 2, 3, map[corev1.ResourceName]int64{"gpu": 4, "nic": 5}}},
		"taken away from others": {amounts{scalars: map[corev1.ResourceName]int64{"gpu": 9}}.plus(gpu, -1), amounts{-1, -2, -3, map[corev1.ResourceName]int64{"gpu": 5}}},
	} {
		if row.got.plain() != row.want.plain() || !maps.Equal(row.got.scalars, row.want.scalars) {
			t.Errorf("%s: %+v, want %+v", name, row.got, row.want)
		}
	}
	if len(none.scalars) > 0 || gpu.scalars["gpu"] != 4 {
		t.Errorf("they have become %+v and %+v", none, gpu)
	}
}

// Who asks for nothing of something is not short of it, however much of it is taken.
func TestShort(t *testing.T) {
	of := amounts{milliCPU: 1000, memory: 10, storage: 10, scalars: map[corev1.ResourceName]int64{"gpu": 1}}
	over := amounts{milliCPU: 2000, memory: 20, storage: 20, scalars: map[corev1.ResourceName]int64{"gpu": 2}}
	for name, row := range map[string]struct {
		asks, used amounts
		want       string
	}{
		"all of it":        {of, amounts{}, ""},
		"one too many":     {amounts{milliCPU: 1001, memory: 11, storage: 11, scalars: map[corev1.ResourceName]int64{"gpu": 2}}, amounts{}, "cpu memory ephemeral-storage gpu"},
		"nothing is asked": {amounts{scalars: map[corev1.ResourceName]int64{"gpu": 0}}, over, ""},
		"a bit is asked":   {amounts{milliCPU: 1, memory: 1, storage: 1}, of, "cpu memory ephemeral-storage"},
	} {
		var names []string
		for _, s := range row.asks.short(row.used, of) {
			names = append(names, string(s.name))
		}
		if got := strings.Join(names, " "); got != row.want {
			t.Errorf("%s: short of %q, want %q", name, got, row.want)
		}
	}
}

func TestThresholds(t *testing.T) {
	for text, want := range map[string]threshold{
		"1": {quantity: 1}, "1Gi": {quantity: gi}, "0%": {}, "100%": {}, "0.0%": {}, "100.0%": {share: 1}, "99%": {share: float32(99.0) / 100}, "0.1%": {share: float32(float64(float32(0.1))) / 100},
	} {
		if got, err := parseThreshold(text); err != nil || got != want {
			t.Errorf("%s is read as %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "x", "0", "-1", "%", "x%", "-1%", "-0.1%", "100.1%", "101%", "NaN%", "+Inf%", "-Inf%"} {
		if got, err := parseThreshold(text); err == nil || got != (threshold{}) {
			t.Errorf("%s is read as %v", text, got)
		}
	}
	if got := (threshold{share: 0.5}).of(7); got != 3 {
		t.Errorf("half of 7 is %d", got)
	}
}

// A forecast needs to know of the machine how many CPUs and how much memory it has, and numbers in which to reckon.
func TestRoomThatIsNotKnown(t *testing.T) {
	for name, row := range map[string]struct {
		then  func(*Configuration)
		facts func(*Facts)
		want  string
	}{
		"no CPU":                 {maxPods(3), func(f *Facts) { delete(f.Node.Status.Capacity, "cpu"); f.Host.CPUs = nil }, "the Node does not tell its capacity"},
		"no memory":              {maxPods(3), func(f *Facts) { delete(f.Node.Status.Capacity, "memory") }, "the Node does not tell its capacity"},
		"a threshold of memory":  {hard("memory.available", "x"), func(*Facts) {}, "evictionHard.memory.available: it is no quantity above 0"},
		"a threshold of storage": {hard("nodefs.available", "x%"), func(*Facts) {}, "evictionHard.nodefs.available: it is no share"},
		"another threshold":      {hard("pid.available", "x"), func(*Facts) {}, "evictionHard.pid.available: it is no quantity above 0"},
		"a soft threshold":       {soft("memory.available", "-1%"), func(*Facts) {}, "evictionSoft.memory.available: it is no share"},
		"reserved CPUs":          {func(c *Configuration) { staticCPUs("1")(c); c.ReservedSystemCPUs = "x" }, func(*Facts) {}, "reservedSystemCPUs: \"x\" is no list"},
		"reserved memory": {func(c *Configuration) {
			c.MemoryManagerPolicy, c.ReservedMemory = "Static", []ReservedMemory{{NUMANode: 1, Limits: map[string]string{"memory": "x"}}}
		}, func(*Facts) {}, "reservedMemory of node 1, memory: it is no quantity from 0 on"},
		"less than no memory reserved": {func(c *Configuration) {
			c.MemoryManagerPolicy, c.ReservedMemory = "Static", []ReservedMemory{{Limits: map[string]string{"memory": "-1"}}}
		}, func(*Facts) {}, "reservedMemory of node 0, memory: it is no quantity from 0 on"},
		"no defaults: the policy of CPUs": {func(c *Configuration) { c.CPUManagerPolicy = "" }, func(*Facts) {}, "it is without the kubelet's defaults"},
		"no defaults: the number of pods": {func(c *Configuration) { c.MaxPods = nil }, func(*Facts) {}, "it is without the kubelet's defaults"},
	} {
		f := Facts{Now: configuration(), Then: configuration(row.then), Node: nodeWith(t, configuration()), Pods: sevenPods(), Host: machine()}
		row.facts(&f)
		got := Of(f)
		last := ""
		if len(got.Missing) > 0 {
			last = got.Missing[len(got.Missing)-1].String()
		}
		if got.Known() || len(got.Losses)+len(got.Doubts)+got.Running > 0 || !strings.HasPrefix(last, whatIsToRun+": "+row.want) {
			t.Errorf("%s: %+v", name, got)
		}
		f.Now, f.Then = f.Then, f.Now
		if got := Of(f); got.Known() || !strings.HasPrefix(got.Missing[0].String(), whatRuns+": "+row.want) {
			t.Errorf("%s, and it runs: %+v", name, got)
		}
	}
}

// A machine that has just what is reserved is no lack, and a kind of which it tells nothing neither.
func TestLack(t *testing.T) {
	for name, row := range map[string]struct {
		capacity, reserved amounts
		want               string
	}{
		"just as much":     {amounts{milliCPU: 1, memory: 1, storage: 1}, amounts{milliCPU: 1, memory: 1, storage: 1}, ""},
		"CPU":              {amounts{milliCPU: 1000}, amounts{milliCPU: 1001}, "more cpu is reserved than the machine's 1"},
		"memory":           {amounts{memory: 1 << 10}, amounts{memory: 1<<10 + 1}, "more memory is reserved than the machine's 1Ki"},
		"storage":          {amounts{storage: 1}, amounts{storage: 2}, "more ephemeral-storage is reserved than the machine's 1"},
		"nothing is known": {amounts{}, amounts{milliCPU: 1, memory: 1, storage: 1}, ""},
	} {
		if got := lackOf(row.capacity, row.reserved); got != row.want {
			t.Errorf("%s: %q, want %q", name, got, row.want)
		}
	}
}

// Local storage that the kubelet does not count is not counted because the disk was measured.
func TestStorageThatIsNotCounted(t *testing.T) {
	for shown, want := range map[string]int64{"0": 0, "1": 7, "10": 7} {
		node := nodeWith(t, configuration())
		node.Status.Capacity["ephemeral-storage"] = resource.MustParse(shown)
		if got := capacityOf(node, Host{Storage: 7}).storage; got != want {
			t.Errorf("the Node shows %s, and the capacity is %d, want %d", shown, got, want)
		}
	}
}
