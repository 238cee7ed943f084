package main

import (
	"bytes"
	"debug/buildinfo"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
)

func TestTheBillNamesWhatWasCompiled(t *testing.T) {
	info := &buildinfo.BuildInfo{
		GoVersion: "go1.26.8",
		Path:      "example.org/program/cmd/one",
		Main:      debug.Module{Path: "example.org/program"},
		Deps: []*debug.Module{
			{Path: "example.org/a", Version: "v1.0.0", Sum: "h1:a"},
			{Path: "example.org/b", Version: "v1.0.0", Replace: &debug.Module{Path: "example.org/fork", Version: "v2.0.0+incompatible"}},
		},
		Settings: []debug.BuildSetting{{Key: "GOARCH", Value: "arm64"}, {Key: "-ldflags", Value: "-X secret=1"}},
	}
	text, err := billOf(info, "v1.2.3")
	if err != nil {
		t.Fatal(err)
	}
	again, err := billOf(info, "v1.2.3")
	if err != nil || !bytes.Equal(text, again) {
		t.Errorf("not the same twice: %v", err)
	}
	var b bill
	if err := json.Unmarshal(text, &b); err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, c := range b.Components {
		list = append(list, c.PackageURL)
	}
	want := []string{"pkg:golang/std@1.26.8", "pkg:golang/example.org/a@v1.0.0", "pkg:golang/example.org/fork@v2.0.0%2Bincompatible"}
	if !slices.Equal(list, want) || !slices.Equal(b.Dependencies[0].DependsOn, want) || b.Metadata.Component.Version != "v1.2.3" {
		t.Errorf("got %s", text)
	}
	if main := b.Metadata.Component; main.Name != "example.org/program/cmd/one" || main.PackageURL != "pkg:golang/example.org/program@v1.2.3#cmd/one" {
		t.Errorf("it is the bill of %+v", main)
	}
	if strings.Contains(string(text), "secret") || !strings.Contains(string(text), "arm64") {
		t.Errorf("got %s", text)
	}
}

func TestLicences(t *testing.T) {
	folder := t.TempDir()
	for _, name := range []string{"LICENSE.txt", "NOTICE", "main.go", "licenses.go"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	texts, err := licencesIn(folder)
	if got := string(bytes.Join(texts, []byte(" "))); err != nil || got != "LICENSE.txt NOTICE" {
		t.Errorf("%v, got %q", err, got)
	}
	if _, err := licencesIn(t.TempDir()); err == nil {
		t.Error("a module without a licence is passed on")
	}
}
