//go:build linux

package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kubelet-supervisor/kubelet-supervisor/internal/bounded"
)

// The exit codes of what systemd does before it executes a program (systemd.exec(5), Process Exit Codes).
const (
	firstOfSystemd = 200
	lastOfSystemd  = 245
	cannotExecute  = 203
)

// probeTime is how long the program may take to answer, its pre-flight included.
const probeTime = 30 * time.Second

// probePrefix begins the name of a probe's unit; the pid of who asks follows.
const probePrefix = "kubelet-supervisor-probe-"

// notForAProbe are settings that are about when, how often and for how long the unit runs, and not about which user it runs as, and in what
// surroundings. Its run folder is among them: it would go away with the probe.
var notForAProbe = []string{
	"Type", "ExecStart", "ExecStartPre", "ExecStartPost", "ExecReload", "ExecStop", "ExecStopPost", "Restart", "RestartSec",
	"RestartSteps", "RestartMaxDelaySec", "RestartMode", "RestartPreventExitStatus", "RestartForceExitStatus", "SuccessExitStatus",
	"RemainAfterExit", "WatchdogSec", "WatchdogSignal", "TimeoutSec", "TimeoutStartSec", "TimeoutStopSec", "TimeoutAbortSec",
	"TimeoutStartFailureMode", "RuntimeMaxSec", "PIDFile", "GuessMainPID", "BusName", "NotifyAccess", "Sockets",
	"FileDescriptorStoreMax", "NonBlocking", "StandardInput", "StandardOutput", "StandardError", "RuntimeDirectory",
	"RuntimeDirectoryPreserve", "RuntimeDirectoryMode", "Delegate", "Slice", "OpenFile",
}

// prober has systemd start the program once, as the unit would.
type prober struct {
	unitFiles
	probeFolder string // of units that last until the next boot
}

// probe lets systemd itself start the program once, as the same user, with the same root and sandbox as the unit, before the kubelet
// depends on it: what a root shell can execute, systemd may not (SELinux, fapolicyd, noexec, NoExecPaths=). The program answers as run
// --self-check=unit does. files are those of the unit without our drop-in; prefix and line are the kubelet's command in it. The error is a
// [localRefusedError] where nothing but the kubelet's own configuration is bad. A minus in the prefix is left out: systemd would pass over
// a program that it cannot execute.
func (p prober) probe(ctx context.Context, files []string, prefix, line string) error {
	_, err := p.startOnce(ctx, files,
		strings.ReplaceAll(prefix, "-", "")+p.executable+" run --"+selfCheckFlag+"="+selfCheckUnit+" $KUBELET_SUPERVISOR_ARGS -- "+line)
	return err
}

// startOnce returns what a program says that systemd starts in the surroundings of the unit, with the variables of its line expanded as for
// the unit.
func (p prober) startOnce(ctx context.Context, files []string, line string) (words []byte, err error) {
	around, err := surroundings(files)
	if err != nil {
		return nil, notAskedError{err}
	}
	if err := os.MkdirAll(p.probeFolder, 0o755); err != nil {
		return nil, notAskedError{fmt.Errorf("making the folder of units that last until the next boot: %w", err)}
	}
	// one that was killed may have left its own, which would answer
	unit := fmt.Sprintf(probePrefix+"%d-%d.service", os.Getpid(), time.Now().UnixNano())
	path, said := filepath.Join(p.probeFolder, unit), filepath.Join(p.probeFolder, unit+".said")
	if err := replaceFile(path, p.probeUnit(around, files, said, line)); err != nil {
		return nil, notAskedError{fmt.Errorf("writing a unit for a first start of the program: %w", err)}
	}
	defer func() { _, _ = os.Remove(path), os.Remove(said) }()
	_, startErr := systemctl(ctx, "start", unit)
	words, _ = os.ReadFile(said)
	defer func() {
		_, _ = systemctl(context.WithoutCancel(ctx), "stop", unit)
		_, _ = systemctl(context.WithoutCancel(ctx), "reset-failed", unit)
	}()
	if ctx.Err() != nil {
		return nil, notAskedError{fmt.Errorf("letting systemd start %s: %w", p.executable, context.Cause(ctx))}
	}
	shown, err := systemctl(ctx, "show", "--property=ActiveState,ExecMainCode,ExecMainStatus,Result", "--", unit)
	if err != nil {
		return nil, notAskedError{errors.Join(startErr, err)}
	}
	main := properties(shown)
	switch {
	// of a unit that was passed over systemd says no more, because it has forgotten it
	case startErr == nil && main["ActiveState"] != "active":
		return nil, unitIncompleteError{fmt.Sprintf("systemd would not start %s now, because a Condition…= or ExecCondition= of it does not "+
			"hold: see systemctl status %[1]s", p.unit)}
	case startErr == nil:
		return words, nil
	case main["Result"] == "success": // it was not even tried
		words := strings.ReplaceAll(startErr.Error(), unit, "a probe of it") // the same words each time
		return nil, fmt.Errorf("systemd cannot start %s as %s would: %s", p.executable, p.unit, words)
	}
	return nil, p.probeFailed(main, bounded.Line(strings.TrimPrefix(lastLine(words), "kubelet-supervisor: ")))
}

