package plugin

import (
	"fmt"

	"github.com/spf13/pflag"
)

// A dryRun says how far a command goes: all the way, to the API server without keeping anything, or not at all.
type dryRun string

const (
	dryRunNone   dryRun = "none"
	dryRunServer dryRun = "server"
	dryRunClient dryRun = "client"
)

func (d *dryRun) addFlag(flags *pflag.FlagSet) {
	*d = dryRunNone
	flags.Var(d, "dry-run", "none, client (only print), or server (ask the API server, and keep nothing)")
}

func (d *dryRun) String() string { return string(*d) }
func (d *dryRun) Type() string   { return "string" }

func (d *dryRun) Set(text string) error {
	switch dryRun(text) {
	case dryRunNone, dryRunServer, dryRunClient:
		*d = dryRun(text)
		return nil
	}
	return fmt.Errorf("give none, server or client")
}

// option is what goes with a request.
func (d dryRun) option() []string {
	if d == dryRunServer {
		return []string{"All"}
	}
	return nil
}

// did names what was done, as kubectl does.
func (d dryRun) did(what string) string {
	switch d {
	case dryRunServer:
		return what + " (server dry run)"
	case dryRunClient:
		return what + " (dry run)"
	}
	return what
}
