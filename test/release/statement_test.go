//go:build release

package release

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// statement is what is read of SLSA's provenance.
type statement struct {
	Subject []struct {
		Name   string
		Digest struct{ SHA256 string }
	}
	PredicateType string
	Predicate     struct {
		BuildDefinition struct {
			ExternalParameters   map[string]string
			ResolvedDependencies []dependency
		}
	}
}

type dependency struct {
	URI, Name string
	Digest    map[string]string
}

// provenance names each published file by its bytes, and all that these depend on.
func provenance(t *testing.T, tree, made string) {
	text, err := os.ReadFile(filepath.Join(made, "provenance.intoto.json"))
	if err != nil {
		t.Fatal(err)
	}
	var s statement
	if err := json.Unmarshal(text, &s); err != nil {
		t.Fatal(err)
	}
	definition := s.Predicate.BuildDefinition
	if s.PredicateType != "https://slsa.dev/provenance/v1" || definition.ExternalParameters["version"] != version {
		t.Errorf("%s", text)
	}
	want := dependencies(t, tree)
	if has := definition.ResolvedDependencies; !slices.EqualFunc(has, want, func(a, b dependency) bool { return fmt.Sprint(a) == fmt.Sprint(b) }) {
		t.Errorf("it is built from\n%+v\nand ought to be from\n%+v", has, want)
	}
	var named []string
	for _, subject := range s.Subject {
		named = append(named, subject.Digest.SHA256+"  "+subject.Name)
	}
	sums, err := os.ReadFile(filepath.Join(made, "SHA256SUMS"))
	if err != nil {
		t.Fatal(err)
	}
	listed := strings.Split(strings.TrimSpace(string(sums)), "\n")
	listed = slices.DeleteFunc(listed, func(line string) bool { return strings.HasSuffix(line, "  provenance.intoto.json") })
	if !slices.Equal(named, listed) || len(named) < 30 {
		t.Errorf("the statement is about %d files, SHA256SUMS about %d beside it", len(named), len(listed))
	}
}

// dependencies are the commit, Go, the modules of what is released and of what makes it, and the programs of this machine that make archives and indexes.
func dependencies(t *testing.T, tree string) []dependency {
	t.Helper()
	asked := func(line string) string { return strings.TrimSpace(must(t, tree, line)) }
	list := []dependency{
		{URI: "git+https://github.com/kubelet-supervisor/kubelet-supervisor@refs/tags/" + version, Digest: map[string]string{"gitCommit": asked("git rev-parse HEAD")}},
		{URI: "pkg:golang/stdlib@" + asked("go env GOVERSION")},
	}
	for _, file := range []string{"go.sum", "packaging/image/go.sum", "packaging/mixin/go.sum", "packaging/tools/go.sum"} {
		list = append(list, dependency{Name: file, Digest: map[string]string{"sha256": asked("git show HEAD:" + file + " | sha256sum | cut -c -64")}})
	}
	escaped := strings.NewReplacer("+", "%2B", ":", "%3A")
	for _, program := range []string{"apt-utils", "createrepo-c", "gzip", "jq", "squashfs-tools", "tar", "zlib1g"} {
		version := asked("dpkg-query -W -f '${Version}' " + program)
		list = append(list, dependency{URI: "pkg:deb/" + asked("sed -n 's/^ID=//p' /etc/os-release | tr -d '\"'") + "/" + program + "@" + escaped.Replace(version)})
	}
	return list
}
