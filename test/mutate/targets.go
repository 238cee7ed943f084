//go:build linux

package main

import (
	"path/filepath"
	"slices"
	"strings"
)

// A target is a package whose tests are asked, and how.
type target struct {
	Package string
	// Only these files are mutated; none is all of them.
	Only []string
	// Skip is a pattern of tests that are not run: they would take most of the time, or need what an enclosed process has not.
	Skip string
	// Waits: its code waits for others. A mutant that waits without end is killed, by the time limit of go test.
	Waits bool
	// Enclosed: its code kills processes and removes files, and a mutant may do that to others'. It runs in namespaces of its own, with a file
	// system that it cannot write. Needs root.
	Enclosed bool
	// FakeKubelet: its tests start one. It is built once, for all mutants.
	FakeKubelet bool
}

// targets are what `make mutate` knows, the quickest first. Another package can be named as well.
var targets = []target{
	{Package: "./forecast"},
	{Package: "./status", Waits: true},
	{Package: "./sync", Waits: true},
	{Package: "./kubeletconfig"},
	{Package: "./supervisor/core"},
	{Package: "./store", Waits: true, Enclosed: true},
	{Package: "./supervisor/kubelet", Waits: true, Enclosed: true, FakeKubelet: true},
	// What it does, and not what it is given: options, records and log lines.
	{Package: "./supervisor", Waits: true, Enclosed: true, FakeKubelet: true, Only: []string{"api.go", "boot.go", "durable.go", "effective.go", "facts.go", "foresee.go",
		"loop.go", "lostpods.go", "park.go", "payloads.go", "prover.go", "receive.go", "runner.go", "start.go", "statefiles.go"}},
}

// targetsOf gives those that are named, as ./store,./sync; all is all that are known.
func targetsOf(names string) []target {
	if names == "all" {
		return targets
	}
	var found []target
	for name := range strings.SplitSeq(names, ",") {
		name = "./" + filepath.ToSlash(filepath.Clean(name))
		i := slices.IndexFunc(targets, func(t target) bool { return t.Package == name })
		if i < 0 {
			found = append(found, target{Package: name})
			continue
		}
		found = append(found, targets[i])
	}
	return found
}
