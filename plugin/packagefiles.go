package plugin

import (
	"github.com/spf13/cobra"

	"github.com/kubelet-supervisor/kubelet-supervisor/packaging/manual"
)

// newPackageFiles returns a hidden command for package builds.
func newPackageFiles() *cobra.Command {
	return &cobra.Command{
		Use:    "package-files FOLDER",
		Short:  "Write man pages and shell completion into a folder, for packages",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, arguments []string) error {
			return bookOf(command.Root()).WriteFiles(arguments[0])
		},
	}
}

func bookOf(root *cobra.Command) manual.Book {
	return manual.Book{Root: root, Section: 1, Title: "User Commands", Also: []string{"kubectl(1)", "kubelet-supervisor(8)"}}
}
