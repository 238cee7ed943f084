package cli

import (
	"github.com/spf13/cobra"

	"github.com/kubelet-supervisor/kubelet-supervisor/packaging/manual"
)

// newPackageFiles writes what packages hold beside the binary and what is made from the flags, so that it cannot differ from them. It is for
// those who make packages, and not shown.
func newPackageFiles() *cobra.Command {
	return &cobra.Command{
		Use:    "package-files FOLDER",
		Short:  "Write the man page and shell completion into a folder, for packages",
		Hidden: true,
		Args:   cobra.ArbitraryArgs,
		RunE: func(command *cobra.Command, arguments []string) error {
			if len(arguments) != 1 {
				return usage("give the one FOLDER that the files are written to")
			}
			book := manual.Book{Root: command.Root(), Section: 8, Title: "System Administration", Also: []string{"kubelet-supervisor(8)", "systemctl(1)"}}
			return book.WriteFiles(arguments[0])
		},
	}
}
