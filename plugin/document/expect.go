package document

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubelet-supervisor/kubelet-supervisor/forecast"
)

// An Expectation is what a kubelet runs with, and what it would run with. A field that a flag or a drop-in file may keep, and one whose
// default is not known, makes several of it.
type Expectation struct {
	now     *forecast.Configuration
	then    []*forecast.Configuration // every one that may be; in the first all changes are made
	keepers []string                  // fields that flags or drop-in files of the node may keep
	Unsure  []string                  // fields whose default in this version is not known
	untried bool                      // there are more than were tried
	own     []string                  // what becomes as the node's own file has it
}

// mostOpen bounds the fields of which all combinations are tried.
const mostOpen = 6

// Expect is for a comparison with what the kubelet itself told. Defaults are those of its version.
func (c Comparison) Expect(differ map[string]bool) (e Expectation, err error) {
	if e.now, err = decided(c.Running); err != nil {
		return e, err
	}
	sure := runtime.DeepCopyJSON(c.Running)
	var open []Change
	if c.OwnUnknown {
		e.own = []string{"the fields that the layers do not set"}
	}
	for _, one := range c.allChanges() {
		if one.toOwn {
			if matters(c.Running, one) {
				e.own = append(e.own, FieldName(one.Path))
			}
			continue
		}
		applied, doubtful := c.fate(one, differ)
		if doubtful && matters(c.Running, one) {
			open = append(open, one)
			if one.needsDefault(differ) {
				e.Unsure = append(e.Unsure, FieldName(one.Path))
			} else {
				e.keepers = append(e.keepers, FieldName(one.Path))
			}
		} else if applied || doubtful {
			one.apply(sure)
		}
	}
	all := 1<<len(open) - 1
	for set := all; set >= 0; set-- {
		if e.untried = len(open) > mostOpen; e.untried && set < all {
			break
		}
		tree := runtime.DeepCopyJSON(sure)
		for i, one := range open {
			if set&(1<<i) != 0 {
				one.apply(tree)
			}
		}
		then, err := decided(tree)
		if err != nil {
			return e, err
		}
		e.then = append(e.then, then)
	}
	return e, nil
}

// SameForPods: whatever may be, nothing changes that decides over running pods.
func (e Expectation) SameForPods() bool {
	return !e.untried && len(e.own) == 0 && !slices.ContainsFunc(e.then, func(then *forecast.Configuration) bool { return !reflect.DeepEqual(then, e.now) })
}

// fate tells whether a change takes effect; doubtful: nobody knows. While the node runs its own configuration, any running value may be a
// flag's. A map may be a flag's as a whole, or a drop-in file's key by key.
func (c Comparison) fate(one Change, differ map[string]bool) (applied, doubtful bool) {
	switch {
	case one.ignored != "":
		return false, false
	case c.Active == nil, c.ActiveOver != nil && one.said == nil:
		return false, true
	case one.needsDefault(differ):
		return false, true
	case !same(one.From, one.said):
		return false, false
	}
	return !one.Kept && !one.silent, one.Kept || one.silent
}

// needsDefault tells whether it takes a default to tell, and nobody knows that.
func (c Change) needsDefault(differ map[string]bool) bool {
	return differ[c.field()] && (c.byDefault || c.unsaid)
}

// matters tells whether running pods may depend on it.
func matters(running map[string]any, one Change) bool {
	tree := runtime.DeepCopyJSON(running)
	before, err := decided(tree)
	if err != nil {
		return true
	}
	one.apply(tree)
	after, err := decided(tree)
	return err != nil || !reflect.DeepEqual(before, after)
}

// decided is what of a configuration decides over running pods.
func decided(tree map[string]any) (*forecast.Configuration, error) {
	text, err := json.Marshal(tree)
	if err != nil {
		return nil, fmt.Errorf("writing a configuration: %w", err)
	}
	return forecast.DecodeConfiguration(text)
}

// field is the path without the key of a free map.
func (c Change) field() string {
	if c.key == "" {
		return c.Path
	}
	return strings.TrimSuffix(c.Path, "."+c.key)
}

// apply makes the change in a tree.
func (c Change) apply(tree map[string]any) {
	steps := strings.Split(c.field(), ".")
	if c.key != "" {
		steps = append(steps, c.key)
	}
	last := len(steps) - 1
	for _, step := range steps[:last] {
		below, is := tree[step].(map[string]any)
		if !is {
			below = map[string]any{}
			tree[step] = below
		}
		tree = below
	}
	if c.to == nil {
		delete(tree, steps[last])
	} else {
		tree[steps[last]] = runtime.DeepCopyJSONValue(c.to)
	}
}
