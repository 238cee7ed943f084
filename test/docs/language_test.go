package docs

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/tree"
)

// vocabulary has the words that make readers read twice, and what Kubernetes' documentation says instead.
var vocabulary = []struct{ avoid, say string }{
	{`(?:some|no)body|someone|no one`, "name the user, process or controller"},
	{`(?:who|whom)(?:so)?ever|whom`, "name the user, process or controller"},
	{`he|his|him`, "they, or name the user"},
	{`anew`, "again"},
	{`mend(?:s|ed|ing)?`, "fix"},
	{`meanwhile`, "in the meantime, or say until when"},
	{`by itself|by themselves`, "automatically, alone"},
	{`go(?:es)? before|went before`, "overrides, precedes"},
	{`beside`, "next to, along with, in addition to"},
	{`(?:is|are|was|were) none of`, "is not"},
	{`for want of`, "for lack of"},
	{`in the place of`, "instead of"},
	{`to be had`, "available"},
	{`in vain`, "without effect"},
	{`but for`, "except"},
	{`(?:all|every|each|any|none) but`, "except"},
	{`(?:is|are|was|were) another one(?: than)?|another(?: one)? than`, "differs from"},
	{`tells? (?:that|what|which|why|how|of|whether)`, "reports, shows"},
	{`(?:is|are|was|were|be|been) told`, "is reported"},
	{`(?:own|these|those|its|their|'s|’s) words?|words? of`, "message, status, text"},
	{`(?:is|are|was|were|be|being) let`, "is allowed to"},
	{`(?:is|are) to be`, "must be, should be"},
	{`t(?:ake|akes|aken|ook|aking) back`, "roll back, revert"},
	{`held against`, "compared with"},
	{`all the same`, "anyway"},
	{`now and then`, "occasionally"},
	{`call-off|call(?:s|ed)? off`, "cancel"},
	{`to the letter`, "exactly"},
	{`shall`, "must, will"},
	{`(?:here|there|where)(?:of|by|in|upon|after|to)|hence|whence`, "by it, in it, of it"},
	{`not any ?more|any more`, "no longer"},
	{`left-over`, "leftover"},
}

// becauseFor is "for" where it means because.
var becauseFor = regexp.MustCompile(`[,;:] for (?:there|they|he|we|it (?:is|has|was|does|may|can|cannot|would)|its? \w+ (?:is|has|are|would)|nothing|this is|that is)\b`)

// avoided finds any term of the vocabulary; which one it is, is asked of what was found alone.
var avoided, terms = func() (*regexp.Regexp, []*regexp.Regexp) {
	var all []string
	var each []*regexp.Regexp
	for _, term := range vocabulary {
		all = append(all, term.avoid)
		each = append(each, regexp.MustCompile(`(?i)^(?:`+term.avoid+`)$`))
	}
	return regexp.MustCompile(`(?i)(?:^|[^\w.'-]|'s )(` + strings.Join(all, "|") + `)(?:$|[^\w-])`), each
}()

// notSwept are the folders whose language is not that of the vocabulary yet, and how often. These numbers may only fall.
var notSwept = map[string]struct {
	folders []string
	most    int
}{
	"what make matrix writes": {[]string{"docs/evidence/compatibility.md"}, 7},
}

// What people read says things once and plainly: pages, comments, and the texts of the programs: help, errors, messages.
func TestLanguage(t *testing.T) {
	found := map[string][]string{}
	for file, lines := range readByPeople(t) {
		for _, line := range lines {
			for _, wrong := range avoidIn(line.text) {
				found[file] = append(found[file], line.at+": "+wrong+": "+line.text)
			}
		}
	}
	for name, group := range notSwept {
		n := 0
		for file := range found {
			if slices.ContainsFunc(group.folders, func(folder string) bool { return file == folder || strings.HasPrefix(file, folder+"/") }) {
				n += len(found[file])
				delete(found, file)
			}
		}
		if n > group.most {
			t.Errorf("%s: %d words to avoid, and there were %d: say the new ones plainly", name, n, group.most)
		}
		if n < group.most {
			t.Logf("%s: %d words to avoid; lower %d to that", name, n, group.most)
		}
	}
	for _, file := range slices.Sorted(maps.Keys(found)) {
		for _, line := range found[file] {
			t.Error(line)
		}
	}
}

func TestAvoidIn(t *testing.T) {
	for text, want := range map[string]string{
		"The way out is shown anew.":                   `"anew": say again`,
		"It is closed, for there is nothing to do.":    `"for": say because`,
		"Flags go before the file":                     `"go before": say overrides, precedes`,
		"in the kubelet's own words":                   `"own words": say message, status, text`,
		"Somebody did it":                              `"Somebody": say name the user, process or controller`,
		"all is well with `somebody`, e.g. the mender": "",
		"It is not for us; the theme: for it.":         "",
		"KubeletConfig.mend and --anew":                "",
	} {
		if got := strings.Join(avoidIn(text), "; "); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

// avoidIn gives the words of a text that are to be avoided, each with what to say instead. What is code is not looked at.
func avoidIn(text string) (found []string) {
	text = linkTo.ReplaceAllString(code.ReplaceAllString(text, "`X`"), "]")
	for _, match := range avoided.FindAllStringSubmatch(text, -1) {
		of := slices.IndexFunc(terms, func(term *regexp.Regexp) bool { return term.MatchString(match[1]) })
		found = append(found, `"`+match[1]+`": say `+vocabulary[of].say)
	}
	if becauseFor.MatchString(text) {
		found = append(found, `"for": say because`)
	}
	return found
}

type readLine struct{ at, text string }

func at(file string, line int) string { return fmt.Sprintf("%s:%d", file, line) }

// readByPeople gives the texts of each file that people read.
func readByPeople(t *testing.T) map[string][]readLine {
	t.Helper()
	found := map[string][]readLine{}
	for page, text := range pages(t) {
		for number, line := range prose(text) {
			if !strings.HasPrefix(strings.TrimSpace(line), "<!--") { // what a test reads
				found[page] = append(found[page], readLine{at(page, number), line})
			}
		}
	}
	golden, err := filepath.Glob(filepath.Join(root, "plugin/testdata/*"))
	if err != nil || len(golden) == 0 {
		t.Fatalf("no golden files of the plugin: %v", err)
	}
	for _, file := range golden {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		name, number := "plugin/testdata/"+filepath.Base(file), 0
		for line := range strings.Lines(string(content)) {
			number++
			found[name] = append(found[name], readLine{at(name, number), strings.TrimSpace(line)})
		}
	}
	for file, text := range tree.Programs(t) {
		if !strings.Contains(file, "zz_generated") {
			found[file] = textsOf(t, file, text)
		}
	}
	return found
}

// textsOf gives the comments of a Go file, and its literals that have more than one word.
func textsOf(t *testing.T, file, text string) (found []readLine) {
	t.Helper()
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, file, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	add := func(pos token.Pos, text string) {
		first := set.Position(pos).Line
		for i, line := range strings.Split(text, "\n") {
			found = append(found, readLine{at(file, first+i), strings.TrimSpace(line)})
		}
	}
	for _, group := range parsed.Comments {
		for _, comment := range group.List {
			add(comment.Pos(), comment.Text)
		}
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		if literal, is := n.(*ast.BasicLit); is && literal.Kind == token.STRING && strings.Contains(literal.Value, " ") {
			add(literal.Pos(), literal.Value)
		}
		return true
	})
	return found
}
