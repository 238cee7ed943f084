package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// kubelets are those whose types are read, besides the newest, which go.mod names: the last patch of each minor version, oldest first.
var kubelets = []string{
	"v0.17.17", "v0.18.19", "v0.19.16", "v0.20.15", "v0.21.14", "v0.22.17", "v0.23.17", "v0.24.17", "v0.25.16", "v0.26.15",
	"v0.27.16", "v0.28.15", "v0.29.15", "v0.30.14", "v0.31.14", "v0.32.13", "v0.33.13", "v0.34.13", "v0.35.10", "v0.36.6",
}

// A release is the types of one minor version.
type release struct {
	minor string            // such as 1.30
	types map[string]string // by path
}

// releases reads the types of every kubelet, which takes the module proxy for those that are not there yet.
func releases(ctx context.Context, root string) ([]release, error) {
	newest, err := newestTypes(ctx, root)
	if err != nil {
		return nil, err
	}
	versions := append(slices.Clone(kubelets), newest)
	var found []release
	for i, version := range versions {
		if i > 0 && minorOf(version) != minorOf(versions[i-1])+1 {
			return nil, fmt.Errorf("%s does not follow %s; add what is between to kubelets in modules.go", version, versions[i-1])
		}
		reader := typeReader{packages: map[string]*sourcePackage{}, folder: moduleFolders(ctx, version)}
		types, err := reader.fieldTypes()
		if err != nil {
			return nil, fmt.Errorf("reading the types of %s: %w", version, err)
		}
		found = append(found, release{fmt.Sprintf("1.%d", minorOf(version)), types})
	}
	return found, nil
}

// minorOf is the 30 of v0.30.14 and of 1.30; 0 for what is no version.
func minorOf(version string) int {
	parts := strings.SplitN(version, ".", 3)
	if len(parts) < 2 {
		return 0
	}
	minor, _ := strconv.Atoi(parts[1])
	return minor
}

// newestTypes is the version of k8s.io/kubelet in go.mod.
func newestTypes(ctx context.Context, root string) (string, error) {
	command := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Version}}", "k8s.io/kubelet")
	command.Dir = root
	output, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("asking go for the newest types: %w", stderrOf(err))
	}
	return strings.TrimSpace(string(output)), nil
}

// moduleFolders gives the folders of packages of Kubernetes' modules of this version, which all have the same.
func moduleFolders(ctx context.Context, version string) func(importPath string) (string, error) {
	known := map[string]string{}
	return func(importPath string) (string, error) {
		parts := strings.SplitN(importPath, "/", 3)
		if parts[0] != "k8s.io" || len(parts) < 3 {
			return "", fmt.Errorf("%s is of no module of Kubernetes", importPath)
		}
		module := parts[0] + "/" + parts[1]
		if known[module] == "" {
			folder, err := download(ctx, module+"@"+version)
			if err != nil {
				return "", err
			}
			known[module] = folder
		}
		return filepath.Join(known[module], parts[2]), nil
	}
}

// download asks go for a module where no go.mod is, so that none is changed.
func download(ctx context.Context, module string) (string, error) {
	nowhere, err := os.MkdirTemp("", "fields-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(nowhere)
	command := exec.CommandContext(ctx, "go", "mod", "download", "-json", module)
	command.Dir = nowhere
	output, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("downloading %s: %w", module, stderrOf(err))
	}
	var got struct{ Dir string }
	if err := json.Unmarshal(output, &got); err != nil {
		return "", fmt.Errorf("downloading %s: %w", module, err)
	}
	return got.Dir, nil
}

// stderrOf adds what a command said to why it failed.
func stderrOf(err error) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return fmt.Errorf("%w: %s", err, exit.Stderr)
	}
	return err
}
