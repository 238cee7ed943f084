package main

import (
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
	to, err := os.Create(page)
	if err != nil {
		return err
	}
	err = template.Must(template.New("").Parse(dashboardText)).Execute(to, map[string]any{"Run": r, "Picture": filepath.Base(picture), "Every": readEvery})
	return errors.Join(err, to.Close(), r.Looked.Draw(picture))
}
