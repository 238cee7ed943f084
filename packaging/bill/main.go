// Command bill writes the bill of materials of a Go binary, from the build information that the binary itself carries: what Go and
// which modules it is made of, as CycloneDX 1.6, and the licences of all of them, which a user who passes the binary on passes on too.
// Equal binaries give equal files.
//
//	bill BINARY VERSION SBOM.json LICENCES.txt
package main

import (
	"debug/buildinfo"
	"fmt"
	"os"
)

func main() {
	if len(os.Args) != 5 {
		fmt.Fprintln(os.Stderr, "usage: bill BINARY VERSION SBOM.json LICENCES.txt")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2], os.Args[3], os.Args[4]); err != nil {
		fmt.Fprintln(os.Stderr, "bill:", err)
		os.Exit(1)
	}
}

func run(binary, version, sbomFile, licencesFile string) error {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return fmt.Errorf("reading the build information of %s: %w", binary, err)
	}
	sbom, err := billOf(info, version)
	if err != nil {
		return err
	}
	if err := os.WriteFile(sbomFile, sbom, 0o644); err != nil {
		return fmt.Errorf("writing the bill: %w", err)
	}
	texts, err := licencesOf(info)
	if err != nil {
		return err
	}
	if err := os.WriteFile(licencesFile, texts, 0o644); err != nil {
		return fmt.Errorf("writing the licences: %w", err)
	}
	return nil
}
