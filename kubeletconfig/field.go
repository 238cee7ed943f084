package kubeletconfig

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

//go:generate go run ../test/fields -root ..

// Class says what changing a field does to a node and its pods. It is about the change, not about the value.
type Class string

// The classes, what does the most harm first. docs/reference/fields.md explains them.
const (
	KillsPods    Class = "kills-pods"
	NeedsState   Class = "state-file" // the kubelet exits until a file of its own is gone
	DisruptsPods Class = "disrupts-pods"
	MayBreakNode Class = "may-break-node"
	NeedsDrain   Class = "needs-drain"
	NewPodsOnly  Class = "new-pods-only"
	Safe         Class = "safe"
	Inert        Class = "inert"
)

// Harmless reports whether running pods and the node do not notice.
func (c Class) Harmless() bool { return c == Safe || c == Inert }

// Field is what is known about one field of KubeletConfiguration. The table is made from fields.csv, and so is docs/reference/fields.md.
type Field struct {
	Path         string // such as authentication.anonymous.enabled; what is in the items of a list has the path of the list before it
	Type         string // as it looks in JSON: duration, []string, map[string]string, object
	Since, Until int    // minor versions: the kubelet that it came with, and that it went with; 0: it was always there, and still is
	Class        Class  // "" where nothing is said of it: [NearestField] has what is said of what it is in
	Effect       string // what a change does, for one line
	TakesEffect  string // when: start, new pods, new containers…
	Drain        string // whether to empty the node before: no, yes, advised, or when
	StateFile    string // of the kubelet that has to go
	Flags        string // of the kubelet that win over the field, with spaces between
	Secret       bool   // its values, and those in it, may be secrets
}

// FieldAt gives the field with this path.
func FieldAt(path string) (Field, bool) {
	at, found := slices.BinarySearchFunc(fields[:], path, func(f Field, path string) int { return strings.Compare(f.Path, path) })
	if !found {
		return Field{}, false
	}
	return fields[at], true
}

// NearestField gives the field with this path of which something is said, or the nearest such field that it is in. Keys of maps, such as
// evictionHard.memory.available, are in their map.
func NearestField(path string) (Field, bool) {
	for path != "" {
		if found, is := FieldAt(path); is && found.Class != "" {
			return found, true
		}
		path = parentPath(path)
	}
	return Field{}, false
}

// longestPath is at least as long as any path in the table.
const longestPath = 128

// parentPath is what the field with this path is in, or the first above it that may be in the table: a path of very many names takes no time.
func parentPath(path string) string {
	return path[:max(0, strings.LastIndexByte(path[:min(len(path), longestPath+1)], '.'))]
}

// Fields gives all fields, by path.
func Fields() []Field { return slices.Clone(fields[:]) }

// Ignored says why a kubelet of this minor version (0: unknown) does not know the field; "" when it does.
func (f Field) Ignored(minor int) string {
	switch {
	case minor != 0 && f.Since > minor:
		return fmt.Sprintf("is newer than kubelet 1.%d: it came with 1.%d", minor, f.Since)
	case f.Until != 0 && (minor == 0 || minor >= f.Until):
		return fmt.Sprintf("is gone since kubelet 1.%d", f.Until)
	}
	return ""
}

// hasFields reports whether the field with this path, or each of its items, is a mapping whose keys are fields.
func hasFields(path string) bool {
	at, found := slices.BinarySearchFunc(fields[:], path+".", func(f Field, path string) int { return strings.Compare(f.Path, path) })
	return found || at < len(fields) && strings.HasPrefix(fields[at].Path, path+".")
}

// Minor is the 36 of a version such as v1.36.3, 1.36+ or 1.36; 0 for what is none.
func Minor(version string) int {
	parts := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
	if len(parts) < 2 || parts[0] != "1" {
		return 0
	}
	minor, _ := strconv.Atoi(strings.TrimRight(parts[1], "+"))
	return minor
}
