//go:build linux

package cli

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/internal/bounded"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor"
)

// exitNotRunning is status's (and reload's and retry's) code when there is no supervisor.
const exitNotRunning = 1

func newStatus() *cobra.Command {
	var runDir, format string
	command := &cobra.Command{
		Use:   "status",
		Short: "Show what the supervisor on this node does, with or without the API server",
		Long: "Show what the supervisor on this node does, or why none runs: it is not enabled, or the kubelet was not restarted since. Exit " +
			"codes: 0 it runs, 1 it does not, 2 usage.",
		Args: noArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			if format != "" && format != "json" {
				return usage("--output=%q is not json", format)
			}
			if err := checkRunDir(runDir); err != nil {
				return err
			}
			units := unitFiles{folder: unitFolder, flagsFile: flagsFile}
			record, running, err := supervisor.ReadRecord(runDir)
			if errors.Is(err, fs.ErrNotExist) {
				if why := units.whyNone(command.Context()); why != "" {
					err = fmt.Errorf("no supervisor runs with run folder %s: %s", runDir, why)
				}
			}
			if err != nil {
				_ = tellStarts(command)
				return notRunning(runDir, err)
			}
			if format == "json" {
				err = writeJSON(command.OutOrStdout(), record, running)
			} else {
				err = writeStatus(command.OutOrStdout(), record, running)
				if !running && record.Alone == "" {
					units.writeWhyNone(command.Context(), command.OutOrStdout())
				}
				for _, unit := range staleUnits(command.Context(), unitFolder) {
					_, _ = fmt.Fprintf(command.OutOrStdout(), "The ExecStart of %s differs from when it was enabled: run kubelet-supervisor enable, "+
						"then systemctl restart %s.\n", unit, unit)
				}
			}
			if format == "" && err == nil {
				err = tellStarts(command)
			}
			if err == nil && (!running || record.Alone != "") {
				return exitError{code: exitNotRunning}
			}
			return err
		},
	}
	runDirFlag(command.Flags(), &runDir)
	command.Flags().StringVarP(&format, "output", "o", "", "json for machines")
	return command
}

func notRunning(runDir string, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = fmt.Errorf("no supervisor runs with run folder %s; another is named with --run-dir", runDir)
	case errors.Is(err, fs.ErrPermission):
		err = fmt.Errorf("%w: run it as root, with sudo", err)
	}
	return exitError{code: exitNotRunning, err: err}
}

func writeJSON(to io.Writer, record supervisor.Record, running bool) error {
	return writeWhole(to, struct {
		Running bool `json:"running"`
		supervisor.Record
	}{running && record.Alone == "", record})
}

// writeWhole writes JSON, in which what does not show is escaped.
func writeWhole(to io.Writer, value any) error {
	var text strings.Builder
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(value); err != nil {
		return err
	}
	_, err := io.WriteString(to, bounded.JSON(text.String()))
	return err
}

func writeStatus(to io.Writer, r supervisor.Record, running bool) error {
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	row := func(name, format string, values ...any) {
		_, _ = fmt.Fprintln(table, name+"\t"+bounded.Cell(fmt.Sprintf(format, values...)))
	}
	switch {
	case r.Alone != "":
		row("Supervisor:", "none: %s", r.Alone)
		state := "was started alone, and is gone"
		if running {
			state = "started alone"
		}
		row("Kubelet:", "pid %d, %s, %s", r.Supervisor.PID, state, r.Written.Local().Format(time.DateTime))
		return table.Flush()
	case !running:
		row("Supervisor:", "not running; this is what it said last, %s", r.Written.Local().Format(time.DateTime))
	default:
		row("Supervisor:", "pid %d, %s", r.Supervisor.PID, strings.ToLower(r.Phase))
	}
	row("Kubelet:", "%s", kubeletLine(r))
	row("Assignment:", "%s", cmp.Or(r.Assignment, "none"))
	row("Assigned:", "%s", sourceLine(r.Config.Assigned))
	row("Active:", "%s", sourceLine(r.Config.Active))
	row("Last known good:", "%s", sourceLine(r.Config.LastKnownGood))
	row("Condition:", "KubeletConfigOk=%s %s", r.Condition.Status, r.Condition.Reason)
	row("", "%s", r.Condition.Message)
	row("Error:", "%s", cmp.Or(r.Config.Error, "none"))
	for i, field := range r.Status.Shadowed {
		row([]string{"Shadowed:", ""}[min(i, 1)], "%s%s", field, map[bool]string{true: " (our own reading)"}[field.Inferred])
	}
	if r.Trial != nil {
		row("Trial:", "%s healthy, %s left, %d failures", time.Duration(r.Trial.Healthy).Round(time.Second),
			time.Duration(r.Trial.Left).Round(time.Second), r.Trial.Failures)
	}
	if r.LastChange != nil {
		change := r.LastChange.Shown()
		row("Last change:", "%s", change.Title())
		row("", "began %s", change.Began.Local().Format(time.DateTime))
		row("", "%s", change.Line())
	}
	for _, rejected := range r.Rejected {
		row("Rejected:", "content %.19s… %s", rejected.Content, rejected.Words)
	}
	for _, exit := range r.Exits {
		asked := "unasked"
		if exit.Asked {
			asked = "asked"
		}
		row("Exit:", "%s %s, %s, ran %s", exit.Time.Local().Format(time.DateTime), asked, exit.Words, exit.Ran)
	}
	return table.Flush()
}

func kubeletLine(r supervisor.Record) string {
	if r.Child == nil {
		return "none"
	}
	if !r.Healthy {
		return fmt.Sprintf("pid %d, not healthy", r.Child.PID)
	}
	return fmt.Sprintf("pid %d, healthy", r.Child.PID)
}

func sourceLine(source *corev1.NodeConfigSource) string {
	if source == nil || source.ConfigMap == nil {
		return nodev1.Local
	}
	c := source.ConfigMap
	return fmt.Sprintf("%s (UID %s, resourceVersion %s)", nodev1.FieldText(c), c.UID, c.ResourceVersion)
}
