// Package pages reads the commands of the pages that people read, so that tests can type them.
//
// Commands are in fences of the language console. A line that begins with "$ " is typed where kubectl is, one that begins with "# " as
// root on a node; what follows is the answer. A fence that says "console not-run" is typed by no test, and one that says "console machine" or
// "console release" by a test of test/machine or of make test-release that names its page. What a page leaves to its reader, but a test has to do first, is in comments that readers do
// not see:
//
//	<!-- before: $ kubectl label node n1 pool=workers -->
package pages

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// A Command is one of a page, with the answer that the page shows.
type Command struct {
	OnNode bool // typed as root on a node, by the prompt #
	Line   string
	Answer string
	Before bool // what the test does first; readers do not see it
}

// A Part is text between commands, fences that are not run among it; or it is a fence of commands.
type Part struct {
	Text     string // as it stands in the page
	Commands []Command
}

const fence = "```"

var (
	before = regexp.MustCompile(`(?m)^<!-- before: ([$#]) (.*) -->$`)
	opened = regexp.MustCompile("(?m)^( *)" + fence + "console\n")
)

// Split gives the parts of a page in their order. Only fences that are run are parts of their own.
func Split(page string) (parts []Part) {
	for page != "" {
		at := opened.FindStringSubmatchIndex(page)
		if at == nil {
			return append(parts, Part{Text: page})
		}
		if at[0] > 0 {
			parts = append(parts, Part{Text: page[:at[0]]})
		}
		indent := page[at[2]:at[3]]
		inside, rest, _ := strings.Cut(page[at[1]:], "\n"+indent+fence+"\n")
		parts = append(parts, Part{Text: page[at[0] : len(page)-len(rest)], Commands: commands(inside, indent)})
		page = rest
	}
	return parts
}

func commands(inside, indent string) (list []Command) {
	for line := range strings.Lines(inside + "\n") {
		line = strings.TrimPrefix(line, indent)
		command, typed := strings.CutPrefix(line, "$ ")
		asRoot := false
		if !typed {
			command, asRoot = strings.CutPrefix(line, "# ")
		}
		if typed || asRoot {
			list = append(list, Command{OnNode: asRoot, Line: strings.TrimSuffix(command, "\n")})
		} else if len(list) > 0 {
			list[len(list)-1].Answer += line
		}
	}
	return list
}

// Typed are the commands of a page that a test types, with what it has to do before each of them. A command without an answer has to
// succeed; one with an answer has to have that.
func Typed(page string) (list []Command) {
	for _, part := range Split(page) {
		for _, c := range part.Commands {
			if c.Answer == "…\n" { // there is one, and that is all
				c.Answer = ""
			}
			list = append(list, c)
		}
		if part.Commands != nil {
			continue
		}
		for _, match := range before.FindAllStringSubmatch(part.Text, -1) {
			list = append(list, Command{OnNode: match[1] == "#", Line: match[2], Before: true})
		}
	}
	return list
}

// Section is what a page has below the heading "## NAME", up to the next one like it.
func Section(page, name string) string {
	_, rest, _ := strings.Cut(page, "\n## "+name+"\n")
	section, _, _ := strings.Cut(rest, "\n## ")
	return section
}

// Marked gives the commands of each fence "console MARK" of a page: a test that names the page types them, with its own steps in between.
func Marked(page, mark string) (list [][]Command) {
	opened := regexp.MustCompile("(?m)^" + fence + "console " + regexp.QuoteMeta(mark) + "\n")
	for _, at := range opened.FindAllStringIndex(page, -1) {
		inside, _, _ := strings.Cut(page[at[1]:], "\n"+fence+"\n")
		list = append(list, commands(inside, ""))
	}
	return list
}

// Of gives the pages below root with commands that are typed at this place; but for those of except, which have a test of their own.
func Of(root string, onNode bool, except ...string) (map[string][]Command, error) {
	found := map[string][]Command{}
	add := func(path string) error {
		text, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			return err
		}
		list := slices.DeleteFunc(Typed(string(text)), func(c Command) bool { return c.OnNode != onNode })
		if slices.ContainsFunc(list, func(c Command) bool { return !c.Before }) && !slices.Contains(except, path) {
			found[path] = list
		}
		return nil
	}
	err := fs.WalkDir(os.DirFS(root), "docs", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".md" {
			return err
		}
		return add(path)
	})
	if err == nil {
		err = add("README.md")
	}
	return found, err
}

// Answers tells whether an answer is the one that the page shows; a line of the page that is … stands for any number of lines.
func Answers(shown, seen string) bool {
	var pattern strings.Builder
	for line := range strings.Lines(shown) {
		if strings.TrimSpace(line) == "…" {
			pattern.WriteString(`(?s:.*)`)
			continue
		}
		pattern.WriteString(regexp.QuoteMeta(line))
	}
	return regexp.MustCompile(`^` + pattern.String() + `$`).MatchString(seen)
}

// Table gives the cells of a page's table, by the beginning of its header line: the header, and the rows below it. Each has as many cells as
// the header, or there is no such table.
func Table(page, begins string) (header []string, rows [][]string, found bool) {
	_, part, found := strings.Cut("\n"+page, "\n"+begins)
	for line := range strings.Lines(begins + part) {
		if !found || !strings.HasPrefix(line, "|") {
			break
		}
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		switch {
		case header == nil:
			header = cells
		case len(cells) != len(header):
			return nil, nil, false
		case strings.Trim(cells[0], "-") != "":
			rows = append(rows, cells)
		}
	}
	return header, rows, found
}
