//go:build linux

package kubelet

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// acceptedMark is the kubelet's error at the check (cmd/kubelet/app/server.go). The kubelet writes it in one of these forms:
//
//	1.21 to 1.23        E… server.go:292] "Failed to run kubelet" err="failed to run Kubelet: …"
//	1.24                Error: failed to run Kubelet: …
//	from 1.25 on        E… run.go:74] "command failed" err="failed to run Kubelet: …"
//	with JSON logging   {…,"msg":"command failed","err":"failed to run Kubelet: …"}
const (
	acceptedMark   = "cannot exit on lock file contention: no lock file specified"
	acceptedPrefix = "failed to run Kubelet: "
	plainPrefix    = "Error: "
)

// pastMarks are the messages of a kubelet that is past the check, at any verbosity, the earliest of each way that it
// can take first. A second kubelet can have failed before "Starting kubelet", because the first one holds its port.
// Events are sent, and logged at --v=3, by a kubelet that starts, "Starting kubelet." first. The messages are the same
// from Kubernetes 1.21 to 1.37.
var pastMarks = []string{"Acquiring file lock", "Standalone mode, no API client", "Creating Container Manager object based on Node Config", "Starting kubelet", "Event occurred"}

// marks notes the lines of the kubelet that decide, in either stream.
type marks struct {
	past func() // called when it is past the check

	mutex               sync.Mutex
	accepted, pastCheck bool
}

func (m *marks) note(accepted, pastCheck bool) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.accepted, m.pastCheck = m.accepted || accepted, m.pastCheck || pastCheck
	if pastCheck {
		m.past()
	}
}

func (m *marks) seen() (accepted, pastCheck bool) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return m.accepted, m.pastCheck
}

const longestMarkLine = 64 << 10 // bytes; a longer line is judged by its beginning

// markReader finds the marks in one stream. They count only as the message of a log line, and the check's error only
// as the error of one: the kubelet quotes values of a configuration in its errors, and those can have the same words.
type markReader struct {
	line  []byte // the beginning of a line that has not ended
	rest  bool   // the line was judged before its end
	plain bool   // what follows is the text of an error as it is, and of several lines perhaps
}

// read takes a piece of the output. Only lines with this process ID in their header count; "" is any.
func (r *markReader) read(chunk []byte, pid string) (accepted, pastCheck bool) {
	for len(chunk) > 0 {
		part, ends := chunk, false
		if end := bytes.IndexByte(chunk, '\n') + 1; end > 0 {
			part, ends = chunk[:end], true
		}
		chunk = chunk[len(part):]
		if !r.rest {
			r.line = append(r.line, part[:min(len(part), longestMarkLine-len(r.line))]...)
		}
		if ends || len(r.line) == longestMarkLine {
			here, past := r.end(pid)
			accepted, pastCheck = accepted || here, pastCheck || past
			r.rest = !ends
		}
	}
	return accepted, pastCheck
}

// end judges a line that ends here.
func (r *markReader) end(pid string) (accepted, pastCheck bool) {
	line := strings.TrimRight(string(r.line), "\r\n")
	r.line = r.line[:0]
	if r.rest || r.plain {
		return false, false
	}
	if text, found := strings.CutPrefix(line, plainPrefix); found && isCheck(text) {
		return true, false
	}
	if header := markHeader.FindStringSubmatch(line); header != nil {
		if pid != "" && header[2] != pid {
			return false, false
		}
		return markMessage(header[1], header[3])
	}
	switch {
	case pid != "":
	case strings.HasPrefix(line, plainPrefix+"failed to "), strings.HasPrefix(line, "panic: "), strings.HasPrefix(line, "fatal error: "):
		r.plain = true // nothing but its end comes after it
	case strings.HasPrefix(line, "{"):
		return markJSON(line)
	case strings.HasPrefix(line, `"`): // kubelets up to 1.25 have --skip-headers
		return markMessage("", line)
	}
	return false, false
}

// markHeader matches the severity, the process ID and the message of a klog text line.
var markHeader = regexp.MustCompile(`^([IWEF])\d{4} \d\d:\d\d:\d\d\.\d+ +(\d+) [^ \]]+:\d+\] (.*)$`)

// markMessage judges the message of a line of this severity, "" where the line does not say it.
func markMessage(severity, message string) (accepted, pastCheck bool) {
	isError, isInfo := severity != "I" && severity != "W", severity == "" || severity == "I"
	quoted, err := strconv.QuotedPrefix(message)
	if err != nil || message[0] != '"' { // not structured
		return isError && isCheck(message), isInfo && slices.ContainsFunc(pastMarks, func(mark string) bool { return strings.HasPrefix(message, mark) })
	}
	what, _ := strconv.Unquote(quoted) // it is one, because QuotedPrefix gave it
	if isInfo && slices.Contains(pastMarks, what) {
		return false, true
	}
	value, found := strings.CutPrefix(message[len(quoted):], " err=")
	if !found || !isError {
		return false, false
	}
	quoted, _ = strconv.QuotedPrefix(value) // "" where it is none, and so is the text
	text, _ := strconv.Unquote(quoted)
	return isCheck(text), false
}

func markJSON(line string) (accepted, pastCheck bool) {
	var entry struct {
		Text  string `json:"msg"`
		Error string `json:"err"`
	}
	if json.Unmarshal([]byte(line), &entry) != nil {
		return false, false
	}
	if entry.Error != "" {
		return isCheck(entry.Error), false
	}
	return false, slices.ContainsFunc(pastMarks, func(mark string) bool { return strings.HasPrefix(entry.Text, mark) })
}

func isCheck(text string) bool { return strings.TrimPrefix(text, acceptedPrefix) == acceptedMark }
