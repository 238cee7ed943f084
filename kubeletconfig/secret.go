package kubeletconfig

import (
	"encoding/json"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Mask replaces a secret. The kubelet uses the same one in its log and its configz.
const Mask = "<masked>"

// userInURL is the user of a URL, and maybe a password. A password that is not escaped may have anything in it.
var userInURL = regexp.MustCompile(`(?s)://.*@`)

// withoutUser masks it in one value.
func withoutUser(value string) string { return userInURL.ReplaceAllString(value, "://"+Mask+"@") }

// secret reports whether the field table says so of the field with this path, or of one that it is in.
func secret(path string) bool {
	for ; path != ""; path = parentPath(path) {
		if found, is := FieldAt(path); is && found.Secret {
			return true
		}
	}
	return false
}

// Hides reports whether the value of the field with this path must be hidden, because it may be a secret or has one in it: what [Masked] masks.
// Of a field that no kubelet knows, any text may be one: the name may be misspelt.
func Hides(path string, value any) bool { return !reflect.DeepEqual(maskedValue(path, value), value) }

// plainName is what a header, or a field, has as its name. With digits, colons or many letters it may be a value that
// was written in the wrong place.
var plainName = regexp.MustCompile(`^[A-Za-z-]{1,40}(\[\d+\])*$`)

// hidesName reports whether a name in the field with this path is masked: a name in a secret field, and one that no
// kubelet knows, are data.
func hidesName(above, name string) bool {
	return above != "" && (secret(above) || !IsField(above+"."+name)) && !plainName.MatchString(name)
}

// itemIndex is which item of a list it is.
var itemIndex = regexp.MustCompile(`\[\d+\]`)

// ShowPath is the path of a field for people, without what may be a secret.
func ShowPath(path string) string {
	names := strings.SplitN(path, ".", maxDepth) // a name with more dots is masked as one
	for i, name := range names {
		if above := strings.Join(names[:i], "."); hidesName(itemIndex.ReplaceAllString(above, ""), name) {
			return above + "." + Mask
		}
	}
	return path
}

// Masked is a copy of a configuration, or of what a layer sets, with [Mask] instead of secrets. Null says nothing, and stays.
func Masked(tree map[string]any) map[string]any {
	masked, _ := maskedValue("", tree).(map[string]any)
	return masked
}

func maskedValue(path string, value any) any {
	switch v := value.(type) {
	case nil:
		return nil
	case map[string]any:
		masked := make(map[string]any, len(v))
		for _, name := range slices.Sorted(maps.Keys(v)) { // two names may be masked alike
			shown := name
			if slices.ContainsFunc(strings.SplitN(name, ".", maxDepth), func(part string) bool { return hidesName(path, part) }) {
				shown = Mask
			}
			masked[shown] = maskedValue(strings.TrimPrefix(path+"."+name, "."), v[name])
		}
		return masked
	case []any:
		masked := make([]any, len(v))
		for i, below := range v {
			masked[i] = maskedValue(path, below)
		}
		return masked
	case string:
		if path != "kind" && path != "apiVersion" && !IsField(path) { // the name may be misspelt
			return Mask
		}
		if !secret(path) && !misplaced(path, v) {
			return withoutUser(v)
		}
	}
	if secret(path) || misplaced(path, value) {
		return Mask
	}
	return value
}

// gracePeriods is before the keys of a map whose values are durations, which its type does not say.
const gracePeriods = "evictionSoftGracePeriod."

// misplaced reports whether a value was meant for another field than the one with this path: it is no duration.
func misplaced(path string, value any) bool {
	text, is := value.(string)
	field, _ := FieldAt(path)
	if !is || field.Type != "duration" && !strings.HasPrefix(path, gracePeriods) || plainValue.MatchString(text) {
		return false
	}
	_, err := time.ParseDuration(text)
	return err != nil
}

// MaskedFields names the fields of a configuration, or of what a layer sets, in which there is a mask and no value, sorted.
func MaskedFields(tree map[string]any) (paths []string) {
	eachLeaf(tree, nil, func(path []string, value any) {
		text, err := json.Marshal(value)
		at := strings.Join(path, ".")
		if plain := strings.NewReplacer(`\u003c`, "<", `\u003e`, ">").Replace(string(text)); err == nil && strings.Contains(at+plain, Mask) {
			paths = append(paths, ShowPath(at))
		}
	})
	slices.Sort(paths)
	return paths
}
