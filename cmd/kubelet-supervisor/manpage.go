package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// documented gives the commands that have a page of their own: the program and what its help lists.
func documented(root *cobra.Command) []*cobra.Command {
	list := []*cobra.Command{root}
	for _, command := range root.Commands() {
		if command.IsAvailableCommand() {
			list = append(list, command)
		}
	}
	return list
}

// pageName is what man(1) is asked for: kubelet-supervisor, kubelet-supervisor-run and so on.
func pageName(command *cobra.Command) string {
	return strings.ReplaceAll(command.CommandPath(), " ", "-")
}

// writePage writes the manual page of one command in the man(7) macros, without a date, so that equal commands give equal bytes.
func writePage(to io.Writer, command *cobra.Command) error {
	var page strings.Builder
	line := func(format string, words ...any) { _, _ = fmt.Fprintf(&page, format+"\n", words...) }
	name := pageName(command)
	line(`.TH %s 8 "" "kubelet-supervisor" "System Administration"`, roff(strings.ToUpper(name)))
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
	line(".SH SEE ALSO\n%s", strings.Join(seeAlso(command), ",\n"))
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

func seeAlso(command *cobra.Command) (pages []string) {
	for _, other := range documented(command.Root()) {
		if other != command && (command == command.Root() || other == command.Root()) {
			pages = append(pages, fmt.Sprintf("\\fB%s\\fR(8)", roff(pageName(other))))
		}
	}
	return append(pages, "\\fBsystemctl\\fR(1)")
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
