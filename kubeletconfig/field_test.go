package kubeletconfig

import (
	"slices"
	"strings"
	"testing"
)

// What looks fields up relies on their order.
func TestFieldsAreInOrder(t *testing.T) {
	if !slices.IsSortedFunc(Fields(), func(a, b Field) int { return strings.Compare(a.Path, b.Path) }) {
		t.Error("they are not: go generate ./kubeletconfig")
	}
}

func TestFieldAt(t *testing.T) {
	for path, want := range map[string]string{
		"maxPods": "int32", "authentication": "object", "authentication.anonymous.enabled": "bool", "evictionHard": "map[string]string",
		"registerWithTaints": "[]object", "registerWithTaints.key": "string", "logging.options.json.infoBufferSize": "quantity",
		"tlsCurvePreferences": "[]int32", "syncFrequency": "duration", "logging.flushFrequency": "duration",
		"": "", "maxpods": "", "authentication.": "", "authentication.anonymous.enable": "", "evictionHard.memory.available": "", "kind": "",
	} {
		if found, is := FieldAt(path); found.Type != want || is != (want != "") {
			t.Errorf("%q: got %q, %v; want %q", path, found.Type, is, want)
		}
	}
}

func TestNearestField(t *testing.T) {
	for path, want := range map[string]struct {
		nearest string
		class   Class
	}{
		"maxPods":                          {"maxPods", DisruptsPods},
		"evictionHard.memory.available":    {"evictionHard", DisruptsPods},
		"authentication.anonymous.enabled": {"authentication.anonymous.enabled", MayBreakNode},
		"logging.options.json.splitStream": {"logging", Safe},
		"cgroupRoot":                       {"cgroupRoot", KillsPods},
		"nothing.at.all":                   {},
		"":                                 {},
	} {
		found, is := NearestField(path)
		if found.Path != want.nearest || found.Class != want.class || is != (want.nearest != "") {
			t.Errorf("%q: got %q of class %q, %v", path, found.Path, found.Class, is)
		}
	}
}

func TestIgnored(t *testing.T) {
	for _, test := range []struct {
		path  string
		minor int
		want  string
	}{
		{"podLogsDir", 29, "is newer than kubelet 1.29: it came with 1.30"},
		{"podLogsDir", 30, ""},
		{"podLogsDir", 0, ""},
		{"maxPods", 5, ""},
		{"logging.sanitization", 23, ""},
		{"logging.sanitization", 24, "is gone since kubelet 1.24"},
		{"logging.sanitization", 0, "is gone since kubelet 1.24"},
	} {
		found, is := FieldAt(test.path)
		if got := found.Ignored(test.minor); !is || got != test.want {
			t.Errorf("%s with 1.%d: got %q", test.path, test.minor, got)
		}
	}
}

func TestMinor(t *testing.T) {
	for version, want := range map[string]int{
		"v1.36.3": 36, "v1.36.0-eks-1": 36, "1.37+": 37, "1.36": 36, "v1.29": 29, "": 0, "x": 0, "v0.0.0-master+1": 0, "v2.1.0": 0, "v1": 0, "v1.x.y": 0,
	} {
		if got := Minor(version); got != want {
			t.Errorf("%q: got %d, want %d", version, got, want)
		}
	}
}
