//go:build linux

package cli

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/cli/signals"
)

const (
	selfCheckFlag   = "self-check"
	selfCheckUnit   = "unit"  // asks whether run can do its work as it was started
	selfCheckWords  = "words" // asks for the kubelet's command line, as systemd has expanded it
	selfCheckAnswer = "kubelet-supervisor can take over from handover " + supervisor.HandoverVersion
)

// startedAs is the path of this program, taken when it starts: later it may have been replaced.
var startedAs = func() string {
	executable, err := os.Executable()
	if err != nil {
		return ""
	}
	return calledBy(os.Args[0], executable)
}()

// calledBy returns the path that a program was called by, because a link there may lead to another version later. It is the program's own
// where the other does not lead to it.
func calledBy(name, executable string) string {
	path, err := exec.LookPath(name) // as a shell does
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err != nil {
		return executable
	}
	ours, err := os.Stat(executable)
	theirs, calledErr := os.Stat(path)
	if err != nil || calledErr != nil || !os.SameFile(ours, theirs) {
		return executable
	}
	// Where /bin is a link to /usr/bin, the same program has one name, whatever PATH is.
	if folder, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil && slices.Contains(programFolders, folder) {
		return filepath.Join(folder, filepath.Base(path))
	}
	return path
}

var programFolders = []string{"/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin"}

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
func selfCheck(to io.Writer, version, handover string) error {
	if handover != supervisor.HandoverVersion {
		return usage("this is version %s, which takes over from handover %s and not from %q: restart instead of reloading", version,
			supervisor.HandoverVersion, handover)
	}
	_, err := fmt.Fprintln(to, selfCheckAnswer)
	return err
}
