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

// defaultsFiles hold what kubelets run with when nothing is configured, one file per Kubernetes version: made by
// test/parts/kubernetes/defaults with that version's own defaulting.
//
//go:embed defaults/*.json
var defaultsFiles embed.FS

// Defaults gives the defaults nearest to a kubelet's version, such as v1.36.3: those of the newest table that is not newer, else of
// the oldest. exact tells whether they are of the same minor version; else a default may have changed in between.
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

// LikelyDefaults are those of a version without a table of its own, between two that have one: of the older one, with what only the newer
// one has. differ are the fields of which they tell different things. Beyond all tables nothing is known.
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

// NewestDefaults are those of the newest version that is known.
func NewestDefaults() (tree map[string]any, version string, err error) {
	minors, err := defaultsMinors()
	if err != nil {
		return nil, "", err
	}
	return readDefaults(minors[len(minors)-1])
}

// defaultsMinors are the minor versions that there is a table for, in order.
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

// DefaultsFor are the defaults of what a configuration does not name, three of which depend on what it names
// (SetDefaults_KubeletConfiguration and loadConfigFile of Kubernetes 1.36).
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

// WithDefaults fills in what a configuration does not name.
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
