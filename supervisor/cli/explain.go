//go:build linux

package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
	"github.com/kubelet-supervisor/kubelet-supervisor/store"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/core"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/kubelet"
)

const explainLong = `Say what this node's kubelet is configured with, field by field, and what set it: a layer, the assigned file,
the node's own file, a drop-in file, or a flag. Below a field stands what it overrode, in the order of precedence: "over" what a
later one replaced, "shadows" what a drop-in file or a flag overrides, and "took away" what a null removed.

FIELD is the path of a field, such as evictionHard.memory.available, or of its parent, such as evictionHard. Without FIELD, all fields that
are set are listed. Fields that only the kubelet's defaults set are listed with --defaults. Then the kubelet itself is asked, as for a FIELD
that is not set.
The API server is not needed. The supervisor with --run-dir reports what runs. Where none runs, the assigned configuration in --state-dir
is explained, else local; give the kubelet's command line after -- then.
Exit codes: 0 explained, 2 usage or no such field, 3 unknown.`

// explainFlags are those of explain.
type explainFlags struct {
	folders  activeFlags
	defaults bool
	format   string
}

func newExplain() *cobra.Command {
	var o explainFlags
	command := &cobra.Command{
		Use:   "explain [FIELD...] [flags] [-- KUBELET [kubelet flags]]",
		Short: "Say who set a field of the kubelet's configuration: which layer, file or flag",
		Long:  explainLong,
		Example: `  kubelet-supervisor explain
  kubelet-supervisor explain maxPods evictionHard
  kubelet-supervisor explain --defaults -o json`,
		RunE: o.explain,
	}
	f := command.Flags()
	f.BoolVar(&o.defaults, "defaults", false, "ask the kubelet for its defaults too, and list them")
	f.StringVarP(&o.format, "output", "o", "", "json for machines")
	f.StringVar(&o.folders.stateDir, "state-dir", "",
		"folder of the checkpoints (default: the running supervisor's, else "+defaultStateDir+")")
	f.StringVar(&o.folders.runDir, "run-dir", "",
		"folder of the running supervisor's state.json (default: as "+flagsFile+" says, else "+defaultRunDir+")")
	return command
}

func (o *explainFlags) explain(command *cobra.Command, arguments []string) error {
	if o.format != "" && o.format != "json" {
		return usage("--output=%q is not json", o.format)
	}
	if err := o.folders.validate(); err != nil {
		return err
	}
	named := arguments
	if given := command.ArgsLenAtDash(); given >= 0 {
		named = arguments[:given]
	}
	line, err := o.folders.startLine(command, arguments)
	if err != nil {
		return err
	}
	what, err := o.folders.explained(line)
	if err != nil {
		return exitError{code: checkUnknown, err: err}
	}
	list, err := what.sources.Explain()
	if err != nil {
		return exitError{code: checkUnknown, err: fmt.Errorf("%s cannot be explained: %w", what.Runs, err)}
	}
	if o.defaults || anyUnset(list, named) {
		if what.sources.Told, err = what.ask(command, line); err != nil {
			what.Notes = append(what.Notes, "the kubelet's defaults are not known: "+err.Error())
		} else if list, err = what.sources.Explain(); err != nil {
			return exitError{code: checkUnknown, err: err}
		}
	}
	if what.Fields, err = chosen(list, named, o.defaults); err != nil {
		return err
	}
	if o.format == "json" {
		if what.Fields == nil {
			what.Fields = []kubeletconfig.Explanation{}
		}
		return writeWhole(command.OutOrStdout(), what)
	}
	return what.write(command.OutOrStdout(), command.ErrOrStderr(), len(named) > 0)
}

// anyUnset reports whether a field is named that is not set.
func anyUnset(list []kubeletconfig.Explanation, named []string) bool {
	return slices.ContainsFunc(named, func(field string) bool {
		field = plainPath(field)
		return kubeletconfig.IsField(field) && !slices.ContainsFunc(list,
			func(e kubeletconfig.Explanation) bool { return e.Explains(field) && !e.Unset })
	})
}

// plainPath is a path as kubectl's own may be written, with \. for a point in a name.
func plainPath(field string) string { return strings.ReplaceAll(field, `\.`, ".") }

// chosen returns the fields that are named; without a name all that are set, and with defaults all.
func chosen(list []kubeletconfig.Explanation, named []string, defaults bool) ([]kubeletconfig.Explanation, error) {
	for _, field := range named {
		field = plainPath(field)
		if kubeletconfig.IsField(field) || slices.ContainsFunc(list, func(e kubeletconfig.Explanation) bool { return e.Explains(field) }) {
			continue
		}
		return nil, usage("%w", kubeletconfig.NoSuchField(field))
	}
	return slices.DeleteFunc(slices.Clone(list), func(e kubeletconfig.Explanation) bool {
		if len(named) > 0 {
			return !slices.ContainsFunc(named, func(field string) bool { return e.Explains(plainPath(field)) })
		}
		return !defaults && e.By == kubeletconfig.Origin{Kind: kubeletconfig.ByDefault} && len(e.Over) == 0
	}), nil
}

