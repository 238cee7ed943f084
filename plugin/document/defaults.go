package document

import (
	"embed"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
)

// defaultsFiles hold the defaults of the kubelet, one file per Kubernetes version. test/parts/kubernetes/defaults
// writes them with the defaulting functions of that version.
//
//go:embed defaults/*.json
var defaultsFiles embed.FS

// Defaults returns the defaults nearest to a kubelet's version, such as v1.36.3: the newest table that is not
// newer, else the oldest. exact reports whether the minor versions match; otherwise a default may have changed in
// between.
func Defaults(kubelet string) (tree map[string]any, version string, exact bool, err error) {
	minors, err := defaultsMinors()
	if err != nil {
		return nil, "", false, err
	}
	wanted, nearest := kubeletconfig.Minor(kubelet), minors[0]
	for _, minor := range minors {
		if minor <= wanted {
			nearest = minor
		}
	}
	tree, version, err = readDefaults(nearest)
	return tree, version, nearest == wanted, err
}

// LikelyDefaults returns the defaults of a version without a table, between two that have one: the older table,
// with what only the newer one has. differ has the fields for which the two tables differ. Beyond all tables
// nothing is known.
func LikelyDefaults(kubelet string) (tree map[string]any, differ map[string]bool, known bool, err error) {
	minors, err := defaultsMinors()
	if err != nil {
		return nil, nil, false, err
	}
	next, exact := slices.BinarySearch(minors, kubeletconfig.Minor(kubelet))
	if !exact && (next == 0 || next == len(minors)) {
		return nil, nil, false, nil
	}
	newer, _, err := readDefaults(minors[next])
	if err != nil || exact {
		return newer, nil, true, err
	}
	older, _, err := readDefaults(minors[next-1])
	if err != nil {
		return nil, nil, false, err
	}
	before, after := Leaves(older), Leaves(newer)
	differ = map[string]bool{}
	for path, value := range before {
		differ[path] = !same(value, after[path])
	}
	return WithDefaults(older, newer), differ, true, nil
}

// NewestDefaults returns the defaults of the newest known version.
func NewestDefaults() (tree map[string]any, version string, err error) {
	minors, err := defaultsMinors()
	if err != nil {
		return nil, "", err
	}
	return readDefaults(minors[len(minors)-1])
}

// defaultsMinors returns the minor versions that have a table, in order.
func defaultsMinors() ([]int, error) {
	entries, err := defaultsFiles.ReadDir("defaults")
	if err != nil {
		return nil, fmt.Errorf("reading the tables of defaults: %w", err)
	}
	var minors []int
	for _, entry := range entries {
		minors = append(minors, kubeletconfig.Minor(strings.TrimSuffix(entry.Name(), ".json")))
	}
	slices.Sort(minors)
	return minors, nil
}

func readDefaults(minor int) (tree map[string]any, version string, err error) {
	version = "1." + strconv.Itoa(minor)
	text, err := defaultsFiles.ReadFile("defaults/" + version + ".json")
	if err == nil {
		err = utiljson.Unmarshal(text, &tree)
	}
	if err != nil {
		return nil, "", fmt.Errorf("reading the defaults of %s: %w", version, err)
	}
	return tree, version, nil
}

// DefaultsFor returns the defaults of the fields that a configuration does not set. Three of them depend on what
// it sets (SetDefaults_KubeletConfiguration and loadConfigFile of Kubernetes 1.36).
func DefaultsFor(config, defaults map[string]any) map[string]any {
	result := maps.Clone(defaults)
	if frequency := config["nodeStatusUpdateFrequency"]; !empty(frequency) {
		result["nodeStatusReportFrequency"] = frequency
	}
	if pulls, _ := config["maxParallelImagePulls"].(int64); pulls >= 2 {
		result["serializeImagePulls"] = false
	}
	if _, named := config["evictionHard"]; named && config["mergeDefaultEvictionSettings"] != true {
		delete(result, "evictionHard")
	}
	return result
}

// WithDefaults returns a tree with the defaults of the fields that it does not set.
func WithDefaults(tree, defaults map[string]any) map[string]any {
	filled := map[string]any{}
	for _, name := range slices.Concat(SortedKeys(defaults), SortedKeys(tree)) {
		value, named := tree[name]
		inner, isTree := value.(map[string]any)
		base, baseIsTree := defaults[name].(map[string]any)
		switch {
		case !named:
			filled[name] = defaults[name]
		case isTree && baseIsTree && !freeMaps[name]:
			filled[name] = WithDefaults(inner, base)
		default:
			filled[name] = value
		}
	}
	return filled
}
