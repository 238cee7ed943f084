package document

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/kubelet-supervisor/kubelet-supervisor/internal/bounded"
	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
)

// freeMaps has the fields whose keys are data, such as evictionHard. Such a map is set as a whole, and its missing
// keys have no defaults.
var freeMaps = func() map[string]bool {
	free := map[string]bool{}
	for _, field := range kubeletconfig.Fields() {
		if strings.HasPrefix(field.Type, "map[") && !strings.Contains(field.Path, ".") {
			free[field.Path] = true
		}
	}
	return free
}()

// Leaves returns the values of a tree by path, such as authentication.anonymous.enabled. A list or a free map is
// one value.
func Leaves(tree map[string]any) map[string]any {
	found := map[string]any{}
	var visit func(tree map[string]any, prefix string)
	visit = func(tree map[string]any, prefix string) {
		for name, value := range tree {
			path := prefix + name
			if inner, is := value.(map[string]any); is && !freeMaps[path] {
				visit(inner, path+".")
				continue
			}
			found[path] = value
		}
	}
	visit(tree, "")
	return found
}

// same reports whether two values mean the same to a kubelet: an absent value equals a zero value.
func same(a, b any) bool { return empty(a) && empty(b) || reflect.DeepEqual(a, b) }

func empty(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case string:
		return v == "" || v == "0s"
	case bool:
		return !v
	case int64:
		return v == 0
	case float64:
		return v == 0
	case []any:
		return len(v) == 0
	case map[string]any:
		return len(v) == 0
	}
	return false
}

// ChangedFrom returns the part of a tree that differs from base.
func ChangedFrom(base, tree map[string]any) map[string]any {
	changed := map[string]any{}
	for name, value := range tree {
		inner, isTree := value.(map[string]any)
		baseInner, baseIsTree := base[name].(map[string]any)
		switch {
		case same(base[name], value):
		case isTree && baseIsTree && !freeMaps[name]: // all free maps are top-level fields
			if difference := ChangedFrom(baseInner, inner); len(difference) > 0 {
				changed[name] = difference
			}
		default:
			changed[name] = value
		}
	}
	return changed
}

// FieldName returns the path of a field in a form that is safe to print, because its author is not trusted.
func FieldName(path string) string {
	return bounded.Text(bounded.Line(kubeletconfig.ShowPath(path)), maxFieldName)
}

const maxFieldName = 120 // bytes

// Show returns a field's value on one line, for people.
func Show(path string, value any) string { return kubeletconfig.ShowValue(path, value) }

// SortedKeys returns the keys of a map, in order.
func SortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
