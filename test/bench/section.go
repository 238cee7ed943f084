//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// sections are those that may be rendered alone, by their headings: the measurement of the others takes much longer.
var sections = map[string]struct {
	part string // the template
	of   func(*page) *Result
}{
	"A pool, rolled out": {"rollout", func(p *page) *Result { return p.Rollout }},
	"API servers":        {"servers", func(p *page) *Result { return p.Servers }},
}

// writeSection renders one section of a page anew. The rest stays as it is.
func writeSection(document, heading, note string, files []string) error {
	alone, known := sections[heading]
	if !known {
		return fmt.Errorf("no section %q is rendered alone", heading)
	}
	p, err := readPage(files)
	if err != nil {
		return err
	}
	if p.RolloutNote = note; alone.of(p) == nil {
		return fmt.Errorf("none of %q is a result for section %q", files, heading)
	}
	section, err := p.render(filepath.Base(document), alone.part)
	if err != nil {
		return fmt.Errorf("rendering section %q from %q: %w", heading, files, err)
	}
	text, err := os.ReadFile(document)
	if err != nil {
		return err
	}
	whole, err := withSection(string(text), heading, section)
	if err != nil {
		return fmt.Errorf("writing %s: %w", document, err)
	}
	return os.WriteFile(document, []byte(whole), 0o644)
}

// withSection puts a section, which begins with its heading, in the place of the one that the text has.
func withSection(text, heading, section string) (string, error) {
	before, rest, is := strings.Cut(text, "\n## "+heading+"\n")
	if !is {
		return "", fmt.Errorf("there is no section %q", heading)
	}
	after := ""
	if at := strings.Index(rest, "\n## "); at >= 0 {
		after = rest[at:]
	}
	return before + "\n" + strings.TrimRight(section, "\n") + "\n" + after, nil
}
