// Command krew writes the Krew manifest of the plugin for the archives of one version, and refuses to write one that Krew would refuse.
//
//	krew VERSION kubectl-kubelet_VERSION_OS_ARCH.tar.gz... >kubelet.yaml
package main

import (
	"errors"
	"fmt"
	"os"

	"sigs.k8s.io/yaml"
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: krew VERSION kubectl-kubelet_VERSION_OS_ARCH.tar.gz... >kubelet.yaml")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, "krew:", err)
		os.Exit(1)
	}
}

func run(version string, archives []string) error {
	made, err := manifestOf(version, archives)
	if err != nil {
		return err
	}
	if err := errors.Join(problems(made)...); err != nil {
		return fmt.Errorf("this manifest would be refused by Krew: %w", err)
	}
	text, err := yaml.Marshal(made)
	if err != nil {
		return fmt.Errorf("writing the manifest: %w", err)
	}
	_, err = os.Stdout.Write(text)
	return err
}
