// Package manual writes manual pages and shell completion from the commands themselves, so that they cannot differ from them. Equal
// commands give equal bytes. cobra/doc would replace about 100 of these 179 lines; it reads help as Markdown,
// writes a date, and has no "Also".
package manual

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// A Book is the manual of one program: a page for the program and for each command that its help lists.
type Book struct {
	Root *cobra.Command
	// Section is the manual's, 1 or 8, and Title what stands above its pages.
	Section int
	Title   string
	// Also are pages of others, as "systemctl(1)".
	Also []string
}

// WriteFiles writes man/PAGE.SECTION for every page and completion/SHELL for bash, zsh and fish into a folder.
func (b Book) WriteFiles(folder string) error {
	b.Root.InitDefaultHelpCmd()
	b.Root.InitDefaultCompletionCmd()
	files := map[string]func(io.Writer) error{
		"completion/bash": func(to io.Writer) error { return b.Root.GenBashCompletionV2(to, true) },
		"completion/zsh":  b.Root.GenZshCompletion,
		"completion/fish": func(to io.Writer) error { return b.Root.GenFishCompletion(to, true) },
	}
	for _, command := range b.Commands() {
		files[fmt.Sprintf("man/%s.%d", pageName(command), b.Section)] = func(to io.Writer) error { return b.writePage(to, command) }
	}
	for name, write := range files {
		if err := WriteFile(filepath.Join(folder, name), write); err != nil {
			return fmt.Errorf("writing %s: %w", name, err)
		}
	}
	return nil
}

// WriteFile makes a file and the folders above it.
func WriteFile(path string, write func(io.Writer) error) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(write(file), file.Close())
}

// Commands are those that have a page of their own: the program, what its help lists, and what is below that. Those below completion are
// one for each shell, and its page has them all.
func (b Book) Commands() []*cobra.Command {
	list := []*cobra.Command{b.Root}
	var visit func(above *cobra.Command)
	visit = func(above *cobra.Command) {
		for _, command := range above.Commands() {
			if !command.IsAvailableCommand() {
				continue
			}
			if list = append(list, command); command.Name() != "completion" {
				visit(command)
			}
		}
	}
	visit(b.Root)
	return list
}

// pageName is what man(1) is asked for: kubelet-supervisor, kubelet-supervisor-run and so on.
func pageName(command *cobra.Command) string {
	return strings.ReplaceAll(command.CommandPath(), " ", "-")
}

// writePage writes the page of one command in the man(7) macros, without a date.
func (b Book) writePage(to io.Writer, command *cobra.Command) error {
	var page strings.Builder
	line := func(format string, words ...any) { _, _ = fmt.Fprintf(&page, format+"\n", words...) }
	name := pageName(command)
	line(`.TH %s %d "" "kubelet-supervisor" "%s"`, roff(strings.ToUpper(name)), b.Section, b.Title)
	line(".SH NAME\n%s \\- %s", roff(name), roff(command.Short))
	line(".SH SYNOPSIS\n\\fB%s\\fR", roff(command.UseLine()))
	long := command.Long
	if long == "" {
		long = command.Short + "."
	}
	line(".SH DESCRIPTION\n%s", paragraphs(long))
	if flags := command.NonInheritedFlags(); flags.HasAvailableFlags() {
		line(".SH OPTIONS")
		flags.VisitAll(func(flag *pflag.Flag) {
			if !flag.Hidden {
				line(".TP\n\\fB%s\\fR\n%s", roff(flagName(flag)), roff(flagWords(flag)))
			}
		})
	}
	if command.HasAvailableSubCommands() {
		line(".SH COMMANDS")
		for _, sub := range command.Commands() {
			if sub.IsAvailableCommand() {
				line(".TP\n\\fB%s\\fR\n%s", roff(sub.Name()), roff(sub.Short))
			}
		}
	}
	if command.Example != "" {
		line(".SH EXAMPLES\n%s", verbatim(command.Example))
	}
	line(".SH SEE ALSO\n%s", strings.Join(b.seeAlso(command), ",\n"))
	_, err := io.WriteString(to, page.String())
	return err
}

func flagName(flag *pflag.Flag) string {
	name := "--" + flag.Name
	if flag.Shorthand != "" {
		name = "-" + flag.Shorthand + ", " + name
	}
	if kind, _ := pflag.UnquoteUsage(flag); kind != "" {
		name += "=" + kind
	}
	return name
}

func flagWords(flag *pflag.Flag) string {
	_, words := pflag.UnquoteUsage(flag)
	value := strings.Trim(flag.DefValue, "[]")
	if value == "" || value == "false" || strings.Contains(words, "(default:") {
		return words
	}
	return fmt.Sprintf("%s (default: %s)", words, value)
}

func (b Book) seeAlso(command *cobra.Command) (pages []string) {
	bold := func(name string, section any) string { return fmt.Sprintf("\\fB%s\\fR(%v)", roff(name), section) }
	for _, other := range b.Commands() {
		if other != command && (command == b.Root || other == b.Root) {
			pages = append(pages, bold(pageName(other), b.Section))
		}
	}
	for _, other := range b.Also {
		name, section, _ := strings.Cut(strings.TrimSuffix(other, ")"), "(")
		pages = append(pages, bold(name, section))
	}
	return pages
}

// paragraphs sets indented lines as they are, and everything else as running text.
func paragraphs(text string) string {
	var parts []string
	for part := range strings.SplitSeq(text, "\n\n") {
		if strings.HasPrefix(part, "  ") {
			parts = append(parts, verbatim(part))
		} else {
			parts = append(parts, ".PP\n"+roff(part))
		}
	}
	return strings.Join(parts, "\n")
}

func verbatim(text string) string { return ".PP\n.RS 4\n.nf\n" + roff(text) + "\n.fi\n.RE" }

// roff keeps the text from being taken for requests: backslashes, hyphens that people copy, and dots and quotes at the begin of a line.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, "…", "...").Replace(text)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}
