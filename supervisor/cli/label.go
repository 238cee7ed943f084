//go:build linux

package cli

import (
	"fmt"
	"strings"

	"golang.org/x/sys/unix"
)

// labelOf is a file's SELinux label; "" where it has none, or where there is no SELinux.
func labelOf(path string) string {
	label := make([]byte, 256)
	length, err := unix.Getxattr(path, "security.selinux", label)
	if err != nil {
		return ""
	}
	return strings.TrimRight(string(label[:length]), "\x00")
}

// labelWords are the label, in brackets, for a sentence.
func labelWords(path string) string {
	if label := labelOf(path); label != "" {
		return " [" + label + "]"
	}
	return ""
}

// labelType is the type of a label, which decides about the domain of what is executed.
func labelType(label string) string {
	if fields := strings.SplitN(label, ":", 4); len(fields) > 2 {
		return fields[2]
	}
	return ""
}

// labelsOf returns how the labels of the supervisor and of the kubelet that a unit starts differ; empty where they do not.
func (u unitFiles) labelsOf(command startCommand) string {
	program, err := command.program()
	if err != nil {
		return ""
	}
	return labelsDiffer(u.executable, program)
}

// labelsDiffer returns a warning where the labels of the supervisor and the kubelet differ: from its next start on the kubelet may run in
// another domain than without the supervisor; empty where they do not.
func labelsDiffer(executable, kubelet string) string {
	ours, theirs := labelType(labelOf(executable)), labelType(labelOf(kubelet))
	if ours == theirs || ours == "" || theirs == "" {
		return ""
	}
	return fmt.Sprintf("%s has the SELinux type %s and %s has %s: the kubelet may run in another domain than without the supervisor. "+
		"restorecon %[1]s gives the type of your policy.",
		executable, ours, kubelet, theirs)
}
