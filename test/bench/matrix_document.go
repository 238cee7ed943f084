package main

import (
	_ "embed" // of compatibility.md
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"text/template"
)

//go:embed compatibility.md
var compatibilityText string

// write prints the tables, and writes the files that are wanted.
func (m *matrix) write(document, results string) error {
	fmt.Print(m.Table(preflightPart), "\n", m.Table(jobPart))
	if results != "" {
		content, err := json.MarshalIndent(m, "", "  ")
		if err != nil {
			return fmt.Errorf("encoding the results: %w", err)
		}
		if err := os.WriteFile(results, append(content, '\n'), 0o644); err != nil {
			return err
		}
	}
	if document == "" {
		return nil
	}
	text, err := m.document()
	if err != nil {
		return fmt.Errorf("writing %s: %w", document, err)
	}
	return os.WriteFile(document, []byte(text), 0o644)
}

// document is docs/compatibility.md.
func (m *matrix) document() (string, error) {
	page, err := template.New("compatibility.md").Parse(compatibilityText)
	if err != nil {
		return "", err
	}
	var text strings.Builder
	err = page.Execute(&text, m)
	return text.String(), err
}

// Table has a line for each step of a part, and a column for each kubelet.
func (m *matrix) Table(part string) string {
	lines := [][]string{{"kubelet"}}
	if part == jobPart {
		lines = append(lines, []string{"kube-apiserver"})
	}
	for _, k := range m.Kubelets {
		lines[0] = append(lines[0], k.Version)
		if part == jobPart {
			lines[1] = append(lines[1], k.server())
		}
	}
	for _, name := range m.names(part) {
		line := []string{name}
		for _, k := range m.Kubelets {
			line = append(line, k.find(part, name).cell())
		}
		lines = append(lines, line)
	}
	return markdownTable(lines)
}

// names are those of a part's steps, in their order.
func (m *matrix) names(part string) (names []string) {
	seen := map[string]bool{}
	for _, k := range m.Kubelets {
		for _, s := range k.Steps {
			if s.Part == part && !seen[s.Name] {
				seen[s.Name] = true
				names = append(names, s.Name)
			}
		}
	}
	return names
}

func (k *kubeletSeen) server() string {
	if k.APIServer == "" {
		return "**none**"
	}
	return k.APIServer
}

func (k *kubeletSeen) find(part, name string) *step {
	for _, s := range k.Steps {
		if s.Part == part && s.Name == name {
			return s
		}
	}
	return nil
}

// cell is a step's cell; nil: it was not tried.
func (s *step) cell() string {
	if s == nil {
		return "**not tried**"
	}
	took := figure(s.Took) + " ms"
	if s.Took >= 1000 {
		took = figure(s.Took/1000) + " s"
	}
	if s.Brief != "" {
		took = s.Brief + ", " + took
	}
	if !s.Works {
		return "**no**: " + took
	}
	return took
}

// Seen is what was seen of a kubelet, step by step, as a list.
func (k *kubeletSeen) Seen() string {
	var text strings.Builder
	for _, s := range k.Steps {
		name := s.Name
		if !s.Works {
			name = "**" + name + ": no**"
		}
		fmt.Fprintf(&text, "- %s: `%s`\n", name, strings.ReplaceAll(s.Words, "`", "'"))
	}
	return text.String()
}

// Summary names what does not work.
func (k *kubeletSeen) Summary() string { return k.summary() }

// oneLine is at most as long as a condition's message, about.
func oneLine(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > 1100 {
		text = strings.ToValidUTF8(text[:1100], "") + "…"
	}
	return text
}
