package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubelet/config/v1beta1"
)

const tree = "../.."

func rowsOfTheTree(t *testing.T) []row {
	t.Helper()
	_, rows, err := readRows(filepath.Join(tree, "kubeletconfig/fields.csv"))
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// The rows are the fields of the newest types in go.mod. When new ones came: go run ./test/fields -types, and write what they do.
func TestRowsAreTheNewestTypes(t *testing.T) {
	got := map[string]string{}
	for _, r := range rowsOfTheTree(t) {
		if r.Until == "" {
			got[r.Path] = r.Type
		}
	}
	want := map[string]string{}
	reflected(reflect.TypeFor[v1beta1.KubeletConfiguration](), "", want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the types (-) and kubeletconfig/fields.csv (+):\n%s", diff)
	}
}

// reflected finds the fields of a structure as the compiler knows it, and says what the type looks like as JSON.
func reflected(kind reflect.Type, prefix string, found map[string]string) string {
	if own := ownJSON[kind.PkgPath()+"."+kind.Name()]; own != "" {
		return own
	}
	switch kind.Kind() {
	case reflect.Pointer:
		return reflected(kind.Elem(), prefix, found)
	case reflect.Slice:
		return "[]" + reflected(kind.Elem(), prefix, found)
	case reflect.Map:
		return "map[string]" + reflected(kind.Elem(), prefix, nil)
	case reflect.Struct:
	default:
		return kind.Kind().String()
	}
	for i := range kind.NumField() {
		field := kind.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case name == "-" || field.Type == reflect.TypeFor[metav1.TypeMeta]():
		case name == "" && field.Anonymous:
			reflected(field.Type, prefix, found)
		default:
			found[prefix+name] = reflected(field.Type, prefix+name+".", found)
		}
	}
	return "object"
}

// What is made of the rows is what is in the tree: go generate ./kubeletconfig.
func TestOutputsAreInTheTree(t *testing.T) {
	made, err := outputs(t.Context(), tree, rowsOfTheTree(t))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range made {
		got, err := os.ReadFile(filepath.Join(tree, name))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("%s is not what go generate ./kubeletconfig makes (-want +got):\n%s", name, diff)
		}
	}
}

var (
	flags   = regexp.MustCompile(`^--[a-z0-9-]+( --[a-z0-9-]+)*$`)
	version = regexp.MustCompile(`^(1\.\d+)?$`)
)

// mostEffect is as much as a person takes in between two changed values, in characters.
const mostEffect = 130

// What is said of each field is whole, and in words that are explained.
func TestRowsAreWhole(t *testing.T) {
	rows := rowsOfTheTree(t)
	if want := sorted(slices.Values(rows)); !reflect.DeepEqual(rows, want) {
		t.Error("the rows are not in the order of their paths")
	}
	for _, r := range rows {
		said := r.Class != "" || r.Effect != "" || !strings.Contains(r.Path, ".")
		if said && (r.Class == "" || r.Effect == "" || r.TakesEffect == "" || r.RunningPods == "" || r.Drain == "") {
			t.Errorf("%s: write class, effect, takes_effect, running_pods and drain", r.Path)
		}
		if said && !slices.ContainsFunc(classes, func(c class) bool { return c.Name == r.Class }) {
			t.Errorf("%s: there is no class %q", r.Path, r.Class)
		}
		if classOf(rows, r.Path) == "" {
			t.Errorf("%s: it has no class, nor has what it is in", r.Path)
		}
		if len([]rune(r.Effect)) > mostEffect || strings.HasSuffix(r.Effect, ".") || r.Details != "" && !strings.HasSuffix(r.Details, ".") {
			t.Errorf("%s: the effect is one clause of at most %d characters without a full stop, the details are sentences", r.Path, mostEffect)
		}
		if r.Flags != "" && !flags.MatchString(r.Flags) {
			t.Errorf("%s: the flags are %q", r.Path, r.Flags)
		}
		if r.Secret != "" && r.Secret != "yes" {
			t.Errorf("%s: secret is %q, and not yes or empty", r.Path, r.Secret)
		}
		if !version.MatchString(r.Since) || !version.MatchString(r.Until) {
			t.Errorf("%s: since %q, until %q", r.Path, r.Since, r.Until)
		}
	}
}

// A default that Kubernetes' own defaulting gives (plugin/document/defaults) is the one that people are told.
func TestDefaultsAreKubernetes(t *testing.T) {
	tables, err := filepath.Glob(filepath.Join(tree, "plugin/document/defaults/1.*.json"))
	if err != nil || len(tables) == 0 {
		t.Fatalf("there is no table of defaults: %v", err)
	}
	newest := slices.MaxFunc(tables, func(a, b string) int { return minorOf(filepath.Base(a)) - minorOf(filepath.Base(b)) })
	content, err := os.ReadFile(newest)
	if err != nil {
		t.Fatal(err)
	}
	var defaults map[string]any
	if err := json.Unmarshal(content, &defaults); err != nil {
		t.Fatal(err)
	}
	for _, r := range rowsOfTheTree(t) {
		var value any = defaults
		for name := range strings.SplitSeq(r.Path, ".") {
			inner, _ := value.(map[string]any)
			value = inner[name]
		}
		switch value.(type) {
		case string, bool, float64:
		default:
			continue // there is none, or it is no single value
		}
		told, _, _ := strings.Cut(r.Default, " ")
		if want := fmt.Sprint(value); r.Class != "" && told != want && !sameDuration(told, want) && !(value == 1e6 && told == "1000000") {
			t.Errorf("%s: the default is %q, want %q of %s", r.Path, r.Default, want, newest)
		}
	}
}

func sameDuration(a, b string) bool {
	one, err := time.ParseDuration(a)
	other, otherErr := time.ParseDuration(b)
	return err == nil && otherErr == nil && one == other
}

func TestDated(t *testing.T) {
	rows := []row{{Path: "b", Type: "x", Since: "1.9", Until: "1.9", Effect: "kept"}, {Path: "never", Effect: "kept, too"}}
	got := dated(rows, []release{
		{"1.17", map[string]string{"a": "int32", "b": "string", "back": "bool"}},
		{"1.18", map[string]string{"a": "int32", "b": "string", "c": "bool"}},
		{"1.19", map[string]string{"a": "int64", "c": "bool", "back": "bool"}},
	})
	want := []row{
		{Path: "a", Type: "int64"},
		{Path: "b", Type: "string", Until: "1.19", Effect: "kept"},
		{Path: "back", Type: "bool", Since: "1.19"},
		{Path: "c", Type: "bool", Since: "1.18"},
		{Path: "never", Effect: "kept, too"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The types as they are read from source are those that the compiler knows.
func TestFieldTypes(t *testing.T) {
	reader := typeReader{packages: map[string]*sourcePackage{}, folder: func(importPath string) (string, error) {
		folder, err := exec.CommandContext(t.Context(), "go", "list", "-f", "{{.Dir}}", importPath).Output()
		return strings.TrimSpace(string(folder)), err
	}}
	got, err := reader.fieldTypes()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	reflected(reflect.TypeFor[v1beta1.KubeletConfiguration](), "", want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the compiler's (-) and what is read (+):\n%s", diff)
	}
	if len(got) < 150 {
		t.Errorf("there are %d fields", len(got))
	}
}
