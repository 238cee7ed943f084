package config

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
)

// Mask replaces a secret. The kubelet uses the same one in its log and its configz.
const Mask = "<masked>"

// userInURL is a URL with a user, and maybe a password, in it.
var userInURL = regexp.MustCompile(`://[^/"\s]*@`)

// secret reports whether the field table says so of the field with this path, or of one that it is in.
func secret(path string) bool {
	for ; path != ""; path = path[:max(0, strings.LastIndexByte(path, '.'))] {
		if found, is := FieldAt(path); is && found.Secret {
			return true
		}
	}
	return false
}

// Hides reports whether the value of the field with this path must be hidden, because it may be a secret. Of a field
// that no kubelet knows, any text may be one: the name may be misspelt.
func Hides(path string, value any) bool {
	if value == nil {
		return false
	}
	if secret(path) {
		return true
	}
	text, err := json.Marshal(value)
	return err != nil || userInURL.Match(text) || !IsField(path) && strings.ContainsRune(string(text), '"')
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
		for name, below := range v {
			masked[name] = maskedValue(strings.TrimPrefix(path+"."+name, "."), below)
		}
		return masked
	case []any:
		masked := make([]any, len(v))
		for i, below := range v {
			masked[i] = maskedValue(path, below)
		}
		return masked
	case string:
		if path != "" && path != "kind" && path != "apiVersion" && !IsField(path) { // the name may be misspelt
			return Mask
		}
		if !secret(path) {
			return userInURL.ReplaceAllString(v, "://"+Mask+"@")
		}
	}
	if secret(path) {
		return Mask
	}
	return value
}

// MaskedFields names the fields of a configuration, or of what a layer sets, in which there is a mask and no value, sorted.
func MaskedFields(tree map[string]any) (paths []string) {
	eachLeaf(tree, nil, func(path []string, value any) {
		text, err := json.Marshal(value)
		if plain := strings.NewReplacer(`\u003c`, "<", `\u003e`, ">").Replace(string(text)); err == nil && strings.Contains(plain, Mask) {
			paths = append(paths, strings.Join(path, "."))
		}
	})
	slices.Sort(paths)
	return paths
}
