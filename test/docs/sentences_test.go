package docs

import (
	"regexp"
	"strings"
	"testing"
)

// mostWords is what a tired reader of another mother tongue takes in at once.
const mostWords = 25

var (
	listItem  = regexp.MustCompile(`^(?:[-*]|\d+\.) +`)
	linkTo    = regexp.MustCompile(`\]\([^)]*\)`)
	ended     = regexp.MustCompile("[.!?][)*_\"]*\\s+([A-Z0-9`*\\[(])")
	wordSign  = regexp.MustCompile(`[\pL\pN]`)
	avoidable = regexp.MustCompile(`(?i)\b(?:who|whom)(?:so)?ever\b|\bwhom\b`)
)

// Sentences are short, and words that make a reader read twice are not there. CHANGELOG.md is a list, not a page.
func TestSentencesAreShort(t *testing.T) {
	for page, text := range pages(t) {
		if page == "CHANGELOG.md" {
			continue
		}
		for _, p := range paragraphs(text) {
			for _, sentence := range sentences(p.text) {
				if n := words(sentence); n > mostWords {
					t.Errorf("%s:%d: %d words, want at most %d: %s", page, p.line, n, mostWords, sentence)
				}
			}
			if word := avoidable.FindString(p.text); word != "" {
				t.Errorf("%s:%d: %q: name who is meant: %s", page, p.line, word, p.text)
			}
		}
	}
}

func TestSentences(t *testing.T) {
	for text, want := range map[string][]int{
		"One two three. Four five.\n":                               {3, 2},
		"One two\nthree. `kubectl get node n1` is one word.\n":      {3, 4},
		"- One two\n  three\n- Four\n\nFive\n":                      {3, 1, 1},
		"| a table | counts nothing |\n```\nnor code. Here\n```\n":  nil,
		"# A heading counts\n\nIt is [a link](to/some/where.md).\n": {4},
		"It is 1.5 s, e.g. here. (Yes.) **So it is.** Then\n":       {6, 1, 3, 1},
		"<!-- a comment -->\nOne – two\n":                           {2},
	} {
		var got []int
		for _, p := range paragraphs(text) {
			for _, sentence := range sentences(p.text) {
				got = append(got, words(sentence))
			}
		}
		if !equal(got, want) {
			t.Errorf("%q has sentences of %v words, want %v", text, got, want)
		}
	}
}

func equal(a, b []int) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// A paragraph is one of prose, or an item of a list, on one line.
type paragraph struct {
	line int // where it begins
	text string
}

// paragraphs leaves out headings, tables, comments and fences.
func paragraphs(text string) (found []paragraph) {
	open, comment, last := false, false, 0
	for number, line := range prose(text) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "<!--") {
			comment = true
		}
		skipped := comment || line == "" || strings.HasPrefix(line, "|") || strings.HasPrefix(line, "#")
		if strings.HasSuffix(line, "-->") {
			comment = false
		}
		if skipped {
			open = false
			continue
		}
		item := listItem.FindString(line)
		line = line[len(item):]
		if open && item == "" && number == last+1 {
			found[len(found)-1].text += " " + line
		} else {
			found = append(found, paragraph{line: number, text: line})
		}
		open, last = true, number
	}
	return found
}

// sentences splits a paragraph, code and the targets of links left out.
func sentences(text string) []string {
	text = linkTo.ReplaceAllString(code.ReplaceAllString(text, "`X`"), "]")
	return strings.Split(ended.ReplaceAllString(text, ".\x00$1"), "\x00")
}

func words(sentence string) (n int) {
	for _, word := range strings.Fields(sentence) {
		if wordSign.MatchString(word) {
			n++
		}
	}
	return n
}
