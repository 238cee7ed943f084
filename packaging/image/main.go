// Command image puts the controller into an image: an OCI layout from scratch, for several architectures, in one tar file.
//
//	image --output FILE --version VERSION [--documents FOLDER] ARCHITECTURE=BINARY...
//
// It needs no daemon and no registry, and there is nothing in the image but the static binary and its licences: no
// shell, no libraries, no certificates (the API server's are in the kubeconfig or next to the ServiceAccount's token),
// and no time zones, which the binary has. It runs as 65532. SOURCE_DATE_EPOCH is the time of everything, so that the
// same input gives the same bytes. The file can be loaded (`ctr images import`, `podman load`) or copied to a registry
// (`skopeo copy oci-archive:FILE docker://…`).
//
// It is not ko: v0.19.1 has 161 requirements where go-containerregistry has 37, and layers of its own.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "image: "+err.Error())
		os.Exit(1)
	}
}

func run(arguments []string) error {
	flags := flag.NewFlagSet("image", flag.ContinueOnError)
	output := flags.String("output", "", "the tar file to write")
	version := flags.String("version", "", "the version that the program tells")
	documents := flags.String("documents", "", "a folder whose files go to /usr/share/doc/"+program)
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	if *output == "" || *version == "" || flags.NArg() == 0 {
		return errors.New("--output, --version and at least one ARCHITECTURE=BINARY are needed")
	}
	seconds, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64)
	if err != nil {
		return fmt.Errorf("SOURCE_DATE_EPOCH is the time of the image: %w", err)
	}
	c := content{version: *version, at: time.Unix(seconds, 0).UTC()}
	if c.documents, err = read(*documents); err != nil {
		return err
	}
	var platforms []platform
	for _, argument := range flags.Args() {
		architecture, file, is := strings.Cut(argument, "=")
		if !is {
			return fmt.Errorf("%q is not ARCHITECTURE=BINARY", argument)
		}
		binary, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("reading the binary for %s: %w", architecture, err)
		}
		platforms = append(platforms, platform{architecture, binary})
	}
	return c.write(*output, platforms)
}

// read gives the files of a folder by their names; no folder has none.
func read(folder string) (map[string][]byte, error) {
	files := map[string][]byte{}
	if folder == "" {
		return files, nil
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, fmt.Errorf("reading the documents: %w", err)
	}
	for _, entry := range entries {
		if files[entry.Name()], err = os.ReadFile(filepath.Join(folder, entry.Name())); err != nil {
			return nil, fmt.Errorf("reading the documents: %w", err)
		}
	}
	return files, nil
}
