//go:build linux

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/kubelet"
)

const checkActiveLong = `

With --active: ask about what this node's kubelet may be started with: what is assigned, last known good, and local. Each is one line,
and equal ones are shown once. --kubelet names the binary that is asked, such as one that is not installed yet; without it, the node's own
is asked. Nothing is changed.
The node's kubelet and its flags are those of the supervisor that runs with --run-dir, as systemd has expanded them. Where none runs, give
them after --:
  kubelet-supervisor check --active --kubelet=/root/kubelet -- /usr/bin/kubelet --config=/var/lib/kubelet/config.yaml
A configuration that is accepted and would not start on this node as it is now, because of swap or an expired kubeconfig, is refused, too:
the restart that follows would leave the node without a kubelet. Where the container runtime does not answer, the code is 3.
Where the kubelet in use refuses it as well, the new kubelet is not at fault and the code is 3. It is 3, too, where --kubelet does not run
here at all.`

// activeFlags are those of check --active.
type activeFlags struct {
	active  bool
	kubelet string
	nodeFolders
}

// nodeFolders are those of this node's supervisor; "" for what it says itself.
type nodeFolders struct{ stateDir, runDir string }

func (n nodeFolders) validate() error {
	if n.stateDir != "" && !filepath.IsAbs(n.stateDir) {
		return usage("--state-dir=%q is not an absolute path; give one such as %s", n.stateDir, defaultStateDir)
	}
	return checkRunDir(cmp.Or(n.runDir, defaultRunDir))
}

func (a *activeFlags) add(f *pflag.FlagSet) {
	f.BoolVar(&a.active, "active", false, "ask about what is assigned, last known good and local on this node, instead of a FILE")
	f.StringVar(&a.kubelet, "kubelet", "", "with --active: the kubelet to ask, such as one that will be installed (default: the node's)")
	f.StringVar(&a.stateDir, "state-dir", "", "with --active or --impact: folder of the checkpoints (default: the running supervisor's, "+
		"else "+defaultStateDir+")")
	f.StringVar(&a.runDir, "run-dir", "", "with --active or --impact: folder of the running supervisor's state.json (default: as "+
		flagsFile+" says, else "+defaultRunDir+")")
}

// startLine is how this node's kubelet is started, and where what it may be started with is kept.
type startLine struct {
	kubelet   string
	arguments []string
	stateDir  string
}

// startLine finds it after --, else by the running supervisor: only there are the variables of its unit expanded.
func (a *activeFlags) startLine(command *cobra.Command, arguments []string) (startLine, error) {
	words := runWords{flags: supervisorWords(flagsFile)}
	var err error
	if command.ArgsLenAtDash() >= 0 {
		words.kubelet, words.arguments, err = kubeletCommand(command, arguments)
	} else {
		words, err = a.running(words)
	}
	if err != nil {
		return startLine{}, err
	}
	return startLine{words.kubelet, words.arguments, cmp.Or(a.stateDir, words.stateDir())}, nil
}

// running returns the command line of the running supervisor. A kubelet that was started alone has its own, and the supervisor's flags are
// those of the next start.
func (a *activeFlags) running(next runWords) (runWords, error) {
	runDir := cmp.Or(a.runDir, next.runDirs()[0])
	record, running, err := supervisor.ReadRecord(runDir)
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && !running:
		return next, usage("no supervisor runs with --run-dir=%s, so this node's kubelet flags are not known: give its command line behind "+
			"the other words, as in -- /usr/bin/kubelet --config=/var/lib/kubelet/config.yaml", runDir)
	case err != nil:
		return next, usage("this node's kubelet flags are not known: %w; give its command line behind --", err)
	}
	words := commandLine(record.Supervisor.PID)
	if record.Alone == "" && len(words) > 0 {
		next = cutRun(words[1:])
	} else if len(words) > 0 {
		next.arguments = words[1:]
		next.kubelet, err = findKubelet(words[0])
	}
	if err == nil && next.kubelet == "" {
		err = usage("the command line of the supervisor with pid %d names no kubelet that can be run; give one behind --", record.Supervisor.PID)
	}
	return next, err
}

