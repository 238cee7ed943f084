package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
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
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	files := map[string]func(io.Writer) error{
		"completion/bash": func(to io.Writer) error { return root.GenBashCompletionV2(to, true) },
		"completion/zsh":  root.GenZshCompletion,
		"completion/fish": func(to io.Writer) error { return root.GenFishCompletion(to, true) },
	}
	files[ownUnit] = func(to io.Writer) error {
		_, err := io.WriteString(to, ownUnitFile(packagedPath))
		return err
	}
	for _, command := range documented(root) {
		files["man/"+pageName(command)+".8"] = func(to io.Writer) error { return writePage(to, command) }
	}
	for name, write := range files {
		if err := writeFile(filepath.Join(folder, name), write); err != nil {
			return fmt.Errorf("writing %s: %w", name, err)
		}
	}
	return nil
}

func writeFile(path string, write func(io.Writer) error) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(write(file), file.Close())
}
