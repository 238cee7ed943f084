package docs

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/tree"
)

// claimsWithoutTest is how many claims say why no test can hold them. It may only fall.
const claimsWithoutTest = 2

var (
	note     = regexp.MustCompile(`<!-- (tests|each row|no test|no claim): (.*?) -->`)
	testName = regexp.MustCompile(`([a-z][a-z0-9/-]*)\.((?:Test|Fuzz)[A-Za-z0-9]*)(?: \(([^)]*)\))?`)
)

// Each claim about security names a test that there is, or says why there is none. The tables that TestRights reads are held by that test.
func TestSecurityClaimsNameTheirTests(t *testing.T) {
	texts, files := pages(t), tree.Files(t, "_test.go")
	tests, attacks, tables := testsOf(files), attacksOf(files), tablesOfRights(texts["docs/why/security.md"])
	readBy := map[string]rights{"test/e2e.TestRights": tables["who"], "test/fleet.TestRights": tables["to"]}
	without, named := 0, 0
	for _, page := range []string{"SECURITY.md", "docs/why/security.md"} {
		for _, c := range claims(texts[page]) {
			if len(c.notes) == 0 {
				t.Errorf("%s:%d: name the test of this claim in a comment, or say why there is none: %s", page, c.line, c.text)
			}
			for _, n := range c.notes {
				found := testName.FindAllStringSubmatch(n[2], -1)
				switch {
				case n[1] == "no test":
					without++
				case n[1] != "no claim" && len(found) == 0:
					t.Errorf("%s:%d: %s names no test", page, c.line, n[0])
				}
				for _, name := range found {
					if named++; !tests[name[1]+"."+name[2]] {
						t.Errorf("%s:%d: there is no test %s.%s", page, c.line, name[1], name[2])
					}
					for row := range strings.SplitSeq(name[3], "; ") {
						table := readBy[name[1]+"."+name[2]]
						if known := name[2] == "TestAttacks" && attacks[row] || table.rows[row] || table.columns[row]; row != "" && !known {
							t.Errorf("%s:%d: %s.%s has no row %q", page, c.line, name[1], name[2], row)
						}
					}
				}
			}
		}
	}
	if without != claimsWithoutTest {
		t.Errorf("%d claims say that no test can hold them, and not %d", without, claimsWithoutTest)
	}
	if named < 100 {
		t.Errorf("only %d tests are named", named)
	}
}

func TestClaims(t *testing.T) {
	text := "# A heading\n\nOne\nclaim. \n<!-- tests: a.TestB -->\n\nAn introduction:\n\n- An item:\n\n- Bare\n- By name `a/b.TestC`\n  <!-- no test: why -->\n\n" +
		"| who | has | x |\n|---|---|---|\n| read | by | it |\n\n| a | b |\n|---|---|\n| 1 | 2 <!-- no claim: x --> |\n| 3 | 4 |\n<!-- each row: a.TestD -->\n```\ncode\n```\n"
	want := map[string][]string{
		"One claim.":          {"a.TestB"},
		"An item:":            nil,
		"Bare":                nil,
		"By name `a/b.TestC`": {"a/b.TestC", "why"},
		"1 | 2":               {"x", "a.TestD"},
		"3 | 4":               {"a.TestD"},
	}
	for _, c := range claims(text) {
		var got []string
		for _, n := range c.notes {
			got = append(got, n[2])
		}
		if notes, is := want[c.text]; !is || !slices.Equal(notes, got) {
			t.Errorf("%q has %q, want %q", c.text, got, notes)
		}
		delete(want, c.text)
	}
	for text := range want {
		t.Errorf("%q is no claim", text)
	}
}

// claim is a paragraph, an item of a list or a row of a table, with what is said about its test.
type claim struct {
	line  int
	text  string
	item  bool       // of a list
	notes [][]string // of note
}

// claims leaves out headings, fences, introductions, which are paragraphs that end with a colon, and the tables that TestRights reads.
func claims(text string) (found []claim) {
	var last, head int // the claims before found[head:] are of other tables; last is the line of the newest text
	inTable, skip := false, false
	for number, line := range prose(text) {
		line = strings.TrimSpace(line)
		notes := note.FindAllStringSubmatch(line, -1)
		line = strings.TrimSpace(note.ReplaceAllString(line, ""))
		switch {
		case line == "" && len(notes) > 0 && len(found) > 0:
			if notes[0][1] != "each row" {
				head = len(found) - 1
			}
			for i := range found[head:] {
				found[head+i].notes = append(found[head+i].notes, notes...)
			}
		case strings.HasPrefix(line, "|"):
			row := strings.TrimSpace(strings.Trim(line, "|"))
			if !inTable {
				inTable, head, skip = true, len(found), strings.HasPrefix(row, "who | has |") || strings.HasPrefix(row, "to | ")
			} else if !skip && !strings.HasPrefix(line, "|--") {
				found = append(found, claim{line: number, text: row, notes: notes})
			}
			continue
		case line == "" || strings.HasPrefix(line, "#") || strings.HasPrefix(line, "<!--"):
			last = 0
		case last == number-1 && listItem.FindString(line) == "":
			found[len(found)-1].text += " " + line
			last = number
		default:
			mark := listItem.FindString(line)
			found, last = append(found, claim{line: number, text: line[len(mark):], item: mark != ""}), number
		}
		inTable = false
	}
	for i, c := range found {
		if names := namedTest.FindString(c.text); names != "" {
			found[i].notes = append([][]string{{names, "tests", strings.Trim(names, "`")}}, c.notes...)
		}
	}
	return slices.DeleteFunc(found, func(c claim) bool { return strings.HasSuffix(c.text, ":") && !c.item && len(c.notes) == 0 })
}

// rights are the names of what a table of rights has.
type rights struct{ rows, columns map[string]bool }

// tablesOfRights gives them by the first cell: "who" is read by test/e2e.TestRights, and "to" by that of test/fleet.
func tablesOfRights(page string) map[string]rights {
	found := map[string]rights{}
	var table rights
	for line := range strings.Lines(page) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
		if len(cells) < 10 {
			continue
		}
		first := strings.TrimSpace(cells[0])
		if first != "who" && first != "to" && table.rows != nil {
			table.rows[first] = true
			continue
		}
		table = rights{map[string]bool{}, map[string]bool{}}
		for _, cell := range cells[1:] {
			table.columns[strings.TrimSpace(cell)] = true
		}
		found[first] = table
	}
	return found
}

var attackNumber = regexp.MustCompile(`(?m)^\t+\{(\d+),`)

// attacksOf are the numbers of the attacks that TestAttacks of test/fleet runs.
func attacksOf(files map[string]string) map[string]bool {
	found := map[string]bool{}
	for file, text := range files {
		if strings.HasPrefix(file, "test/fleet/attacks_") && file != elsewhereFile {
			for _, match := range attackNumber.FindAllStringSubmatch(text, -1) {
				found[match[1]] = true
			}
		}
	}
	return found
}
