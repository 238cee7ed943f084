package document

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/kubelet-supervisor/kubelet-supervisor/internal/bounded"
	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
)

// freeMaps are the fields whose keys are data, such as evictionHard: such a map is set as a whole, and what it does not name has
// no default.
var freeMaps = func() map[string]bool {
	free := map[string]bool{}
	for _, field := range kubeletconfig.Fields() {
		if strings.HasPrefix(field.Type, "map[") && !strings.Contains(field.Path, ".") {
			free[field.Path] = true
		}
	}
	return free
}()

// Leaves gives the values of a tree by path, such as authentication.anonymous.enabled. Lists and free maps are one value each.
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

// same tells whether two values mean the same to a kubelet: what is absent is as what is zero.
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

// ChangedFrom keeps of a tree what differs from another.
func ChangedFrom(base, tree map[string]any) map[string]any {
	changed := map[string]any{}
	for name, value := range tree {
		inner, isTree := value.(map[string]any)
		baseInner, baseIsTree := base[name].(map[string]any)
		switch {
		case same(base[name], value):
		case isTree && baseIsTree && !freeMaps[name]: // free maps are all at the top
			if difference := ChangedFrom(baseInner, inner); len(difference) > 0 {
				changed[name] = difference
			}
		default:
			changed[name] = value
		}
	}
	return changed
}

// FieldName is the path of a field, which may be anybody's text, for a person.
func FieldName(path string) string {
	return bounded.Text(bounded.Line(kubeletconfig.ShowPath(path)), maxFieldName)
}

const maxFieldName = 120 // bytes

// Show is a value of a field on one line, for a person.
func Show(path string, value any) string { return kubeletconfig.ShowValue(path, value) }

// SortedKeys are the keys of a map, in order.
func SortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
