// Command mixin renders the mixin beside it into files that a Prometheus and a Grafana take as they are.
//
// mixin --output FOLDER   writes alerts.yaml and rules.yaml (rule_files of Prometheus), prometheusrule.yaml (the same for the Prometheus
// operator) and dashboards/*.json. The same source gives the same bytes.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	output := flag.String("output", "", "the folder to write to; it is made")
	source := flag.String("source", "packaging/mixin", "the folder with mixin.libsonnet")
	flag.Parse()
	if err := run(*source, *output); err != nil {
		fmt.Fprintln(os.Stderr, "mixin:", err)
		os.Exit(1)
	}
}

func run(source, output string) error {
	if output == "" || flag.NArg() > 0 {
		return errors.New("say --output FOLDER, and nothing else")
	}
	files, err := render(source)
	if err != nil {
		return err
	}
	for name, content := range files {
		path := filepath.Join(output, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // anybody may read what is shipped
			return fmt.Errorf("make the folder of %s: %w", name, err)
		}
		if err := os.WriteFile(path, content, 0o644); err != nil { //nolint:gosec // anybody may read what is shipped
			return fmt.Errorf("write %s: %w", name, err)
		}
	}
	return nil
}
