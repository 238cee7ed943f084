package main

import (
	"bytes"
	"debug/buildinfo"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// licencesOf gives the licence texts of Go and of every module, each text once. They are read where Go keeps the modules that it
// compiled; a module without one is an error, because the binary may not be passed on then.
func licencesOf(info *buildinfo.BuildInfo) ([]byte, error) {
	type owner struct{ name, folder string }
	root, err := goSays("env", "GOROOT")
	if err != nil {
		return nil, err
	}
	owners := []owner{{"Go " + info.GoVersion, root}}
	for _, module := range info.Deps {
		module = effective(module)
		folder, err := goSays("list", "-m", "-f", "{{.Dir}}", module.Path)
		if err != nil {
			return nil, err
		}
		owners = append(owners, owner{module.Path + " " + module.Version, folder})
	}
	var texts [][]byte
	holders := map[string][]string{}
	for _, owner := range owners {
		found, err := licencesIn(owner.folder)
		if err != nil {
			return nil, fmt.Errorf("finding the licence of %s: %w", owner.name, err)
		}
		for _, text := range found {
			if holders[string(text)] == nil {
				texts = append(texts, text)
			}
			holders[string(text)] = append(holders[string(text)], owner.name)
		}
	}
	var all bytes.Buffer
	fmt.Fprintf(&all, "%s is one binary that holds the following works, each under the licence behind its name.\n", path.Base(info.Path))
	for _, text := range texts {
		fmt.Fprintf(&all, "\n%s\n\n%s\n\n%s\n", strings.Repeat("=", 80), strings.Join(holders[string(text)], "\n"), bytes.TrimSpace(text))
	}
	return all.Bytes(), nil
}

func licencesIn(folder string) (texts [][]byte, err error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		name := strings.ToUpper(entry.Name())
		known := []string{"LICENSE", "LICENCE", "COPYING", "NOTICE", "PATENTS"}
		isLicence := slices.ContainsFunc(known, func(p string) bool { return strings.HasPrefix(name, p) })
		if !isLicence || entry.IsDir() || strings.HasSuffix(name, ".GO") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(folder, entry.Name()))
		if err != nil {
			return nil, err
		}
		texts = append(texts, text)
	}
	if len(texts) == 0 {
		return nil, fmt.Errorf("no file in %s is named like one", folder)
	}
	return texts, nil
}

func goSays(arguments ...string) (string, error) {
	words, err := exec.Command("go", arguments...).Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		err = fmt.Errorf("%w: %s", err, bytes.TrimSpace(exit.Stderr))
	}
	if err != nil {
		return "", fmt.Errorf("asking go %s: %w", strings.Join(arguments, " "), err)
	}
	return strings.TrimSpace(string(words)), nil
}
