//go:build linux

package cli

import (
	"github.com/spf13/cobra"

	"github.com/kubelet-supervisor/kubelet-supervisor/packaging/manual"
)

// newPackageFiles writes what packages hold in addition to the binary and what is made from the commands, so that it cannot differ from
// them. No unit is among them: systemctl enable --now, typed by reflex, would stop the kubelet of a node. enable writes the unit. It is for
// those who make packages and images, and not shown.
func newPackageFiles() *cobra.Command {
	return &cobra.Command{
		Use:    "package-files FOLDER",
		Short:  "Write man pages and shell completion into a folder, for packages and images",
		Hidden: true,
		RunE: func(command *cobra.Command, arguments []string) error {
			if len(arguments) != 1 {
				return usage("give the one FOLDER that the files are written to")
			}
			return bookOf(command.Root()).WriteFiles(arguments[0])
		},
	}
}

func bookOf(root *cobra.Command) manual.Book {
	return manual.Book{Root: root, Section: 8, Title: "System Administration", Also: []string{"systemctl(1)"}}
}
