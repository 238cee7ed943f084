package sync

import "github.com/kubelet-supervisor/kubelet-supervisor/internal/bounded"

// short keeps foreign text short enough to be quoted in a message on the Node: 64 bytes, and the mark where there are more. The admission
// policy says it in the same words.
func short(text string) string {
	if len(text) <= 64 {
		return text
	}
	return bounded.Text(text+bounded.Ellipsis, 64+len(bounded.Ellipsis))
}

// oneLine makes foreign words safe to show: printable, one line, at most 400 bytes.
func oneLine(words string) string { return bounded.Text(bounded.Line(words), 400) }
