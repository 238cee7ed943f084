//go:build linux

package main

import (
	"context"
	"debug/buildinfo"
	"debug/elf"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

const (
	sectionProgram = "program"
	modulesShown   = 12
	standard       = "Go's standard library and runtime"
)

// programRows tell what the shipped program is made of: its sections, and the modules that its code and data are from. The shipped
// program has no symbols, so one is built that has.
func (b *bench) programRows(ctx context.Context) error {
	shipped, err := elf.Open(b.Binary)
	if err != nil {
		return fmt.Errorf("reading %s: %w", b.Binary, err)
	}
	defer shipped.Close()
	for _, section := range shipped.Sections {
		if section.Type != elf.SHT_NOBITS && section.FileSize >= 100_000 {
			b.one(sectionProgram, "section "+section.Name, "kB", float64(section.FileSize)/1000)
		}
	}
	folder, err := os.MkdirTemp("", "bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	program := filepath.Join(folder, "program")
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", program, "./cmd/kubelet-supervisor")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if output, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("building the program with its symbols (run this in the repository): %w: %s", err, output)
	}
	sizes, err := moduleSizes(program)
	if err != nil {
		return err
	}
	rest := 0.0
	names := slices.SortedFunc(maps.Keys(sizes), func(a, b string) int { return int(sizes[b] - sizes[a]) })
	for i, name := range names {
		if i >= modulesShown {
			rest += sizes[name]
			continue
		}
		b.one(sectionProgram, "code and data of "+name, "kB", sizes[name]/1000)
	}
	b.one(sectionProgram, fmt.Sprintf("code and data of %d other modules", max(0, len(names)-modulesShown)), "kB", rest/1000)
	return nil
}

// moduleSizes sums the sizes of a program's symbols, in bytes, by the module that they are from. What the file has no bytes for is
// nothing but zeroes at the start.
func moduleSizes(program string) (map[string]float64, error) {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return nil, err
	}
	modules := []string{info.Main.Path}
	for _, dependency := range info.Deps {
		modules = append(modules, dependency.Path)
	}
	file, err := elf.Open(program)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	symbols, err := file.Symbols()
	if err != nil {
		return nil, fmt.Errorf("listing the program's symbols: %w", err)
	}
	sizes := map[string]float64{}
	for _, symbol := range symbols {
		if at := int(symbol.Section); at < len(file.Sections) && file.Sections[at].Type != elf.SHT_NOBITS {
			sizes[moduleOf(symbol.Name, modules)] += float64(symbol.Size)
		}
	}
	return sizes, nil
}

// moduleOf finds the module of a symbol: of type:*PATH.Name and go:itab.*PATH.Name,… it is that of the first path.
func moduleOf(symbol string, modules []string) string {
	for _, prefix := range []string{"type:.eq.", "type:.hash.", "type:", "go:itab."} {
		symbol = strings.TrimPrefix(symbol, prefix)
	}
	symbol = strings.TrimLeft(symbol, "*[]")
	symbol = strings.ReplaceAll(symbol, "%2e", ".")
	longest := ""
	for _, module := range modules {
		if len(module) > len(longest) && (strings.HasPrefix(symbol, module+".") || strings.HasPrefix(symbol, module+"/")) {
			longest = module
		}
	}
	switch {
	case longest != "":
		return longest
	case strings.HasPrefix(symbol, "main."):
		return modules[0]
	}
	return standard
}
