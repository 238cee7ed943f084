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

// Nobody's text gets to a terminal as it is (rule 28). What a command prints for people goes through a [bounded.Writer], and what it prints for
// programs through writeWhole. Neither can tell whose line break it is: cells of tables, notes and errors are made lines before.
const (
	maxLine  = 32 << 10 // bytes of a line; the names of some thousand nodes may be on one
	MaxCell  = 1024     // characters of a cell: a condition's message is no longer
	MaxError = 4096     // characters of an error, or of a text in a note; an answer of the API server has a place in it
)

// ToPeople is a stream that prints what shows, and nothing else.
func ToPeople(to io.Writer) io.Writer {
	if _, is := to.(*bounded.Writer); is {
		return to
	}
	return bounded.NewWriter(to, maxLine)
}

// Sprintf is fmt.Sprintf, with texts and errors as lines that are no longer than an error may be: only the format has line breaks.
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

// WriteError says why a command ends: a line for each of the errors that were joined.
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

// A MultilineError has several lines for a person. What is not of the plugin's own making in them has no line breaks.
type MultilineError []string

// Error has the lines one below the other.
func (e MultilineError) Error() string { return strings.Join(e, "\n  ") }

// joinedErrors are those of which errors.Join has made one.
func joinedErrors(err error) (all []error) {
	joined, is := err.(interface{ Unwrap() []error })
	if !is || errors.Join(joined.Unwrap()...).Error() != err.Error() { // fmt.Errorf may wrap several, in a text of its own
		return []error{err}
	}
	for _, one := range joined.Unwrap() {
		all = append(all, joinedErrors(one)...)
	}
	return all
}

// EscapeWhole escapes in a document what does not show, where its format has a way.
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

// flow is a YAML document as one in flow style, which has escapes for all characters.
func flow(text string) string {
	document, again := strings.CutPrefix(text, "---\n")
	converted, err := yaml.YAMLToJSON([]byte(document))
	if err != nil { // it was made of JSON
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
