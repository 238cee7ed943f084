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

// An Expectation has the configuration that a kubelet runs with, and those that it may run with after a change.
// There are several if flags or drop-in files may keep a field, or if a default is not known.
type Expectation struct {
	now     *forecast.Configuration
	then    []*forecast.Configuration // all possible ones; the first has all changes
	keepers []string                  // fields that flags or drop-in files of the node may keep
	Unsure  []string                  // fields whose default in this version is not known
	untried bool                      // there are more combinations than were tried
	own     []string                  // fields that return to the node's own file
}

// mostOpen limits the fields whose combinations are all tried.
const mostOpen = 6

// Expect returns the expectation of a comparison with the kubelet's own configz, using the defaults of its
// version.
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

// SameForPods reports whether no possible configuration changes a field that affects running pods.
func (e Expectation) SameForPods() bool {
	return !e.untried && len(e.own) == 0 && !slices.ContainsFunc(e.then, func(then *forecast.Configuration) bool { return !reflect.DeepEqual(then, e.now) })
}

// fate reports whether a change takes effect; doubtful means that this is not known. While the node runs its own
// configuration, a flag may have set any running value. A flag may have set a whole map, a drop-in file some of
// its keys.
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

// needsDefault reports whether the change depends on a default that is not known.
func (c Change) needsDefault(differ map[string]bool) bool {
	return differ[c.field()] && (c.byDefault || c.unsaid)
}

// matters reports whether the change may affect running pods.
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

// decided returns the part of a configuration that affects running pods.
func decided(tree map[string]any) (*forecast.Configuration, error) {
	text, err := json.Marshal(tree)
	if err != nil {
		return nil, fmt.Errorf("writing a configuration: %w", err)
	}
	return forecast.DecodeConfiguration(text)
}

// field returns the path without the key of a free map.
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
