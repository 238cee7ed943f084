package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`^#+ (.+)$`)
	code    = regexp.MustCompile("`[^`]*`")
)

// Every link to a file of the tree leads to one, and every link to a heading to a heading. lychee would replace these 90 lines by a program that
// is neither a Go module nor in Debian 12.
func TestLinks(t *testing.T) {
	texts := pages(t)
	for page, text := range texts {
		for number, line := range prose(text) {
			for _, found := range link.FindAllStringSubmatch(code.ReplaceAllString(line, ""), -1) {
				if wrong := followed(texts, page, found[1]); wrong != "" {
					t.Errorf("%s:%d: the link to %s: %s", page, number, found[1], wrong)
				}
			}
		}
	}
}

func TestFollowed(t *testing.T) {
	texts := map[string]string{"README.md": "# Read me\n", "docs/a.md": "## At 3 a.m.\n```\n# no heading\n```\n## `enable`, once more\n"}
	for _, test := range []struct{ page, link, want string }{
		{"README.md", "https://example.org/nothing", ""},
		{"README.md", "docs/a.md#at-3-am", ""},
		{"README.md", "docs/a.md#enable-once-more", ""},
		{"docs/a.md", "../README.md", ""},
		{"docs/a.md", "#at-3-am", ""},
		{"docs/a.md", "#no-heading", "docs/a.md has no such heading"},
		{"docs/a.md", "absent.md", "there is no such file"},
		{"docs/a.md", "../../elsewhere.md", "it leaves the tree"},
	} {
		if got := followed(texts, test.page, test.link); got != test.want {
			t.Errorf("from %s, %s: %q, want %q", test.page, test.link, got, test.want)
		}
	}
}

// followed says what is wrong with a link of a page.
func followed(texts map[string]string, page, link string) string {
	if strings.Contains(link, "://") {
		return ""
	}
	path, anchor, _ := strings.Cut(link, "#")
	target := page
	if path != "" {
		target = filepath.Join(filepath.Dir(page), path)
	}
	if strings.HasPrefix(target, "..") {
		return "it leaves the tree"
	}
	if _, err := os.Stat(filepath.Join(root, target)); err != nil && texts[target] == "" {
		return "there is no such file"
	}
	if anchor != "" && !anchors(texts[target])[anchor] {
		return target + " has no such heading"
	}
	return ""
}

// anchors are the names that GitHub gives to the headings of a page.
func anchors(text string) map[string]bool {
	found := map[string]bool{}
	for _, line := range prose(text) {
		match := heading.FindStringSubmatch(line)
		if match == nil {
			continue
		}
		found[strings.Map(func(r rune) rune {
			switch {
			case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
				return unicode.ToLower(r)
			case r == ' ':
				return '-'
			}
			return -1
		}, match[1])] = true
	}
	return found
}
