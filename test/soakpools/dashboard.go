//go:build linux

package main

import (
	"bytes"
	_ "embed"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"text/template"
)

//go:embed dashboard-soak.md.tmpl
var dashboardText string

// writeDashboard writes what Prometheus has seen of a run, and draws it beside the page. Where nobody has watched, it does nothing.
func (r result) writeDashboard(page string) error {
	if r.Looked == nil {
		return nil
	}
	picture := strings.TrimSuffix(page, ".md") + ".png"
	text, err := r.dashboardPage(filepath.Base(picture))
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile(page, text, 0o644), r.Looked.Draw(picture)) //nolint:gosec // anybody may read it
}

func (r result) dashboardPage(picture string) ([]byte, error) {
	r.Failure, _, _ = strings.Cut(r.Failure, "\n") // what follows are logs
	var text bytes.Buffer
	err := template.Must(template.New("").Parse(dashboardText)).Execute(&text, map[string]any{"Run": r, "Picture": picture, "Every": readEvery})
	return text.Bytes(), err
}