// notAskedError says that systemd has not been asked, or has not answered: nothing is known.
type notAskedError struct{ cause error }

func (e notAskedError) Error() string { return e.cause.Error() }
func (e notAskedError) Unwrap() error { return e.cause }

// localRefusedError has the kubelet's words.
type localRefusedError struct{ words string }

func (e localRefusedError) Error() string { return e.words }

// unitIncompleteError says that the unit could not start the kubelet either, as on a machine that becomes an image.
type unitIncompleteError struct{ words string }

func (e unitIncompleteError) Error() string { return e.words }

// probeUnit is the unit of a probe. Its name and file differ from the unit's.
func (p prober) probeUnit(around unitSurroundings, files []string, said, line string) string {
	settings := around.service
	// the unit's RuntimeDirectory= makes its run folder, and lets the supervisor write it
	if strings.Contains(settings, "ProtectSystem=strict") {
		settings += "ReadWritePaths=-" + filepath.Dir(defaultRunDir) + "\n"
	}
	ours := "Environment=KUBELET_SUPERVISOR_ARGS=\n" // first, because the unit may say something else
	if p.unit == ownUnit {
		ours += "Environment=KUBELET=/usr/bin/kubelet KUBELET_ARGS=\n"
	}
	file := ""
	if len(files) > 0 {
		file = files[0]
	}
	unit := around.unit + "\n[Service]\n" + ours + settings +
		"Type=oneshot\nRemainAfterExit=yes\nTimeoutStartSec=" + strconv.Itoa(int(probeTime.Seconds())) + "s\nStandardOutput=file:" + said +
		"\nStandardError=file:" + said + "\n" +
		"EnvironmentFile=-" + p.flagsFile + "\nExecStart=" + line + "\n"
	return "[Unit]\nDescription=Whether systemd can start kubelet-supervisor as " + p.unit + " would\n" + withoutOwnName(unit, p.unit, file)
}

// unitSurroundings are settings of a unit as they are written, by their sections.
type unitSurroundings struct {
	unit    string // whether it is started at all
	service string // as which user and in what surroundings its program runs
}

// surroundings returns those of a unit.
func surroundings(files []string) (around unitSurroundings, err error) {
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return around, fmt.Errorf("reading the unit: %w", err)
		}
		section := ""
		for _, line := range logicalLines(data) {
			if strings.HasPrefix(line.text, "[") {
				section = line.text
				continue
			}
			key, _, is := strings.Cut(line.text, "=")
			key = strings.TrimSpace(key)
			switch {
			case section == "[Service]" && is && !slices.Contains(notForAProbe, key):
				around.service += line.text + "\n"
			case section == "[Unit]" && is && (strings.HasPrefix(key, "Condition") || strings.HasPrefix(key, "Assert")):
				around.unit += line.text + "\n"
			}
		}
	}
	return around, nil
}

// probeFailed returns what systemd or the program has against it.
func (p prober) probeFailed(main map[string]string, words string) error {
	code, _ := strconv.Atoi(main["ExecMainStatus"])
	exited := main["ExecMainCode"] == "1" // CLD_EXITED
	switch {
	case exited && code == cannotExecute:
		return fmt.Errorf("systemd cannot execute %s for %s (status 203/EXEC)%s: is the file's SELinux label right (restorecon %[1]s), its "+
			"mount without noexec, and is there no other guard such as fapolicyd? journalctl and ausearch -m avc name it",
			p.executable, p.unit, labelWords(p.executable))
	case exited && code >= firstOfSystemd && code <= lastOfSystemd:
		return fmt.Errorf("systemd cannot start %s as %s says (status %d, systemd.exec(5)): see journalctl -u %[2]s", p.executable, p.unit, code)
	case main["Result"] == "resources":
		return unitIncompleteError{fmt.Sprintf("systemd cannot start anything as %s says, because something that it names is missing, such as "+
			"an EnvironmentFile: see journalctl -u %[1]s", p.unit)}
	case main["Result"] == "timeout":
		return notAskedError{fmt.Errorf("%s gave no answer in %s, as %s starts it: %s", p.executable, probeTime, p.unit, words)}
	case exited && code == exitLocalRefused:
		return localRefusedError{words}
	case exited && words != "":
		return fmt.Errorf("started by systemd as %s would, the supervisor says: %s", p.unit, words)
	}
	if words == "" { // its domain may not write here
		words = "see journalctl for what it said, and for what an SELinux policy has denied"
	}
	return fmt.Errorf("%s ended with %s %d, as %s starts it: %s", p.executable, main["Result"], code, p.unit, words)
}

// properties reads what systemctl show prints.
func properties(shown string) map[string]string {
	values := map[string]string{}
	for line := range strings.Lines(shown) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		values[name] = value
	}
	return values
}

func lastLine(text []byte) string {
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return lines[len(lines)-1]
}
