//go:build linux

package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// enabledUnit is a unit that enable has changed or made, and the file that says so.
type enabledUnit struct{ unit, path, content string }

// enabledUnits are those in a folder of units.
func enabledUnits(folder string) (units []enabledUnit) {
	paths, _ := filepath.Glob(filepath.Join(folder, "*.service.d", dropInName)) // the pattern is a good one
	for _, path := range append(paths, filepath.Join(folder, ownUnit)) {
		content, err := os.ReadFile(path)
		if err != nil || !strings.HasPrefix(string(content), ourMark) {
			continue
		}
		unit := filepath.Base(path)
		if unit == dropInName {
			unit = strings.TrimSuffix(filepath.Base(filepath.Dir(path)), ".d")
		}
		units = append(units, enabledUnit{unit, path, string(content)})
	}
	return units
}

// whyNone returns why no supervisor runs, as far as the units tell; "" where they do not.
func (u unitFiles) whyNone(ctx context.Context) string {
	units := enabledUnits(u.folder)
	if len(units) == 0 {
		return "not enabled: kubelet-supervisor enable makes systemd start the kubelet through it"
	}
	for _, e := range units {
		state, err := showUnit(ctx, e.unit)
		switch {
		case err != nil:
			return ""
		case u.runs(state, e.content):
			return fmt.Sprintf("the supervisor of %s, process %d, has another run folder: name it with --run-dir, or run kubelet-supervisor "+
				"enable --now where its flags have changed", e.unit, state.MainPID)
		case !state.inForce(e.path, e.content):
			return fmt.Sprintf("enabled, but systemd does not start %s as %s says: run kubelet-supervisor enable again", e.unit, e.path)
		case state.active() && strings.HasPrefix(state.value("StatusText"), aloneStatus):
			return fmt.Sprintf("the kubelet of %s runs without it: %s", e.unit, strings.TrimPrefix(state.value("StatusText"), aloneStatus))
		case state.active():
			return fmt.Sprintf("enabled, not restarted yet: systemctl restart %s", e.unit)
		}
	}
	return fmt.Sprintf("enabled, and %s is not started: systemctl start %s", units[0].unit, units[0].unit)
}

func (u unitFiles) writeWhyNone(ctx context.Context, to io.Writer) {
	if why := u.whyNone(ctx); why != "" {
		_, _ = fmt.Fprintf(to, "No supervisor runs: %s.\n", why)
	}
}

// runs reports whether the unit's main process is the supervisor, started with the command line of our drop-in or unit. Variables that only
// systemd knows may have any value; the supervisor's own flags, and what else is in its flags file, are those of now.
func (u unitFiles) runs(state unitState, content string) bool {
	commands := addStartCommands(nil, "", []byte(content))
	if state.MainPID == 0 || len(commands) != 1 {
		return false
	}
	words, err := splitWords(commands[0].line)
	if err != nil {
		return false
	}
	known := environmentFile(u.flagsFile)
	if environment, told := unitEnvironment(state); told {
		for _, name := range []string{"KUBELET_SUPERVISOR_ARGS", "KUBELET", "KUBELET_ARGS"} { // which our files have
			if value, is := environment[name]; is && known[name] == "" {
				known[name] = value
			}
		}
	}
	known["KUBELET_SUPERVISOR_ARGS"] += "" // empty where it is not set
	return startedPattern(words, known).MatchString(between + strings.Join(u.words(state.MainPID), between))
}

// between separates words where none of them can have it.
const between = "\x00"

var (
	wholeVariable = regexp.MustCompile(`^\$(\w+)$`)
	// expanded is what systemd replaces in a word, when it reads the unit or when it starts it.
	expanded = regexp.MustCompile(`%.|\$\$|\$\{\w+\}`)
)

// startedPattern matches the command line of a process that systemd started with these arguments, each with between in front.
func startedPattern(words []string, known map[string]string) *regexp.Regexp {
	var pattern strings.Builder
	for _, word := range words {
		if found := wholeVariable.FindStringSubmatch(word); found != nil {
			value, is := known[found[1]]
			if !is {
				pattern.WriteString(`(` + between + `[^` + between + `]*)*`)
			}
			for one := range slices.Values(wordsOf(value)) {
				pattern.WriteString(between + regexp.QuoteMeta(one))
			}
			continue
		}
		pattern.WriteString(between + startedWord(unescaped(word), known))
	}
	return regexp.MustCompile(`(?s)^` + pattern.String() + `$`)
}

func startedWord(word string, known map[string]string) string {
	var pattern strings.Builder
	at := 0
	for _, found := range expanded.FindAllStringIndex(word, -1) {
		pattern.WriteString(regexp.QuoteMeta(word[at:found[0]]))
		at = found[1]
		what := word[found[0]:found[1]]
		value, is := known[strings.Trim(what, "${}")]
		switch {
		case what == "%%" || what == "$$":
			pattern.WriteString(regexp.QuoteMeta(what[:1]))
		case is:
			pattern.WriteString(regexp.QuoteMeta(value))
		default:
			pattern.WriteString(`[^` + between + `]*`)
		}
	}
	return pattern.String() + regexp.QuoteMeta(word[at:])
}
