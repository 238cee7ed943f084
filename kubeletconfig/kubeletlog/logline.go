package kubeletlog

import (
	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
)

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
)

// klogHeader matches the severity and the message of a klog text line, e.g.
//
//	E1121 11:37:55.071664    2099 run.go:72] "command failed" err="…"
var klogHeader = regexp.MustCompile(`^([IWEF])\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ [^ \]]+:\d+\] (.*)$`)

// LastErrorLine gives the message of the last error in a kubelet's log, without header and time, through [Quote]; "" when there is none.
// Errors are klog's E and F lines, lines of JSON logging without a verbosity, and the first line of a panic. Nothing else of a log is ever
// shown: it is not meant for the Node.
func LastErrorLine(log []byte) string {
	lines := strings.Split(string(log), "\n")
	for i := len(lines) - 1; i >= 0; i-- {
		if words := errorWords(lines[i:]); words != "" {
			return kubeletconfig.Quote(words)
		}
	}
	return ""
}

// errorWords returns the text of the error that begins with the first line.
func errorWords(lines []string) string {
	line := strings.TrimRight(lines[0], "\r")
	if header := klogHeader.FindStringSubmatch(line); header != nil {
		if severity := header[1]; severity != "E" && severity != "F" {
			return ""
		}
		if block, found := strings.CutSuffix(header[2], "=<"); found {
			return klogWords(block + "=" + strconv.Quote(blockValue(lines[1:])))
		}
		return klogWords(header[2])
	}
	if strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ") {
		return line
	}
	if strings.HasPrefix(line, "{") {
		return jsonWords(line)
	}
	return ""
}

// blockValue reads klog's form for values of several lines: each behind a tab, ended by a line " >".
func blockValue(lines []string) string {
	var value []string
	for _, line := range lines {
		text, inside := strings.CutPrefix(line, "\t")
		if !inside {
			break
		}
		value = append(value, text)
	}
	return strings.Join(value, "\n")
}

// klogWords makes `"what failed" err="why" key="…"` into `what failed: why`.
func klogWords(message string) string {
	quoted, err := strconv.QuotedPrefix(message)
	if err != nil {
		return message
	}
	what, err := strconv.Unquote(quoted)
	if err != nil {
		return message
	}
	rest := message[len(quoted):]
	_, value, found := strings.Cut(rest, ` err=`)
	if !found {
		return what + rest
	}
	if why, ok := unquote(value); ok {
		return join(what, why)
	}
	return what + rest
}

// unquote reads the quoted text that value begins with, also one whose end was cut off: of a line that is too long the beginning is kept,
// and the field's name is in it.
func unquote(value string) (text string, ok bool) {
	if quoted, err := strconv.QuotedPrefix(value); err == nil {
		text, err = strconv.Unquote(quoted)
		return text, err == nil
	}
	for range len(`\U0010ffff`) { // the longest escape that may have been cut in two
		if value == "" {
			break
		}
		if text, err := strconv.Unquote(value + `"`); err == nil {
			return text, true
		}
		value = value[:len(value)-1]
	}
	return "", false
}

func jsonWords(line string) string {
	var entry struct {
		Text      string `json:"msg"`
		Error     string `json:"err"`
		Caller    string `json:"caller"`
		Verbosity *int   `json:"v"`
	}
	if err := json.Unmarshal([]byte(line), &entry); err != nil || entry.Caller == "" || entry.Verbosity != nil {
		return ""
	}
	return join(entry.Text, entry.Error)
}

// join leaves out what says nothing ("command failed") or says the same twice ("Failed to run kubelet: failed to run Kubelet: …").
func join(what, why string) string {
	switch {
	case why == "":
		return what
	case what == "command failed" || strings.HasPrefix(strings.ToLower(why), strings.ToLower(what)):
		return why
	default:
		return what + ": " + why
	}
}
