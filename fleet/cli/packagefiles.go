package cli

import (
	"github.com/spf13/cobra"

	"github.com/kubelet-supervisor/kubelet-supervisor/packaging/manual"
)

// newPackageFiles returns a hidden command for package builds. It writes the files that packages contain in
// addition to the binary, and that are generated from the flags.
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
