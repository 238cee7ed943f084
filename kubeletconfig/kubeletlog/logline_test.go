package kubeletlog

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestLastErrorLine(t *testing.T) {
	const (
		info  = "I1121 11:37:54.819051    2055 server.go:545] \"Kubelet version\" kubeletVersion=\"v1.36.3\"\n"
		fails = "E1121 11:37:54.929500    2075 run.go:72] \"command failed\" err=\"failed to run Kubelet: the first\"\n"
	)
	for name, test := range map[string]struct{ log, want string }{
		"empty":                        {"", ""},
		"only information":             {info + info, ""},
		"warnings are none":            {"W1121 11:37:54.819051    2055 server.go:545] \"careful\"\n", ""},
		"the last error":               {fails + "E1121 11:37:54.929501    2075 kubelet.go:1] \"Failed to start ContainerManager\" err=\"system validation failed\" pod=\"a/b\"\n" + info, "Failed to start ContainerManager: system validation failed"},
		"a fatal one":                  {"F1121 11:37:54.929500    2075 server.go:1] no cgroups\ngoroutine 1 [running]:\n", "no cgroups"},
		"command failed":               {info + fails, "failed to run Kubelet: the first"},
		"what says it twice (1.23)":    {"E1121 11:37:55.445138    2159 server.go:302] \"Failed to run kubelet\" err=\"failed to run Kubelet: no lock\"\n", "failed to run Kubelet: no lock"},
		"quotes within":                {`E1121 11:37:55.156473    2120 run.go:72] "command failed" err="config file \"/a\" was \"empty\""`, `config file "/a" was "empty"`},
		"no error value":               {`E1121 11:37:55.156473    2120 x.go:72] "Unable to read" path="/a"`, `Unable to read path="/a"`},
		"unstructured":                 {"E1121 11:37:55.156473    2120 x.go:72] it said: err=no", "it said: err=no"},
		"of several lines":             {"E1121 11:37:54.873960    2067 run.go:72] \"command failed\" err=<\n\tfailed to merge: first\n\tsecond\n >\n", "failed to merge: first second"},
		"of several lines, in part":    {"E1121 11:37:54.873960    2067 run.go:72] \"command failed\" err=<\n\tfailed", "failed"},
		"cut short":                    {`E1121 11:37:55.156473    2120 run.go:72] "command failed" err="maxPods: \"x\" is y`, `maxPods: "x" is y`},
		"cut in an escape":             {`E1121 11:37:55.156473    2120 run.go:72] "command failed" err="maxPods: y\u00`, `maxPods: y`},
		"JSON logging":                 {`{"ts":1,"caller":"a.go:1","msg":"Kubelet version","v":0}` + "\n" + `{"ts":1,"caller":"cli/run.go:72","msg":"command failed","err":"failed to \"x\""}` + "\n" + `{"ts":1,"caller":"a.go:1","msg":"m","v":0,"err":"no error"}`, `failed to "x"`},
		"JSON, but no log":             {`{"msg":"s3cret","err":"s3cret"}`, ""},
		"a panic":                      {fails + "panic: failed to merge: unrecognized feature gate: X\n\ngoroutine 1 [running]:\nmain.main()\n", "panic: failed to merge: unrecognized feature gate: X"},
		"a runtime error":              {"fatal error: all goroutines are asleep - deadlock!\n\ngoroutine 1:\n", "fatal error: all goroutines are asleep - deadlock!"},
		"what others print is not it":  {"s3cret\n  panic: indented\nError: s3cret\n", ""},
		"a quoted payload is left out": {"E1121 11:37:54.873960    2067 run.go:72] \"command failed\" err=<\n\tfailed to decode: Object 'Kind' is missing in 'foo: bar\n\ts3cret: \"it's mine\"\n\t'\n >\n", "failed to decode: Object 'Kind' is missing in …"},
		"a quoted payload (1.23)":      {`E1121 11:37:55.484743    2172 server.go:205] "Failed to load kubelet config file" err="failed to decode: Object 'Kind' is missing in 'foo: bar\ns3cret: \"it's mine\"\n'" path="/a"`, "Failed to load kubelet config file: failed to decode: Object 'Kind' is missing in …"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := LastErrorLine([]byte(test.log)); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
			if got := LastErrorLine([]byte(strings.ReplaceAll(test.log, "\n", "\r\n"))); got != test.want && !strings.Contains(test.log, "=<") {
				t.Errorf("with carriage returns: got %q, want %q", got, test.want)
			}
		})
	}
}

func FuzzLastErrorLine(f *testing.F) {
	f.Add([]byte("E1121 11:37:54.873960    2067 run.go:72] \"command failed\" err=<\n\ta\n >\n"))
	f.Add([]byte(`{"caller":"a.go:1","msg":"\ud800","err":"\u0000"}`))
	f.Fuzz(func(t *testing.T, log []byte) {
		words := LastErrorLine(log)
		if !utf8.ValidString(words) || len(words) > 512 || strings.ContainsFunc(words, unicode.IsControl) {
			t.Fatalf("not fit to be shown: %q", words)
		}
	})
}
