package plugin

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/kubelet-supervisor/kubelet-supervisor/internal/bounded"
)

const (
	longestLine = 8 << 10 // bytes that one node, ConfigMap or pool can put on a line
	longestRun  = 20 * time.Second
	mostOutput  = 512 << 10 // bytes for people
	mostIndent  = 8         // of a line of the plugin's own; a text that is laid out in lines is further to the right
)

// hostileLines are what each command is tried with; every command of the plugin has a row. What it prints whole for programs is bounded by
// what was read.
func hostileLines(t *testing.T) map[string][]string {
	t.Helper()
	pushed, pool := inFile(t, "kubelet.yaml", someConfig), inFile(t, "pool.yaml", poolHeader+poolSpec+"  - {name: fleet, inline: {maxPods: 60}}\n")
	return map[string][]string{
		"assign": {"n1 --config workers --yes --timeout 1s", "n1 --config workers --dry-run=server", "n1 --config layers --dry-run=client", "-l pool=workers --config workers --dry-run=client"},
		"check":  {"n1 --config workers", "n1 -f " + pushed},
		"config": {"n1", "n1 --changed"}, "describe": {"n1"}, "diff": {"n1", "n1 --config workers", "n1 --config layers"}, "doctor": {"n1 --answer-timeout 1s", "--all"},
		"explain": {"n1", "n1 --all", "n1 maxPods"}, "history": {"n1"}, "install": {"--dry-run=client"},
		"pool diff": {"workers -f " + pool}, "prune": {"--yes", "--dry-run=client --min-age 0s"},
		"push":  {"x -f " + pushed, "x --edit n1 --yes", "x -f " + pushed + " --against n1", "x --set maxPods=1"},
		"reset": {"n1 --yes --timeout 1s", "n1 --dry-run=server"}, "retry": {"n1 --yes --timeout 1s"}, "rollback": {"n1 --yes --timeout 1s", "n1 --dry-run=client --to-revision 1"},
		"rollout adopt": {"n1"}, "rollout release": {"n1"}, "rollout history": {"workers", "workers --revision 1", "workers --revision 2"}, "rollout pause": {"workers"}, "rollout resume": {"workers"},
		"rollout retry": {"workers"}, "rollout status": {"workers --timeout 1s", "--watch=false", "workers --watch=false"}, "rollout undo": {"workers", "workers --to-local --yes"}, "rollout unpin": {"workers"},
		"status": {"", "n1", "--not-ok", "-l pool=workers --exit-code"},
	}
}

// ownText are the commands that print nothing but their own text.
var ownText = []string{"options", "version", "package-files", "pool", "rollout", ""}

// A hostile node, or whoever writes a ConfigMap or a pool, gets neither a character that does not show, nor a line without end, nor a line that
// looks like another's, nor a secret through any command of the plugin, and holds none up (rule 28). A new command needs a row.
func TestHostileTextInEveryCommand(t *testing.T) {
	lines, turn := hostileLines(t), 0
	worlds := hostileWorlds()
	for _, kind := range slices.Sorted(maps.Keys(worlds)) {
		makes := worlds[kind]
		t.Run(kind, func(t *testing.T) {
			for _, command := range commandsOf(newRoot(newBench(t).factory, "test"), "") {
				if slices.Contains(ownText, command.path) {
					continue
				}
				rows := lines[command.path]
				if len(rows) == 0 {
					t.Errorf("kubectl kubelet %s has no row in hostileLines", command.path)
				}
				for _, row := range rows {
					formats := command.formats(strings.Contains(kind, "short"))
					turn++
					if !thorough && turn%4 != 0 {
						continue
					}
					if !thorough {
						formats = formats[turn/4%len(formats):][:1]
					}
					for _, format := range formats {
						arguments := append(strings.Fields(command.path), strings.Fields(row)...)
						if format != "" {
							arguments = append(arguments, "-o", format)
						}
						var stdout, stderr string
						began := time.Now()
						synctest.Test(t, func(t *testing.T) {
							ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
							defer cancel()
							b := makes(t)
							var out, errs lockedBuffer
							b.factory.Out, b.factory.ErrOut, b.factory.In = &out, &errs, b.input
							b.factory.Edit = func(string) error { return nil }
							execute(ctx, b.factory, arguments, "test")
							if ctx.Err() != nil {
								t.Errorf("%v does not end", arguments)
							}
							stdout, stderr = out.buffer.String(), errs.buffer.String()
						})
						if took := time.Since(began); took > longestRun {
							t.Errorf("%v takes %s", arguments, took)
						}
						if command.path == "config" && format == "" { // which is a document
							format = "yaml"
						}
						for _, fault := range append(faultsOf(stdout, format), faultsOf(stderr, "")...) {
							t.Errorf("%v: %s", arguments, fault)
						}
					}
				}
			}
		})
	}
}

// faultsOf says what is wrong with what was printed.
func faultsOf(text, format string) (faults []string) {
	whole := format != "" && format != "wide" && format != "name"
	if strings.Contains(text, leaked) && !(whole && isObject(text)) {
		faults = append(faults, "a secret is printed: "+around(text, leaked))
	}
	if !bounded.Shows(text) {
		at := strings.IndexFunc(text, func(r rune) bool { return !bounded.Shows(string(r)) })
		faults = append(faults, fmt.Sprintf("what does not show is printed: %q", text[max(0, at-80):min(len(text), at+40)]))
	}
	var read any
	switch {
	case format == "json" && text != "" && json.Unmarshal([]byte(text), &read) != nil, format == "yaml" && yaml.Unmarshal([]byte(text), &read) != nil:
		faults = append(faults, "it does not decode: "+text[:min(len(text), 300)])
	case whole:
		return faults
	}
	if len(text) > mostOutput {
		faults = append(faults, fmt.Sprintf("it prints %d bytes", len(text)))
	}
	for line := range strings.Lines(text) {
		if len(line) > longestLine {
			faults = append(faults, fmt.Sprintf("a line has %d bytes: %s", len(line), line[:200]))
		}
		if at := strings.Index(line, "INJECTED"); at >= 0 && at <= mostIndent && strings.TrimSpace(line[:at]) == "" {
			faults = append(faults, "a line is injected: "+line[:min(len(line), 200)])
		}
	}
	return faults
}

// isObject tells whether it is an object of the API server, which -o prints whole: a command has made or changed it.
func isObject(text string) bool {
	var object struct{ Kind string }
	if json.Unmarshal([]byte(text), &object) != nil && yaml.Unmarshal([]byte(text), &object) != nil {
		return false
	}
	return (object.Kind == "KubeletPool" || object.Kind == "ConfigMap" || object.Kind == "List") ||
		strings.HasPrefix(text, `{"annotations":`) // its metadata, by a template
}

func around(text, what string) string {
	at := strings.Index(text, what)
	return fmt.Sprintf("%q", text[max(0, at-100):min(len(text), at+60)])
}

type commandOf struct {
	path    string
	command *cobra.Command
}

// formats are those of -o; the ones that a command does not know it refuses.
func (c commandOf) formats(all bool) []string {
	switch {
	case c.command.Flags().Lookup("output") == nil:
		return []string{""}
	case !all:
		return []string{"", "json"}
	}
	return []string{"", "wide", "json", "yaml", "name", "jsonpath={.items[*].condition.message}{.condition.message}{.metadata}"}
}

// commandsOf are the command and all below it.
func commandsOf(command *cobra.Command, path string) []commandOf {
	all := []commandOf{{path, command}}
	for _, below := range command.Commands() {
		all = append(all, commandsOf(below, strings.TrimSpace(path+" "+below.Name()))...)
	}
	return all
}
