//go:build linux

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.uber.org/zap"

	"github.com/kubelet-supervisor/kubelet-supervisor/forecast"
	"github.com/kubelet-supervisor/kubelet-supervisor/internal/bounded"
	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
	"github.com/kubelet-supervisor/kubelet-supervisor/store"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/core"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/kubelet"
)

const checkImpactLong = `

With --impact: say also which running pods would be killed when the kubelet is restarted with FILE. The supervisor with --run-dir reports
what runs now; where none runs, it is the command line as it is. The Node and its pods are read once, with the kubelet's own credentials.`

const (
	impactPods  = 20  // that are named
	impactLimit = 400 // bytes of what others say
)

// impactFlags are those of check --impact.
type impactFlags struct {
	impact               bool
	kubeconfig, nodeName string
}

func (i *impactFlags) add(f *pflag.FlagSet) {
	f.BoolVar(&i.impact, "impact", false, "say what the change to FILE would do to running pods")
	f.StringVar(&i.kubeconfig, "kubeconfig", "", "with --impact: credentials for the Node and its pods (default: the kubelet's --kubeconfig)")
	f.StringVar(&i.nodeName, "node-name", "", "with --impact: name of the Node (default: from the kubelet's flags, its certificate, or the "+
		"host name)")
}

// tell reports what the change would do to running pods: from what runs to a configuration that the kubelet accepts.
func (i *impactFlags) tell(command *cobra.Command, folders nodeFolders, preflight kubelet.Preflight, then kubeletconfig.Effective) error {
	now, err := folders.whatRuns(preflight)
	var effective kubeletconfig.Effective
	if err == nil {
		effective, err = now.ask(command.Context())
	}
	asked := supervisor.Impact{Arguments: preflight.Arguments, Kubeconfig: i.kubeconfig, NodeName: i.nodeName, Now: effective, Then: then}
	f, troubles := asked.Forecast(command.Context(), zap.NewNop())
	if err != nil {
		troubles = append([]string{"what runs now: " + err.Error()}, troubles...)
	}
	if err := writeImpact(command.OutOrStdout(), now.name, f, troubles); err != nil {
		return err
	}
	if code := impactCode(f); code != exitOK {
		return exitError{code: code}
	}
	return nil
}

// impactCode returns the exit code: what is certain counts before what is not known.
func impactCode(f forecast.Forecast) int {
	switch {
	case f.Harm() > 0:
		return checkLost
	case !f.Sure():
		return checkUnknown
	}
	return exitOK
}

func writeImpact(to io.Writer, now string, f forecast.Forecast, troubles []string) error {
	_, err := fmt.Fprintf(to, "%s runs now; %s\n", now, bounded.Line(f.Sentence(impactPods)))
	unknown := f.Doubts
	if len(f.Missing) > 0 {
		unknown = f.Missing[1:] // the sentence has the first
	}
	for _, u := range unknown {
		troubles = append(troubles, u.String())
	}
	for _, words := range troubles {
		if err == nil {
			_, err = fmt.Fprintf(to, "unknown: %s\n", bounded.Text(bounded.Line(words), impactLimit))
		}
	}
	return err
}

// running is what the node's kubelet runs with, as its own pre-flight can tell it.
type running struct {
	kubelet.Preflight
	name string
	file string // "" for local: the command line as it is
}

// whatRuns finds it out by the running supervisor; without one it is the command line of the pre-flight.
func (n nodeFolders) whatRuns(preflight kubelet.Preflight) (running, error) {
	r := running{Preflight: preflight, name: "the local configuration (no supervisor runs)"}
	next := runWords{flags: supervisorWords(flagsFile)}
	record, is, err := supervisor.ReadRecord(cmp.Or(n.runDir, next.runDirs()[0]))
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && (!is || record.Alone != ""):
		return r, nil
	case err != nil:
		return r, err
	}
	r.name = core.Describe(record.Runs)
	switch {
	case !record.Healthy:
		return r, fmt.Errorf("the kubelet that the supervisor with pid %d runs is not healthy, so which pods it admitted is not known",
			record.Supervisor.PID)
	case record.LocalPending:
		return r, errors.New("the kubelet's program or local files were changed since it was started")
	}
	words := cutRun(tail(commandLine(record.Supervisor.PID)))
	if words.kubelet == "" {
		return r, fmt.Errorf("the command line of the supervisor with pid %d names no kubelet that can be run", record.Supervisor.PID)
	}
	r.Kubelet, r.Arguments = words.kubelet, words.arguments
	if record.Runs != nil {
		err = r.render(cmp.Or(n.stateDir, words.stateDir()), *record.Runs)
	}
	return r, err
}

func tail(words []string) []string { return words[min(1, len(words)):] }

// render writes the file of a checkpoint, as the supervisor did when it started the kubelet.
func (r *running) render(stateDir string, runs core.Version) error {
	reader, err := store.Look(stateDir)
	if err != nil {
		return err
	}
	payload, folder, err := reader.Checkpoint(runs.Source)
	if err != nil {
		return err
	}
	key := runs.Source.KubeletConfigKey
	composed, err := kubeletconfig.Compose(payload, key, baseOf(reader, runs.Source, runs.Base, r.Arguments))
	if err != nil {
		return err
	}
	if composed.Content() != runs.Content {
		return fmt.Errorf("%s has another content in %s than what was started", r.name, stateDir)
	}
	rendered, err := composed.Render(folder, r.Arguments)
	if err != nil {
		return err
	}
	r.file = filepath.Join(r.TempFolder, "running.yaml")
	return os.WriteFile(r.file, rendered, 0o600)
}

// ask asks the kubelet for the effective configuration.
func (r running) ask(ctx context.Context) (kubeletconfig.Effective, error) {
	verdict := r.Check(ctx, kubelet.Candidate{File: r.file}, nil)
	if verdict.Outcome != kubeletconfig.Accepted {
		return kubeletconfig.Effective{}, fmt.Errorf("the kubelet cannot be asked about it: %s", verdict.Words)
	}
	return verdict.Effective, nil
}
