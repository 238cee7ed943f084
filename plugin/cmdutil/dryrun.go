package cmdutil

import (
	"fmt"

	"github.com/spf13/pflag"
)

// A DryRun says how far a command goes: to the end, to the API server without storing anything, or not at all.
//
// ¶ It is not kubectl's AddDryRunFlag, because there the flag without a value means client, with a warning, and
// the help text differs.
type DryRun string

// Values of --dry-run.
const (
	DryRunNone   DryRun = "none"
	DryRunServer DryRun = "server"
	DryRunClient DryRun = "client"
)

// AddFlag adds --dry-run, with none as its default.
func (d *DryRun) AddFlag(flags *pflag.FlagSet) {
	*d = DryRunNone
	flags.Var(d, "dry-run", "none, client (only print), or server (ask the API server, and keep nothing)")
}

// String returns the value as it is given.
func (d *DryRun) String() string { return string(*d) }

// Type returns the type that help prints.
func (d *DryRun) Type() string { return "string" }

// Set parses one of the three values.
func (d *DryRun) Set(text string) error {
	switch DryRun(text) {
	case DryRunNone, DryRunServer, DryRunClient:
		*d = DryRun(text)
		return nil
	}
	return fmt.Errorf("give none, server or client")
}

// Option returns the dryRun option of a request.
func (d DryRun) Option() []string {
	if d == DryRunServer {
		return []string{"All"}
	}
	return nil
}

// Did returns the past tense of what was done, as kubectl prints it.
func (d DryRun) Did(what string) string {
	switch d {
	case DryRunServer:
		return what + " (server dry run)"
	case DryRunClient:
		return what + " (dry run)"
	}
	return what
}
