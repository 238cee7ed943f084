package kubeletconfig

import (
	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig/commandline"
)

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/kubelet-supervisor/kubelet-supervisor/internal/bounded"
)

// maxShown is how much of a value people see, in bytes.
const maxShown = 120

// ShowValue is a value of the field with this path on one line, cut where it is long, and masked where it [Hides].
func ShowValue(path string, value any) string {
	if Hides(path, value) {
		return Mask
	}
	if value == nil {
		return "<unset>"
	}
	var text strings.Builder
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return "?"
	}
	return bounded.Text(bounded.Line(text.String()), maxShown)
}

// Text says it all to a person, in a line and some indented ones. In detail it has what a change of the field does.
func (e Explanation) Text(detail bool) string {
	value := e.show(e.Said)
	switch {
	case e.Unset:
		value = "the kubelet's default"
	case e.Null:
		value = "<unset> ← " + e.By.shown()
	default:
		value += " ← " + e.By.shown()
	}
	facts := []string{bounded.Text(bounded.Line(ShowPath(e.Name())), maxShown) + ": " + value}
	if !e.Exists {
		facts = append(facts, "no kubelet knows this field")
	} else if e.Field.Class != "" {
		facts = append(facts, string(e.Field.Class))
	}
	if e.Field.Since > 0 {
		facts = append(facts, fmt.Sprintf("since kubelet 1.%d", e.Field.Since))
	}
	if e.Field.Until > 0 {
		facts = append(facts, fmt.Sprintf("gone since kubelet 1.%d", e.Field.Until))
	}
	lines := []string{strings.Join(facts, "; ")}
	if e.Runs != nil {
		lines = append(lines, "the kubelet makes it "+ShowValue(e.Name(), e.Runs))
	}
	taken := e.Null
	for _, said := range e.Over {
		word := "over "
		switch {
		case said.Null:
			word = ""
		case taken:
			word = "took away "
		case e.Shadowed(said):
			word = "shadows "
		}
		taken = said.Null
		lines = append(lines, word+e.show(said)+" ← "+said.By.shown())
	}
	if detail && e.Field.Effect != "" {
		lines = append(lines, "a change: "+e.Field.Effect)
	}
	return strings.Join(lines, "\n    ") + "\n"
}

func (e Explanation) show(said Said) string {
	switch {
	case said.Null:
		return "null"
	case said.Untold:
		return "(not read here)"
	}
	return ShowValue(e.Name(), said.Value)
}

// shown is the origin for a person: names of layers and files are anybody's text.
func (o Origin) shown() string { return bounded.Text(bounded.Line(o.String()), maxShown) }

// MarshalJSON is the same for machines. Values are whole; those that it [Hides] are left out.
func (e Explanation) MarshalJSON() ([]byte, error) {
	type said struct {
		Value    any    `json:"value,omitempty"`
		Null     bool   `json:"null,omitempty"`
		NotShown bool   `json:"notShown,omitempty"`
		By       Origin `json:"setBy"`
		Shadowed bool   `json:"shadowed,omitempty"`
	}
	told := func(s Said) said {
		if s.Untold || Hides(e.Name(), s.Value) {
			return said{NotShown: true, By: s.By}
		}
		return said{Value: s.Value, Null: s.Null, By: s.By}
	}
	written := struct {
		Field string `json:"field"`
		said
		Unset   bool   `json:"unset,omitempty"`
		Runs    any    `json:"kubeletMakesIt,omitempty"`
		Over    []said `json:"over,omitempty"`
		Unknown bool   `json:"unknown,omitempty"`
		Class   Class  `json:"class,omitempty"`
		Effect  string `json:"effect,omitempty"`
		Since   int    `json:"sinceMinor,omitempty"`
		Until   int    `json:"goneSinceMinor,omitempty"`
	}{Field: ShowPath(e.Name()), said: told(e.Said), Unset: e.Unset, Unknown: !e.Exists, Class: e.Field.Class, Effect: e.Field.Effect, Since: e.Field.Since, Until: e.Field.Until}
	if !Hides(e.Name(), e.Runs) {
		written.Runs = e.Runs
	}
	for _, over := range e.Over {
		one := told(over)
		one.Shadowed = e.Shadowed(over)
		written.Over = append(written.Over, one)
	}
	return json.Marshal(written)
}

// FieldOf gives the field with this path, or the map that it is a key of.
func FieldOf(path string) (Field, bool) {
	for above := path; above != ""; above = parentPath(above) {
		if found, is := FieldAt(above); is {
			return found, above == path || strings.HasPrefix(found.Type, "map[")
		}
	}
	return Field{}, false
}

// IsField reports whether there is a kubelet with such a field, or with a map that may have such a key.
func IsField(path string) bool {
	_, is := FieldOf(path)
	return is
}

// Explains reports whether it is about the field with this path, or about one in it, or in which that one is.
func (e Explanation) Explains(path string) bool {
	name := e.Name()
	return name == path || strings.HasPrefix(name, path+".") || strings.HasPrefix(path, name+".")
}

// NoSuchField says that there is none with this path, and which may have been meant.
func NoSuchField(path string) error {
	hint := "docs/reference/fields.md has them all"
	if similar := similarField(path); similar != "" {
		hint = "do you mean " + similar + "?"
	}
	return fmt.Errorf("there is no field %q; %s", ShowPath(path), hint)
}

// similarField returns the field that a user may have meant with an unknown path, or the flag that sets it; "" if none is similar.
func similarField(path string) string {
	if flag, is := commandline.Fields[strings.ReplaceAll(strings.TrimLeft(path, "-"), "_", "-")]; is {
		return flag.Field
	}
	if len(path) > maxShown {
		return ""
	}
	nearest, distance := "", 1+min(3, len(path)/3)
	for _, field := range fields {
		for _, part := range []string{field.Path, field.Path[1+strings.LastIndexByte(field.Path, '.'):]} {
			if d := editDistance(strings.ToLower(path), strings.ToLower(part)); d < distance || d == distance && nearest != "" && len(field.Path) < len(nearest) {
				nearest, distance = field.Path, d
			}
		}
		if strings.HasSuffix(strings.ToLower(field.Path), "."+strings.ToLower(path)) {
			return field.Path
		}
	}
	return nearest
}

// editDistance is how many letters have to be put in, taken out or changed, by Levenshtein.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