// explained is what is explained.
type explained struct {
	Runs   string                      `json:"explained"`
	Notes  []string                    `json:"notes,omitempty"`
	Fields []kubeletconfig.Explanation `json:"fields"`

	sources kubeletconfig.Sources
}

func (x *explained) write(to, notes io.Writer, detail bool) error {
	for _, note := range x.Notes {
		_, _ = fmt.Fprintln(notes, "note:", note)
	}
	if _, err := fmt.Fprintf(to, "%s:\n", x.Runs); err != nil {
		return err
	}
	for _, e := range x.Fields {
		if _, err := io.WriteString(to, e.Text(detail)); err != nil {
			return err
		}
	}
	if len(x.Fields) == 0 {
		_, err := fmt.Fprintln(to, "it is not set: the kubelet's default applies")
		return err
	}
	return nil
}

// explained finds what runs by the running supervisor; without one it is what is assigned, else local.
func (a *activeFlags) explained(line startLine) (*explained, error) {
	x := &explained{sources: kubeletconfig.Sources{Arguments: line.arguments,
		Base: func() (kubeletconfig.Base, error) { return kubeletconfig.ReadBase(line.arguments) }}}
	record, running, err := supervisor.ReadRecord(cmp.Or(a.runDir, runWords{flags: supervisorWords(flagsFile)}.runDirs()[0]))
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && (!running || record.Alone != ""):
		return x, x.byPointers(line)
	case err != nil:
		return x, fmt.Errorf("what runs is not known: %w", err)
	}
	if record.LocalPending {
		x.Notes = append(x.Notes, "the kubelet's program or local files were changed since it was started; they are explained as they are now")
	}
	if record.Child == nil || !record.Healthy {
		x.Notes = append(x.Notes, "the kubelet is not healthy")
	}
	x.Runs = core.Describe(record.Runs) + " runs now"
	if record.Runs == nil {
		return x, nil
	}
	reader, err := store.Look(line.stateDir)
	if err != nil {
		return x, err
	}
	return x, x.read(reader, record.Runs.Source, record.Runs.Base, record.Runs.Content)
}

// byPointers goes by what STATE_DIR keeps, while no supervisor runs.
func (x *explained) byPointers(line startLine) error {
	x.Runs = "the local configuration (no supervisor runs)"
	reader, err := store.Look(line.stateDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	source, err := reader.Source(store.Assigned)
	if err != nil || source == nil {
		return err
	}
	x.Runs = fmt.Sprintf("%s/%s/%s, which is assigned (no supervisor runs)", source.Namespace, source.Name, source.KubeletConfigKey)
	good, err := reader.Source(store.LastKnownGood)
	if err != nil {
		return err
	}
	base := ""
	switch {
	case good != nil && *good == *source:
		base = goodBase(reader)
	case good != nil:
		x.Notes = append(x.Notes, fmt.Sprintf("it is not the last known good one, which is %s", nodev1.FieldText(good)))
	default:
		x.Notes = append(x.Notes, "it is not the last known good one, which is local")
	}
	return x.read(reader, *source, base, "")
}

// read takes the payload of a checkpoint. content is what it has to be with what it lies over; empty = unknown.
func (x *explained) read(reader *store.Reader, source corev1.ConfigMapNodeConfigSource, base, content string) error {
	payload, folder, err := reader.Checkpoint(source)
	if err != nil {
		return err
	}
	x.sources.Payload, x.sources.Folder, x.sources.Key = payload, folder, source.KubeletConfigKey
	x.sources.Base = baseOf(reader, source, base, x.sources.Arguments)
	if content == "" {
		return nil
	}
	composed, err := kubeletconfig.Compose(payload, x.sources.Key, x.sources.Base)
	if err == nil && composed.Content() != content {
		err = fmt.Errorf("%s/%s has another content on disk than what was started", source.Namespace, source.Name)
	}
	return err
}

// ask asks the kubelet for the effective configuration, with its defaults.
func (x *explained) ask(command *cobra.Command, line startLine) (map[string]any, error) {
	folder, err := os.MkdirTemp("", "kubelet-supervisor-explain-")
	if err != nil {
		return nil, fmt.Errorf("making a folder to ask in: %w", err)
	}
	defer func() { _ = os.RemoveAll(folder) }()
	asked := running{Preflight: kubelet.Preflight{Kubelet: line.kubelet, Arguments: line.arguments, Mode: kubelet.PreflightAuto,
		TempFolder: folder}}
	if x.sources.Payload != nil {
		composed, err := kubeletconfig.Compose(x.sources.Payload, x.sources.Key, x.sources.Base)
		if err != nil {
			return nil, err
		}
		rendered, err := composed.Render(x.sources.Folder, line.arguments)
		if err != nil {
			return nil, err
		}
		asked.file = folder + "/explained.yaml"
		if err := os.WriteFile(asked.file, rendered, 0o600); err != nil {
			return nil, err
		}
	}
	effective, err := asked.ask(command.Context())
	if err == nil && !effective.Told {
		err = errors.New("this kubelet does not tell them")
	}
	return effective.Tree(), err
}
