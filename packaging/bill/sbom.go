package main

import (
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"strings"
)

// The part of CycloneDX 1.6 that is used (https://cyclonedx.org/docs/1.6/json/). CycloneDX/cyclonedx-go v0.12.0 would
// replace these 35 lines by nine more requirements.
type bill struct {
	BOMFormat    string       `json:"bomFormat"`
	SpecVersion  string       `json:"specVersion"`
	Version      int          `json:"version"`
	Metadata     metadata     `json:"metadata"`
	Components   []component  `json:"components"`
	Dependencies []dependency `json:"dependencies"`
}

type metadata struct {
	Component component `json:"component"`
}

type component struct {
	Type       string     `json:"type"`
	Reference  string     `json:"bom-ref"`
	Name       string     `json:"name"`
	Version    string     `json:"version"`
	PackageURL string     `json:"purl"`
	Properties []property `json:"properties,omitempty"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type dependency struct {
	Reference string   `json:"ref"`
	DependsOn []string `json:"dependsOn"`
}

// billOf lists what the binary is made of. The checksum of a module is Go's own (go.sum), and no hash that CycloneDX knows.
func billOf(info *buildinfo.BuildInfo, version string) ([]byte, error) {
	main := component{Type: "application", Name: info.Main.Path, Version: version, PackageURL: "pkg:golang/" + info.Main.Path + "@" + version}
	for _, setting := range info.Settings {
		switch setting.Key {
		case "GOOS", "GOARCH", "GOAMD64", "GOARM64", "CGO_ENABLED", "-trimpath":
			main.Properties = append(main.Properties, property{"build:" + setting.Key, setting.Value})
		}
	}
	if inside, is := strings.CutPrefix(info.Path, info.Main.Path+"/"); is { // one program of several
		main.Name, main.PackageURL = info.Path, main.PackageURL+"#"+inside
	}
	main.Reference = main.PackageURL
	goVersion := strings.TrimPrefix(info.GoVersion, "go")
	list := []component{{Type: "library", Name: "std", Version: goVersion, PackageURL: "pkg:golang/std@" + goVersion}}
	for _, module := range info.Deps {
		list = append(list, moduleComponent(effective(module)))
	}
	b := bill{BOMFormat: "CycloneDX", SpecVersion: "1.6", Version: 1, Metadata: metadata{main}}
	all := dependency{Reference: main.Reference}
	for _, c := range list {
		c.Reference = c.PackageURL
		b.Components = append(b.Components, c)
		all.DependsOn = append(all.DependsOn, c.Reference)
	}
	b.Dependencies = []dependency{all}
	text, err := json.MarshalIndent(b, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encoding the bill: %w", err)
	}
	return append(text, '\n'), nil
}

// effective is the module that was really compiled.
func effective(module *debug.Module) *debug.Module {
	if module.Replace != nil {
		return module.Replace
	}
	return module
}

func moduleComponent(module *debug.Module) component {
	return component{
		Type: "library", Name: module.Path, Version: module.Version,
		PackageURL: fmt.Sprintf("pkg:golang/%s@%s", module.Path, strings.ReplaceAll(module.Version, "+", "%2B")),
		Properties: []property{{"go:sum", module.Sum}},
	}
}
