//go:build linux

package cli

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig/commandline"
)

// warnNoKubeconfig says that nothing can be assigned to a kubelet that joins no cluster. The supervisor may have a kubeconfig of its own.
func (i installation) warnNoKubeconfig(kubelets []string, supervisors string) {
	if supervisors != "" || commandline.NamesFlag(kubelets, "kubeconfig") {
		return
	}
	i.say("Warning:            the kubelet has no --kubeconfig, so it joins no cluster: it will run under the supervisor, and nothing can " +
		"be assigned to it.")
}

// kubeletFlags are those that the kubelet has, or would have at its next start where it does not run; known says whether they could be
// read.
func (p processes) kubeletFlags(state unitState, command startCommand) (flags []string, known bool) {
	if running := p.words(state.MainPID); state.MainPID > 0 && len(running) > 0 {
		if dash := slices.Index(running, "--"); slices.Contains(running[:max(0, dash)], runCommand) {
			running = running[dash+1:]
		}
		return running[min(1, len(running)):], true
	}
	words, err := splitWords(command.line)
	if err != nil || len(words) == 0 || isKubeletScript(words[0]) {
		return nil, false // a script has flags of its own
	}
	environment, known := unitEnvironment(state)
	return expandWords(words[1:], environment), known
}

// assigned begins an assignment in what systemctl show says of Environment=.
var assigned = regexp.MustCompile(`^\w+=`)

// unitEnvironment is what the unit gives its processes; known where its files can be read. One that is not there gives nothing.
func unitEnvironment(state unitState) (environment map[string]string, known bool) {
	words, err := splitWords(state.value("Environment"))
	if err != nil {
		return nil, false
	}
	environment = map[string]string{}
	var last string
	for _, word := range words {
		word = unescaped(strings.TrimPrefix(word, "$"))
		if !assigned.MatchString(word) { // systemd before 246 has no quotes around blanks
			environment[last] += " " + word
			continue
		}
		name, value, _ := strings.Cut(word, "=")
		last, environment[name] = name, value
	}
	for _, path := range state.environmentFiles() {
		if _, err := os.ReadFile(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, false
		}
		maps.Copy(environment, environmentFile(path))
	}
	return environment, true
}

var braced = regexp.MustCompile(`\$\{\w+\}`)

// expandWords replaces variables by their values as systemd does: a whole word is split, ${NAME} within one is not, and one that is not set
// is empty.
func expandWords(words []string, environment map[string]string) (expanded []string) {
	for _, word := range words {
		if found := wholeVariable.FindStringSubmatch(word); found != nil {
			expanded = append(expanded, wordsOf(environment[found[1]])...)
			continue
		}
		expanded = append(expanded, braced.ReplaceAllStringFunc(unescaped(word),
			func(name string) string { return environment[strings.Trim(name, "${}")] }))
	}
	return expanded
}
