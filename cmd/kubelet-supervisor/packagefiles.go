package main

import (
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/kubelet-supervisor/kubelet-supervisor/packaging/manual"
)

// newPackageFiles writes what packages hold beside the binary and what is made from the commands, so that it cannot differ from them.
// It is for those who make packages and images, and not shown.
func newPackageFiles() *cobra.Command {
	return &cobra.Command{
		Use:    "package-files FOLDER",
		Short:  "Write man pages, shell completion and the systemd unit into a folder, for packages and images",
		Hidden: true,
		RunE: func(command *cobra.Command, arguments []string) error {
			if len(arguments) != 1 {
				return usage("give the one FOLDER that the files are written to")
			}
			return writePackageFiles(command.Root(), arguments[0])
		},
	}
}

func writePackageFiles(root *cobra.Command, folder string) error {
	if err := bookOf(root).WriteFiles(folder); err != nil {
		return err
	}
	if err := manual.WriteFile(filepath.Join(folder, ownUnit), func(to io.Writer) error {
		_, err := io.WriteString(to, ownUnitFile(packagedPath))
		return err
	}); err != nil {
		return fmt.Errorf("writing %s: %w", ownUnit, err)
	}
	return nil
}

func bookOf(root *cobra.Command) manual.Book {
	return manual.Book{Root: root, Section: 8, Title: "System Administration", Also: []string{"systemctl(1)"}}
}
