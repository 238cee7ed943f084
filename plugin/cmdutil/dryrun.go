package cmdutil

import (
	"fmt"

	"github.com/spf13/pflag"
)

// A DryRun says how far a command goes: all the way, to the API server without keeping anything, or not at all.
//
// Not by kubectl's AddDryRunFlag: there the flag alone means client, with a warning, and its help is another one.
type DryRun string

// What --dry-run may be.
const (
	DryRunNone   DryRun = "none"
	DryRunServer DryRun = "server"
	DryRunClient DryRun = "client"
)

// AddFlag adds --dry-run, which is none where it is not given.
func (d *DryRun) AddFlag(flags *pflag.FlagSet) {
	*d = DryRunNone
	flags.Var(d, "dry-run", "none, client (only print), or server (ask the API server, and keep nothing)")
}

// String is the value, as it is given.
func (d *DryRun) String() string { return string(*d) }

// Type is what help says that the value is.
func (d *DryRun) Type() string { return "string" }

// Set takes one of the three values.
func (d *DryRun) Set(text string) error {
	switch DryRun(text) {
	case DryRunNone, DryRunServer, DryRunClient:
		*d = DryRun(text)
		return nil
	}
	return fmt.Errorf("give none, server or client")
}

// Option is what goes with a request.
func (d DryRun) Option() []string {
	if d == DryRunServer {
		return []string{"All"}
	}
	return nil
}

// Did names what was done, as kubectl does.
func (d DryRun) Did(what string) string {
	switch d {
	case DryRunServer:
		return what + " (server dry run)"
	case DryRunClient:
		return what + " (dry run)"
	}
	return what
}
