package sync

import "github.com/kubelet-supervisor/kubelet-supervisor/internal/bounded"

// oneLine makes foreign words safe to show: printable, one line, at most 400 bytes.
func oneLine(words string) string { return bounded.Text(bounded.Line(words), 400) }
