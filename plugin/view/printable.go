package view

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/kubelet-supervisor/kubelet-supervisor/internal/bounded"
)

// No text from outside reaches a terminal unescaped (rule 28). Output for people goes through a [bounded.Writer],
// output for programs through WriteWhole of package cmdutil. Neither can tell who wrote a line break, so cells of
// tables, notes and errors are made single lines before.
const (
	maxLine  = 32 << 10 // bytes of a line; it may hold the names of some thousand nodes
	MaxCell  = 1024     // characters of a cell: a condition's message is not longer
	MaxError = 4096     // characters of an error, or of a text in a note; fits an answer of the API server
)

// ToPeople returns a stream that prints only printable characters.
func ToPeople(to io.Writer) io.Writer {
	if _, is := to.(*bounded.Writer); is {
		return to
	}
	return bounded.NewWriter(to, maxLine)
}

// Sprintf is fmt.Sprintf with texts and errors shortened and on one line: only the format has line breaks.
func Sprintf(format string, values []any) string {
	lines := make([]any, len(values))
	for i, value := range values {
		switch v := value.(type) {
		case string:
			value = Shorten(bounded.Cell(v), MaxError)
		case error:
			value = Shorten(bounded.Line(v.Error()), MaxError)
		}
		lines[i] = value
	}
	return fmt.Sprintf(format, lines...)
}

// WriteError prints why a command failed: one line for each joined error.
func WriteError(to io.Writer, err error) {
	mark := "error: "
	for _, one := range joinedErrors(err) {
		var lines MultilineError
		if !errors.As(one, &lines) {
			lines = MultilineError{strings.Join(strings.Fields(one.Error()), " ")}
		}
		for i, line := range lines {
			_, _ = fmt.Fprintln(to, mark+strings.Repeat(" ", 2*min(i, 1))+Shorten(bounded.Cell(line), MaxError))
			mark = ""
		}
	}
}

// A MultilineError has several lines. Text from outside the plugin in them has no line breaks.
type MultilineError []string

// Error returns the lines one below the other.
func (e MultilineError) Error() string { return strings.Join(e, "\n  ") }

// joinedErrors returns the errors that errors.Join has joined.
func joinedErrors(err error) (all []error) {
	joined, is := err.(interface{ Unwrap() []error })
	if !is || errors.Join(joined.Unwrap()...).Error() != err.Error() { // fmt.Errorf can wrap several in a text of its own
		return []error{err}
	}
	for _, one := range joined.Unwrap() {
		all = append(all, joinedErrors(one)...)
	}
	return all
}

// EscapeWhole escapes non-printable characters in a document, if its format can.
func EscapeWhole(format, text string) string {
	if bounded.Shows(text) {
		return text
	}
	switch format {
	case "json":
		return bounded.JSON(text)
	case "yaml":
		return flow(text)
	}
	return text
}

// flow returns a YAML document in flow style, which has escapes for all characters.
func flow(text string) string {
	document, again := strings.CutPrefix(text, "---\n")
	converted, err := yaml.YAMLToJSON([]byte(document))
	if err != nil { // it was made from JSON
		return text
	}
	var indented bytes.Buffer
	if err := json.Indent(&indented, converted, "", "  "); err != nil {
		return text
	}
	if again {
		return "---\n" + bounded.FlowYAML(indented.String())
	}
	return bounded.FlowYAML(indented.String())
}
