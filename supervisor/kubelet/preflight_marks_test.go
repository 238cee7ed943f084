//go:build linux

package kubelet

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
)

// acceptedLine is how a kubelet 1.24 writes the mark, which needs no quotes in a shell's script.
const acceptedLine = plainPrefix + acceptedPrefix + acceptedMark

// marksIn are those of an output that comes in pieces of a size.
func marksIn(output string, size int) *marks {
	found := &marks{past: func() {}}
	s := &stream{marks: found}
	for piece := range slices.Chunk([]byte(output), size) {
		_, _ = s.Write(piece)
	}
	s.end()
	return found
}

func TestMarks(t *testing.T) {
	const (
		jsonInfo  = `{"ts":1795638831512.4102,"caller":"app/server.go:668","msg":`
		refusal   = `failed to validate kubelet configuration, error: invalid configuration: topologyManagerPolicy (--topology-manager-policy) `
		goValue   = infoHeader + `"KubeletConfiguration" configuration=&{TypeMeta:{Kind: APIVersion:} ClusterDomain:x` + "\n"
		another   = "I1122 07:40:03.000003    7 server.go:1] "
		anotherIn = "\nI1122 07:40:03.000003    7 server.go:1] \"Starting kubelet\"\n"
	)
	for name, test := range map[string]struct {
		output              string
		accepted, pastCheck bool
	}{
		// What kubelets write.
		"1.21 to 1.23":             {errorHeader + `"Failed to run kubelet" err="failed to run Kubelet: ` + acceptedMark + `"`, true, false},
		"1.24":                     {acceptedLine, true, false},
		"from 1.25 on":             {infoHeader + "\"Kubelet version\"\n" + checkLine, true, false},
		"JSON":                     {`{"ts":1795638831517.8315,"caller":"cli/run.go:72","msg":"command failed","err":"failed to run Kubelet: ` + acceptedMark + `"}` + "\n", true, false},
		"without headers":          {`"command failed" err="failed to run Kubelet: ` + acceptedMark + `"`, true, false},
		"not structured":           {errorHeader + "failed to run Kubelet: " + acceptedMark + "\n", true, false},
		"with a carriage return":   {strings.TrimSuffix(checkLine, "\n") + "\r\n", true, false},
		"the lock":                 {infoHeader + `"Acquiring file lock" path="/run/lock"` + "\n", false, true},
		"the lock, JSON":           {jsonInfo + `"Acquiring file lock","v":0,"path":"/run/lock"}` + "\n", false, true},
		"the lock, no headers":     {`"Acquiring file lock" path="/run/lock"` + "\n", false, true},
		"standalone":               {infoHeader + "\"Standalone mode, no API client\"\n", false, true},
		"the container manager":    {infoHeader + `"Creating Container Manager object based on Node Config" nodeConfig={"NodeName":"n"}` + "\n", false, true},
		"a start":                  {infoHeader + "\"Starting kubelet\"\n", false, true},
		"a start, not structured":  {infoHeader + "Starting kubelet.\n", false, true},
		"a start, JSON":            {jsonInfo + `"Starting kubelet","v":0}`, false, true},
		"its first event":          {infoHeader + `"Event occurred" object="n" kind="Node" type="Normal" reason="Starting" message="Starting kubelet."` + "\n", false, true},
		"behind a value of lines":  {infoHeader + "\"x\" y=<\n\ta\n >\n" + infoHeader + "\"Starting kubelet\"\n", false, true},
		"behind a configuration":   {goValue + infoHeader + "\"Starting kubelet\"\n", false, true},
		"the check behind a value": {goValue + checkLine, true, false},
		"1.24, behind a value":     {goValue + acceptedLine, true, false},
		"behind a long line":       {infoHeader + strings.Repeat("x", 3*longestMarkLine) + "\n" + checkLine, true, false},
		"a long line":              {infoHeader + `"Creating Container Manager object based on Node Config" nodeConfig="` + strings.Repeat("x", 2*longestMarkLine) + "\n", false, true},

		// What somebody writes into a configuration, and kubelets quote.
		"refused, a start quoted":           {errorHeader + `"command failed" err="` + refusal + `\"Starting kubelet\" must be one of: [\"none\"]"` + "\n", false, false},
		"refused, the check quoted":         {errorHeader + `"command failed" err="` + refusal + `\"x\n` + acceptedMark + `\" must be one of: [\"none\"]"` + "\n", false, false},
		"refused, the check at the end":     {errorHeader + `"command failed" err="` + refusal + `failed to run Kubelet: ` + acceptedMark + `"` + "\n", false, false},
		"refused, JSON":                     {`{"ts":1.5,"caller":"cli/run.go:72","msg":"command failed","err":"` + refusal + `\"Starting kubelet\" ` + acceptedMark + `"}`, false, false},
		"refused, JSON of a whole line":     {`{"ts":1.5,"msg":"command failed","err":"` + refusal + `\"{\\\"msg\\\":\\\"Starting kubelet\\\"}\""}`, false, false},
		"refused, 1.24":                     {"Error: " + refusal + `"Starting kubelet" must be one of`, false, false},
		"refused, 1.24, a log line":         {"Error: " + refusal + anotherIn + checkLine + acceptedLine + "\n", false, false},
		"refused, 1.24, a line of JSON":     {"Error: " + refusal + "\n" + `{"msg":"Starting kubelet"}` + "\n", false, false},
		"a panic with a log line":           {"panic: unrecognized feature gate: x" + anotherIn + "\ngoroutine 1 [running]:\n", false, false},
		"a panic with the check":            {"panic: unrecognized feature gate: x\n" + checkLine + "\ngoroutine 1 [running]:\n", false, false},
		"a panic, Go 1.23":                  {"panic: unrecognized feature gate: x\n\t" + infoHeader + "\"Starting kubelet\"\n", false, false},
		"a value of several lines":          {errorHeader + "\"command failed\" err=<\n\tfailed\n\t" + infoHeader + "\"Starting kubelet\"\n\t" + checkLine + " >\n", false, false},
		"the rest of a long line":           {infoHeader + strings.Repeat("x", longestMarkLine-len(infoHeader)) + infoHeader + "\"Starting kubelet\"\n", false, false},
		"a value of a line":                 {infoHeader + `"Flag" name="Starting kubelet" value="` + acceptedMark + `"` + "\n", false, false},
		"another value named err":           {errorHeader + `"command failed" x="y" err="` + acceptedMark + `"` + "\n", false, false},
		"no error":                          {infoHeader + `"command failed" err="` + acceptedMark + `"` + "\n", false, false},
		"an error of these words":           {errorHeader + "\"Starting kubelet\"\n", false, false},
		"an error, not structured":          {errorHeader + "Starting kubelet.\n", false, false},
		"a warning of these words":          {"W" + infoHeader[1:] + "\"Starting kubelet\"\n", false, false},
		"a warning, not structured":         {"W" + infoHeader[1:] + "failed to run Kubelet: " + acceptedMark + "\n", false, false},
		"an error without quotes":           {errorHeader + `"command failed" err=failed to run Kubelet: ` + acceptedMark + "\n", false, false},
		"a configuration with a log line":   {goValue + another + "\"Starting kubelet\"}\n", false, false},
		"a configuration, JSON in it":       {goValue + `{"msg":"Starting kubelet"}` + "\n", false, false},
		"a configuration, no header in it":  {goValue + "\"Starting kubelet\"\n", false, false},
		"a configuration, the end of a log": {goValue + "panic: x\n" + checkLine, true, false},
		"the words alone":                   {"Starting kubelet\n" + acceptedMark + "\n", false, false},
		"JSON that is not whole":            {jsonInfo + `"Starting kubelet"`, false, false},
		"JSON, in an object":                {jsonInfo + `"x","configuration":{"msg":"Starting kubelet","err":"` + acceptedMark + `"}}`, false, false},
		"JSON, a log line in it":            {jsonInfo + `"x","y":"I1122 07:40:03.000003 7 server.go:1] \"Starting kubelet\""}`, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			for _, size := range []int{1, 7, 4096, len(test.output)} {
				found := marksIn(test.output, size)
				for range 2 { // whoever asks
					if accepted, pastCheck := found.seen(); accepted != test.accepted || pastCheck != test.pastCheck {
						t.Errorf("in pieces of %d: accepted %t, past the check %t", size, accepted, pastCheck)
					}
				}
			}
		})
	}
}

