//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A folder is the package that is mutated.
type folder struct {
	Dir, Name   string
	GoFiles     []string
	sources     map[string][]byte // by base name
	scratch     string
	declaration map[string][]int // by file: the line on which each copy begins, beside copies
	copies      map[string][]*mutant
}

func open(ctx context.Context, path, scratch string) (*folder, error) {
	p := &folder{sources: map[string][]byte{}, scratch: scratch}
	output, err := command(ctx, "go", "list", "-json=Dir,Name,GoFiles", path)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(output, p); err != nil {
		return nil, fmt.Errorf("reading what go list says: %w", err)
	}
	for _, name := range p.GoFiles {
		if p.sources[name], err = os.ReadFile(filepath.Join(p.Dir, name)); err != nil {
			return nil, err
		}
	}
	return p, nil
}

func (p *folder) mutants() ([]*mutant, error) {
	var all []*mutant
	for _, name := range p.GoFiles {
		found, err := find(name, p.sources[name])
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	for i, m := range all {
		m.id = i + 1
	}
	return all, nil
}

// compile builds all mutants of functions into one binary, and gives those that compile.
func (p *folder) compile(ctx context.Context, mutants []*mutant, binary string) ([]*mutant, error) {
	mutants = slices.DeleteFunc(slices.Clone(mutants), func(m *mutant) bool { return !p.parses(m) })
	for range 10 {
		overlay, err := p.write(mutants)
		if err != nil {
			return nil, err
		}
		_, err = command(ctx, "go", "build", "-gcflags=-e", "-overlay", overlay, p.Dir)
		if err == nil {
			_, err = command(ctx, "go", "test", "-c", "-vet=off", "-overlay", overlay, "-o", binary, p.Dir)
			return mutants, err
		}
		broken := p.broken(err.Error())
		if len(broken) == 0 {
			return nil, fmt.Errorf("the package with its mutants does not compile: %w", err)
		}
		mutants = slices.DeleteFunc(mutants, func(m *mutant) bool {
			unused, isBroken := broken[m]
			return isBroken && !m.use(unused)
		})
	}
	return nil, errors.New("the mutants that do not compile come to no end")
}

// parses tells whether the mutant is a function at all: a syntax error hides all others.
func (p *folder) parses(m *mutant) bool {
	_, err := parser.ParseFile(token.NewFileSet(), "", "package p\n"+p.copyOf(m), parser.SkipObjectResolution)
	return err == nil
}

var (
	complaint  = regexp.MustCompile(`(?m)^(?:.*/)?([^/:\n]+\.go):(\d+):\d+: (.*)$`)
	unusedName = regexp.MustCompile(`^declared and not used: (\w+)$`)
)

// broken gives the mutants that the compiler complains of; and the variable, where all that is wrong is that it is not used any more.
func (p *folder) broken(output string) map[*mutant]string {
	list := map[*mutant]string{}
	for _, c := range complaint.FindAllStringSubmatch(output, -1) {
		line, _ := strconv.Atoi(c[2])
		i, found := slices.BinarySearch(p.declaration[c[1]], line)
		if !found {
			i--
		}
		if i < 0 || i >= len(p.copies[c[1]]) {
			continue
		}
		m := p.copies[c[1]][i]
		unused := ""
		if match := unusedName.FindStringSubmatch(c[3]); match != nil {
			unused = match[1]
		}
		if before, already := list[m]; already && before != unused {
			unused = ""
		}
		list[m] = unused
	}
	return list
}

// use lets the place of a removed statement use a variable that nothing else uses.
func (m *mutant) use(name string) bool {
	use := "_ = " + name
	if name == "" || !m.removal || strings.Contains(m.text, use) {
		return false
	}
	if strings.HasPrefix(m.text, "{") {
		m.text = "{ " + use + " }"
	} else {
		m.text = use
	}
	return true
}

func command(ctx context.Context, name string, arguments ...string) ([]byte, error) {
	output, err := exec.CommandContext(ctx, name, arguments...).Output()
	if exit := new(exec.ExitError); errors.As(err, &exit) {
		return nil, fmt.Errorf("%s %s: %w\n%s%s", name, strings.Join(arguments, " "), err, output, exit.Stderr)
	}
	return output, err
}
