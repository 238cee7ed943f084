package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/kubelet-supervisor/kubelet-supervisor/cmd/kubelet-supervisor/signals"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor"
)

const (
	selfCheckFlag   = "self-check"
	selfCheckUnit   = "unit"  // asks whether run can do its work as it was started
	selfCheckWords  = "words" // asks for the kubelet's command line, as systemd has expanded it
	selfCheckAnswer = "kubelet-supervisor can take over from handover " + supervisor.HandoverVersion
)

// startedAs is the path of this program, taken when it starts: later it may have been replaced. The path that it was called by comes
// first, for a link there may lead to another version by then.
var startedAs = func() string {
	executable, err := os.Executable()
	if err != nil {
		return ""
	}
	if called := os.Args[0]; filepath.IsAbs(called) {
		ours, err := os.Stat("/proc/self/exe")
		theirs, calledErr := os.Stat(called)
		if err == nil && calledErr == nil && os.SameFile(ours, theirs) {
			return called
		}
	}
	return executable
}()

// successor is the program at our path, with our command line; nil where the path is not known.
func successor() *supervisor.Successor {
	run := slices.Index(os.Args, runCommand)
	if startedAs == "" || run < 0 {
		return nil
	}
	return &supervisor.Successor{Path: startedAs, Arguments: os.Args,
		IgnoreSignals: signals.Ignore,
		Answer:        selfCheckAnswer,
		Check:         slices.Insert(slices.Clone(os.Args), run+1, "--"+selfCheckFlag+"="+supervisor.HandoverVersion)}
}

// selfCheck is the answer to the program that this one is to replace: whether it can take over what is handed over in that form. The
// flags were found good before.
func selfCheck(to io.Writer, handover string) error {
	if handover != supervisor.HandoverVersion {
		return usage("this is version %s, which takes over from handover %s and not from %q: restart instead of reloading", version, supervisor.HandoverVersion, handover)
	}
	_, err := fmt.Fprintln(to, selfCheckAnswer)
	return err
}
