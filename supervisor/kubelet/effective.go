//go:build linux

package kubelet

import (
	"bytes"
	"regexp"

	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
)

// With --v=5 a kubelet tells the configuration that it has merged (cmd/kubelet/app/server.go), in one of these forms:
//
//	up to 1.25          "KubeletConfiguration" configuration=&{TypeMeta:… a Go value, which is not read
//	1.26 to 1.36        "KubeletConfiguration" configuration=< and indented JSON in internal names; with JSON logging inline
//	from 1.37 on        "Effective KubeletConfiguration" config=< and YAML in the names of v1beta1; with JSON logging a string
//
// It can hold secrets, and anything that users wrote into a configuration. So it is taken out of the output before
// that is searched or quoted.
var (
	tellsText = regexp.MustCompile(`^I\d{4} \d\d:\d\d:\d\d\.\d+ +(\d+) server\.go:\d+\] "(?:Effective )?KubeletConfiguration" config(?:uration)?=`)
	tellsJSON = regexp.MustCompile(`^\{[^{]*"msg":"(?:Effective )?KubeletConfiguration",`)
)

const (
	tellingHead = 512     // bytes, within which a line reports whether it tells
	maxTold     = 4 << 20 // bytes; what is longer is not read at all, rather than in part
)

// teller takes what a kubelet prints of its configuration out of a stream of its output. The first print counts.
type teller struct {
	state tellerState
	line  []byte // the beginning of a line, of which it is not clear yet whether it tells
	told  []byte // without klog's indentation; nil when it cannot be read, or is too long
	lost  bool   // it is too long
	ended bool   // it was heard to its end
	pid   string // of the writer of a Go value, whose lines can look like those of a log; "" is none
}

type tellerState int

const (
	lineBegins  tellerState = iota
	linePasses              // the rest of a line that does not tell
	lineTells               // the rest of one that does
	blockBegins             // a line of a value of several lines begins
	blockTells              // the rest of one
)

// pass takes a piece of output, and gives what of it and of the pieces before does not tell.
func (t *teller) pass(piece []byte) (rest []byte) {
	for len(piece) > 0 {
		part, ends := piece, false
		if end := bytes.IndexByte(piece, '\n') + 1; end > 0 {
			part, ends = piece[:end], true
		}
		switch t.state {
		case lineBegins:
			t.line = append(t.line, part...)
			rest = append(rest, t.judge(ends)...)
		case linePasses:
			rest = append(rest, part...)
			t.next(ends, lineBegins)
		case lineTells:
			t.hear(part)
			t.next(ends, lineBegins)
		case blockBegins:
			if piece[0] != '\t' { // it is " >", the end
				t.ended, t.state = true, lineBegins
				continue
			}
			part, t.state = piece[:1], blockTells
		case blockTells:
			t.hear(part)
			t.next(ends, blockBegins)
		}
		piece = piece[len(part):]
	}
	return rest
}

// end gives what was held back when the stream ended.
func (t *teller) end() (rest []byte) {
	rest, t.line = t.line, nil
	if tellsText.Match(rest) || tellsJSON.Match(rest) {
		return nil
	}
	return rest
}

// judge tells lines apart as soon as that can be done, and gives the line when it does not tell.
func (t *teller) judge(ends bool) (rest []byte) {
	line := t.line
	if !ends && len(line) < tellingHead && (line[0] == 'I' || line[0] == '{') {
		return nil
	}
	t.line = nil
	text := tellsText.FindSubmatchIndex(line)
	switch {
	case text != nil && string(line[text[1]:]) == "<\n":
		t.state = blockBegins
	case text != nil: // a Go value: as the first it ends the search, and nothing was found
		t.pid = string(line[text[2]:text[3]])
		t.state = lineTells
		t.next(ends, lineBegins)
	case tellsJSON.Match(line):
		t.hear(line)
		t.state = lineTells
		t.next(ends, lineBegins)
	default:
		t.state = linePasses
		t.next(ends, lineBegins)
		return line
	}
	return nil
}

// next is what follows the end of a line.
func (t *teller) next(ends bool, state tellerState) {
	if !ends {
		return
	}
	t.ended = t.ended || t.state == lineTells
	t.state = state
}

func (t *teller) hear(part []byte) {
	switch {
	case t.ended || t.lost:
	case len(t.told)+len(part) > maxTold:
		t.told, t.lost = nil, true
	default:
		t.told = append(t.told, part...)
	}
}

// configuration is what was printed, in the field names of v1beta1; nil if nothing was, or it cannot be read.
func (t *teller) configuration() map[string]any {
	if !t.ended || t.lost {
		return nil
	}
	tree, err := kubeletconfig.Decode(t.told)
	if err != nil {
		return nil
	}
	if _, is := tree["msg"]; is {
		tree = fromJSONLog(tree)
	}
	if len(tree) == 0 {
		return nil
	}
	return versioned(tree)
}

// fromJSONLog finds the configuration in a line of JSON logging; nil when it is not there.
func fromJSONLog(line map[string]any) map[string]any {
	if inline, is := line["configuration"].(map[string]any); is {
		return inline
	}
	text, _ := line["config"].(string)
	tree, err := kubeletconfig.Decode([]byte(text))
	if err != nil {
		return nil
	}
	return tree
}
