//go:build linux

package cli

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/kubelet-supervisor/kubelet-supervisor/store"
)

// The oldest and the newest kubelet and API server of docs/evidence/compatibility.md.
const (
	oldestKubelet, newestKubelet = "1.23", "1.37"
	oldestServer, newestServer   = "1.24", "1.36"
)

func newVersion(version string) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version, the kubelets and API servers that it was tried with, and the version of its files",
		Args:  noArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			_, err := fmt.Fprint(command.OutOrStdout(), versionText(version))
			return err
		},
	}
}

func versionText(version string) string {
	return fmt.Sprintf("kubelet-supervisor %s (%s, %s/%s)\ntried with kubelets %s to %s and API servers %s to %s; files of %s\n",
		version, runtime.Version(), runtime.GOOS, runtime.GOARCH, oldestKubelet, newestKubelet, oldestServer, newestServer, store.DocumentVersion)
}