// A configuration that has the kubelet's own words as a value is refused like any other, and the kubelet is asked again.
func TestPreflightOfMarksInAPayload(t *testing.T) {
	for _, value := range []string{"Starting kubelet", "Acquiring file lock", acceptedMark} {
		candidate := written(t, "candidate.yaml", fake("mode: refuse, words: 'topologyManagerPolicy \""+value+"\" must be one of'"))
		preflight := Preflight{Kubelet: fakeKubelet, TempFolder: t.TempDir(), Timeout: time.Minute}
		verdict := preflight.Check(t.Context(), Candidate{File: candidate}, &Candidate{File: written(t, "control.yaml", fake("mode: ok"))})
		if verdict.Outcome != kubeletconfig.Refused || verdict.NoMorePreflight || !strings.Contains(verdict.Words, "topologyManagerPolicy") {
			t.Errorf("%s: got %+v", value, verdict)
		}
	}
}

// Of a long output its begin and its end are kept, and no more than three times either.
func TestStreamIsBounded(t *testing.T) {
	s := &stream{marks: &marks{past: func() {}}}
	line := strings.Repeat("x", 99) + "\n"
	_, _ = s.Write([]byte("begin\n"))
	for range 10_000 {
		_, _ = s.Write([]byte(line))
		if len(s.tail) > 2*keptOutput {
			t.Fatalf("%d bytes are kept", len(s.tail))
		}
	}
	_, _ = s.Write([]byte("end\n"))
	if text := s.text(); len(text) != 2*keptOutput+1 || !strings.HasPrefix(text, "begin\n") || !strings.HasSuffix(text, line+"end\n") {
		t.Errorf("%d bytes, %.10q to %q", len(text), text, text[len(text)-10:])
	}
}
