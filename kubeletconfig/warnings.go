package kubeletconfig

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	sigsjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// Warnings says of payload[key], in at most 10 short lines, which fields appear twice, and which no kubelet knows, or one of this minor
// version (0: unknown) does not. The kubelet decodes leniently and runs with such a field left out. A field can also be newer than all that
// is known here: a warning is never a refusal. Nil when there is nothing to say, or when the document does not decode at all.
func Warnings(payload map[string]string, key string, kubelet int) []string {
	return strictWarnings([]byte(payload[key]), kubelet)
}

// UnknownFields are the paths of the fields of payload[key] that no kubelet knows, or one of this minor version (0:
// unknown) does not, at most 10; those of layers once each.
func UnknownFields(payload map[string]string, key string, kubelet int) []string {
	return strictLook([]byte(payload[key]), kubelet).fields
}

// FileWarnings are those about a file; none when it cannot be read.
func FileWarnings(path string, kubelet int) []string {
	if path == "" {
		return nil
	}
	document, err := ReadFile(path)
	if err != nil {
		return nil
	}
	return strictWarnings(document, kubelet)
}

func strictWarnings(document []byte, kubelet int) []string {
	found := strictLook(document, kubelet)
	return found.lines()
}

func strictLook(document []byte, kubelet int) (found warnings) {
	tree, err := Decode(document)
	if err != nil {
		return found
	}
	if line := secondDocument(document); line > 0 {
		found.add("the kubelet reads only the first YAML document and ignores the one from line %d on", line)
	}
	found.addDuplicates(document)
	if !AreLayers(tree) {
		found.addUnknownTop(tree, kubelet)
		return found
	}
	layers, _ := readLayers(tree, document) // what is wrong with the envelope is a refusal
	for _, layer := range layers.Layers {
		found.of = " (layer " + layer.Name + ")"
		found.addUnknownTop(layer.Patch, kubelet)
	}
	return found
}

const maxWarnings = 10

// warnings keeps the first, and counts the others.
type warnings struct {
	first []string
	more  int
	of    string // which layer, at the end of each line
	// fields are those that are unknown.
	fields []string
}

func (w *warnings) add(format string, words ...any) {
	if len(w.first) == maxWarnings {
		w.more++
		return
	}
	w.first = append(w.first, Quote(fmt.Sprintf(format, words...)+w.of))
}

func (w *warnings) addField(path string) {
	if path = Quote(ShowPath(path)); len(w.fields) < maxWarnings && !slices.Contains(w.fields, path) {
		w.fields = append(w.fields, path)
	}
}

func (w *warnings) lines() []string {
	if w.more == 0 {
		return w.first
	}
	return append(w.first[:maxWarnings-1], fmt.Sprintf("and %d more", w.more+1))
}

// atMost keeps what was found within the bounds of warnings.
func atMost(found []string) []string {
	var list warnings
	for _, words := range found {
		list.add("%s", words)
	}
	return list.lines()
}

var (
	yamlDuplicate = regexp.MustCompile(`line (\d+): key ("(?:[^"\\]|\\.)*") already set in map`)
	jsonDuplicate = regexp.MustCompile(`^duplicate field (".*")$`)
)

// addDuplicates asks the decoders again, for of two equal keys the last has won in what they gave.
func (w *warnings) addDuplicates(document []byte) {
	if !isJSON(document) {
		if _, err := yaml.YAMLToJSONStrict(document); err != nil {
			for _, match := range yamlDuplicate.FindAllStringSubmatch(err.Error(), -1) {
				w.add("field %q appears twice (line %s)", shownKey(match[2]), match[1])
			}
		}
		return
	}
	var tree any
	strict, _ := sigsjson.UnmarshalStrict(document, &tree) // that it decodes is known
	for _, err := range strict {
		if match := jsonDuplicate.FindStringSubmatch(err.Error()); match != nil {
			path := unquoted(match[1])
			envelope := inPatch.FindString(path)
			w.add("field %q appears twice", envelope+ShowPath(path[len(envelope):]))
		}
	}
}

// shownKey is a key for people, without what may be a secret. The decoder does not say where it is.
func shownKey(quoted string) string {
	key := unquoted(quoted)
	isField := func(f Field) bool { return f.Path[1+strings.LastIndexByte(f.Path, '.'):] == key }
	if !slices.ContainsFunc(fields[:], isField) && slices.ContainsFunc(strings.Split(key, "."), func(part string) bool { return !plainName.MatchString(part) }) {
		return Mask
	}
	return key
}

func unquoted(text string) string {
	if plain, err := strconv.Unquote(text); err == nil {
		return plain
	}
	return text
}

// secondDocument is the line on which a second YAML document begins that is not empty; 0 = there is none. No scalar
// can have such a line: it would have to be indented.
func secondDocument(document []byte) int {
	if isJSON(document) {
		return 0
	}
	seen, begins := false, 0
	for i, line := range strings.Split(yamlBreaks.Replace(string(document)), "\n") {
		word, rest, _ := strings.Cut(strings.ReplaceAll(strings.TrimRight(line, " \t"), "\t", " "), " ")
		switch {
		case isBlank(line), word == "%YAML", word == "%TAG":
			continue
		case word == "---", word == "...":
			if seen && begins == 0 {
				begins = i + 1
			}
			if isBlank(rest) {
				continue
			}
		}
		if begins > 0 {
			return begins
		}
		seen = true
	}
	return 0
}

// yamlBreaks makes the line breaks of YAML 1.1 one.
var yamlBreaks = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\u0085", "\n", "\u2028", "\n", "\u2029", "\n")

// isBlank: of a line of YAML, it says nothing.
func isBlank(line string) bool {
	line = strings.TrimLeft(line, " \t")
	return line == "" || line[0] == '#'
}

// addUnknownTop looks at a whole configuration, or at a part of one.
func (w *warnings) addUnknownTop(tree map[string]any, kubelet int) {
	fields := maps.Clone(tree)
	delete(fields, "kind")
	delete(fields, "apiVersion")
	w.addUnknown(fields, "", "", kubelet)
}

// addUnknown looks at the keys of a mapping that is a structure: at its place in the document, as shown, and in the table.
func (w *warnings) addUnknown(tree map[string]any, shown, path string, kubelet int) {
	for _, name := range slices.Sorted(maps.Keys(tree)) {
		field, is := FieldAt(path + name)
		switch {
		case !is || strings.Contains(name, "."):
			w.add("field %q is unknown to v0.%d", ShowPath(shown+name), newestMinor)
			w.addField(shown + name)
			continue
		case field.Ignored(kubelet) != "":
			w.add("field %q %s", shown+name, field.Ignored(kubelet))
			w.addField(shown + name)
			continue
		case !hasFields(field.Path):
			continue // the keys of such a map are data
		}
		switch value := tree[name].(type) {
		case map[string]any:
			w.addUnknown(value, shown+name+".", field.Path+".", kubelet)
		case []any:
			for i, item := range value {
				if inner, is := item.(map[string]any); is {
					w.addUnknown(inner, fmt.Sprintf("%s%s[%d].", shown, name, i), field.Path+".", kubelet)
				}
			}
		}
	}
}