// check asks about each configuration, and tells.
func (a *activeFlags) check(command *cobra.Command, arguments []string, mode string) error {
	if given := command.ArgsLenAtDash(); given > 0 || given < 0 && len(arguments) > 0 {
		return usage("%q is given with --active, which takes no FILE", arguments[0])
	}
	line, err := a.startLine(command, arguments)
	if err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", "kubelet-supervisor-check-")
	if err != nil {
		return fmt.Errorf("making a folder for the check: %w", err)
	}
	defer func() { _ = os.RemoveAll(folder) }()
	asked := askedKubelet{Preflight: kubelet.Preflight{Kubelet: line.kubelet, Arguments: line.arguments, Mode: mode, TempFolder: folder},
		inUse: line.kubelet}
	if a.kubelet != "" {
		if asked.Kubelet, err = findKubelet(a.kubelet); err != nil {
			return err
		}
	}
	choices, err := line.choices(folder)
	if err != nil {
		return err
	}
	worst, next := exitOK, a.nextStart(command)
	for _, c := range choices {
		code, words := asked.judgeWith(command.Context(), c, next)
		if _, err := fmt.Fprintf(command.OutOrStdout(), "%s: %s\n", c, words); err != nil {
			return err
		}
		if worst == exitOK || code == checkRefused {
			worst = code
		}
	}
	if worst != exitOK {
		return exitError{code: worst}
	}
	return nil
}

// nextStart gives, once it is asked, the kubelet's command line as the unit of the running supervisor would have it at its next start; nil
// where that is not known, or where a command line was given.
func (a *activeFlags) nextStart(command *cobra.Command) func() []string {
	return sync.OnceValue(func() []string {
		record, running, err := supervisor.ReadRecord(cmp.Or(a.runDir, runWords{flags: supervisorWords(flagsFile)}.runDirs()[0]))
		if err != nil || !running || command.ArgsLenAtDash() >= 0 || os.Geteuid() != 0 {
			return nil
		}
		words, err := nextStart(command.Context(), record.Supervisor.PID)
		if err != nil {
			return nil // without an answer of systemd no other start is known
		}
		return words
	})
}

// judgeWith asks again with the command line of the next start, where that differs: a flag may have gone from the unit's files by then, as
// after kubeadm upgrade, or one may have come that the kubelet refuses.
func (k askedKubelet) judgeWith(ctx context.Context, c choice, next func() []string) (code int, words string) {
	code, words = k.judge(ctx, c)
	if c.refused {
		return code, words
	}
	line := next()
	if len(line) == 0 || slices.Equal(line[1:], k.Arguments) {
		return code, words
	}
	k.Arguments = line[1:]
	then, thenWords := k.judge(ctx, c)
	if code == checkRefused && then == checkRefused || code == then && words == thenWords {
		return code, words
	}
	return then, "with the command line that the unit has now, which its next start takes: " + thenWords + "; with the one that runs: " + words
}

// askedKubelet is the kubelet that is asked, with the flags of the one in use.
type askedKubelet struct {
	kubelet.Preflight
	inUse string
}

// judge returns the exit code for a configuration, and the message.
//
// The control of a refusal differs from that of check: a flag that the new kubelet no longer has fails with every configuration, and is
// just what has to be found. So the kubelet in use is asked about the same.
func (k askedKubelet) judge(ctx context.Context, c choice) (code int, words string) {
	verdict := kubelet.Verdict{Outcome: kubeletconfig.Unknown, Words: c.words}
	switch {
	case c.refused:
		verdict.Outcome = kubeletconfig.Refused
	case c.words == "":
		verdict = k.Check(ctx, kubelet.Candidate{File: c.file}, nil)
	}
	if verdict.Outcome == kubeletconfig.Accepted {
		if code, words := hostRefuses(supervisor.Obstacles(ctx, k.Arguments, verdict.Effective)); code != exitOK {
			return code, words
		}
	}
	switch {
	case verdict.Outcome == kubeletconfig.Accepted && verdict.Resolver != "":
		return exitOK, "accepted; warning: " + verdict.Resolver
	case verdict.Outcome == kubeletconfig.Accepted:
		return exitOK, "accepted"
	case verdict.Outcome != kubeletconfig.Refused:
		return checkUnknown, "unknown: " + verdict.Words
	case !c.refused && !k.runs(ctx):
		return checkUnknown, "unknown, for " + k.Kubelet + " does not run here: " + verdict.Words
	case k.inUseRefuses(ctx, c):
		return checkUnknown, "refused, and by " + k.inUse + " too: " + verdict.Words
	}
	return checkRefused, "refused: " + verdict.Words
}

// versionTimeout is for a kubelet that is only asked for its version.
const versionTimeout = 5 * time.Second

// runs reports whether the binary runs here at all: a library that it needs is there, for example. Whatever else it needs of the node, as
// another version of cgroups, is its own refusal.
func (k askedKubelet) runs(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, versionTimeout)
	defer cancel()
	command := exec.CommandContext(ctx, k.Kubelet, "--version")
	command.Env = kubelet.Environment(os.Environ())
	return command.Run() == nil
}

func (k askedKubelet) inUseRefuses(ctx context.Context, c choice) bool {
	if k.Kubelet == k.inUse {
		return false
	}
	control := k.Preflight
	control.Kubelet = k.inUse
	return c.refused || control.Check(ctx, kubelet.Candidate{File: c.file}, nil).Outcome == kubeletconfig.Refused
}
