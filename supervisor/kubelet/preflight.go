//go:build linux

package kubelet

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig/commandline"
	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig/kubeletlog"
)

// Verdict is the result of a pre-flight.
type Verdict struct {
	Outcome kubeletconfig.Outcome
	// Load tells, of a refusal, that the kubelet could not load or decode the file; otherwise it loaded it and found it invalid. Upstream
	// has an error for each.
	Load bool
	// Words say why, in one line fit for the Node ([kubeletconfig.Quote]): the kubelet's own error, or why there is no verdict. Empty when
	// accepted.
	Words string
	// Version is the kubelet's, where it said so, such as v1.36.3; empty is unknown. Minor is the 36 of it, 0 where it is unknown.
	Version string
	Minor   int
	// Warnings are those of strict decoding ([kubeletconfig.Warnings]) about the candidate's file.
	Warnings []string
	// Effective is what the kubelet would run with: what it told itself when it accepted the candidate, else our own reading. It is not known
	// of a candidate that is refused.
	Effective kubeletconfig.Effective
	// Shadowed are the fields of the candidate's file that flags or drop-in files override ([kubeletconfig.Shadowed]).
	Shadowed []nodev1.ShadowedField
	// Resolver warns of the candidate's resolv.conf where the node's own configuration names a better one ([kubeletconfig.LoopingResolver]).
	Resolver string
	// GoingAway are gates and flags that a later version of the kubelet will not have, by its own output ([kubeletconfig.GoingAway]).
	GoingAway []string
	// NoRoom: no process could be started, because of a limit of processes or of memory.
	NoRoom bool
	// NoMorePreflight: the binary went past the check and began to start for real. It was killed; nothing must be pre-flighted with it
	// again.
	NoMorePreflight bool
	// Unanswered, of an unknown outcome: the kubelet was killed, ran out of time, or could not be heard to its end. Asked again, with more
	// time, it may give a verdict.
	Unanswered bool
}

// Modes of a [Preflight].
const (
	PreflightAuto   = "auto"   // only when the kubelet is an ELF executable
	PreflightAlways = "always" // also for wrapper scripts, which must hand their arguments on
	PreflightNever  = "never"
)

// A pre-flight that gives no answer is asked again with more time.
const (
	defaultPreflightTimeout = 5 * time.Second
	longestPreflight        = time.Minute
)

// PreflightTimeout is how long a pre-flight may take that gave no answer so many times before: twice as long each time.
func PreflightTimeout(tries int) time.Duration {
	timeout := defaultPreflightTimeout
	for ; tries > 0 && timeout < longestPreflight; tries-- {
		timeout *= 2
	}
	return min(timeout, longestPreflight)
}

// Preflight asks the node's own kubelet binary, with its production flags, whether it accepts a configuration.
//
// It relies on the kubelet's order of work, the same from Kubernetes 1.21 to 1.37: parse flags, load the file, merge drop-ins, apply
// precedence and gates, validate, and only then look at --exit-on-lock-contention, which without a lock file is an error. A kubelet that
// fails there has accepted all before it and has not touched the node.
type Preflight struct {
	Kubelet    string        // path of the kubelet executable
	Arguments  []string      // its production command line, without the binary
	Mode       string        // one of the Preflight… modes; "" is auto
	TempFolder string        // where its short-lived certificate folder goes; "" is the system's
	Timeout    time.Duration // 0 is 5 s
}

// Candidate is a configuration to be asked about.
type Candidate struct {
	File string // path of a KubeletConfiguration, appended as --config; "" is the command line as it is
}

// Check runs the kubelet on the candidate, and, if it fails, on the control: a configuration known to have worked, nil
// if there is none. A candidate is refused when the control is accepted or fails in another way. Check returns when
// the processes it started are gone. When ctx ends first, the outcome is unknown. So it is for a file that was removed
// or changed in between, because it is unknown what the kubelet read.
func (p *Preflight) Check(ctx context.Context, candidate Candidate, control *Candidate) Verdict {
	stays := unchanged(p.fileOf(candidate))
	verdict := p.judge(ctx, candidate, control)
	if verdict.Outcome != kubeletconfig.Unknown && !stays() {
		verdict = Verdict{Outcome: kubeletconfig.Unknown, Unanswered: true, NoMorePreflight: verdict.NoMorePreflight,
			Words: kubeletconfig.Quote("no verdict of the pre-flight: " + p.fileOf(candidate) + " was removed or changed while the kubelet was asked")}
	}
	verdict.Warnings = kubeletconfig.FileWarnings(candidate.File, verdict.Minor)
	if verdict.Outcome != kubeletconfig.Accepted && verdict.Outcome != kubeletconfig.Unknown {
		return verdict
	}
	if !verdict.Effective.Known() {
		verdict.Effective = kubeletconfig.ReadEffective(p.Arguments, p.fileOf(candidate))
	}
	return p.lookBeside(verdict, candidate)
}

// lookBeside looks at what the kubelet does not check. Where its flags are not known for sure, as behind a script,
// that is a warning at most.
func (p *Preflight) lookBeside(verdict Verdict, candidate Candidate) Verdict {
	own := kubeletconfig.ReadEffective(p.Arguments, p.fileOf(Candidate{}))
	missing := kubeletconfig.MissingResolvConf(verdict.Effective, own)
	if missing != "" && verdict.Outcome == kubeletconfig.Accepted {
		return Verdict{Outcome: kubeletconfig.Refused, Words: missing, Minor: verdict.Minor, Warnings: verdict.Warnings}
	}
	verdict.Shadowed = kubeletconfig.Shadowed(candidate.File, p.Arguments, verdict.Effective)
	verdict.Resolver = cmp.Or(missing, kubeletconfig.LoopingResolver(verdict.Effective, own))
	return verdict
}

func (p *Preflight) judge(ctx context.Context, candidate Candidate, control *Candidate) Verdict {
	if reason := p.impossible(); reason != "" {
		return Verdict{Outcome: kubeletconfig.Unknown, Words: kubeletconfig.Quote(reason)}
	}
	verdict := p.try(ctx, candidate)
	if verdict.Outcome == kubeletconfig.Refused && control != nil {
		verdict = p.against(ctx, verdict, *control)
	}
	return verdict
}

// against is what a refusal is worth where the control is known.
func (p *Preflight) against(ctx context.Context, verdict Verdict, control Candidate) Verdict {
	other := p.try(ctx, control)
	verdict.NoMorePreflight, verdict.Version, verdict.Minor = other.NoMorePreflight, other.Version, other.Minor
	switch {
	case ctx.Err() != nil, other.Unanswered: // whose fault the refusal is, is not known
		verdict.Outcome, verdict.Load, verdict.Words, verdict.Unanswered = kubeletconfig.Unknown, false, other.Words, other.Unanswered
	case other.Outcome == kubeletconfig.Environment, other.Outcome == kubeletconfig.Refused && sameFailure(verdict.Words, other.Words):
		verdict.Outcome, verdict.Load = kubeletconfig.Environment, false
	}
	return verdict
}

// unchanged gives a function that reports whether a file is still the one that it is now.
func unchanged(path string) func() bool {
	before, errBefore := os.Stat(path)
	return func() bool {
		now, err := os.Stat(path)
		if errBefore != nil || err != nil {
			return os.IsNotExist(errBefore) && os.IsNotExist(err)
		}
		return os.SameFile(before, now) && before.Size() == now.Size() && before.ModTime().Equal(now.ModTime())
	}
}

// fileOf is the file that the kubelet reads for a candidate; "" for none.
func (p *Preflight) fileOf(c Candidate) string {
	if c.File != "" {
		return c.File
	}
	return commandline.Parse(p.Arguments).Config
}

func (p *Preflight) impossible() string {
	switch p.Mode {
	case PreflightAlways:
		return ""
	case PreflightNever:
		return "no pre-flight: it is turned off"
	}
	if elf, known := readsELF(p.Kubelet); known && !elf {
		return fmt.Sprintf("no pre-flight: %s is not an ELF executable, and a wrapper that swallows its arguments would start a second kubelet; if it hands them on, use --preflight=always", p.Kubelet)
	}
	return ""
}

func isELF(path string) bool {
	elf, _ := readsELF(path)
	return elf
}

// readsELF reports whether a file is an ELF executable. Of one that cannot be read, as while a package replaces it, that is not known.
func readsELF(path string) (is, known bool) {
	file, err := os.Open(path)
	if err != nil {
		return false, false
	}
	defer file.Close()
	magic := make([]byte, 4)
	_, err = io.ReadFull(file, magic)
	return err == nil && string(magic) == "\x7fELF", true
}

// try runs one pre-flight and judges it without a control.
func (p *Preflight) try(ctx context.Context, candidate Candidate) Verdict {
	timeout := p.Timeout
	if timeout == 0 {
		timeout = defaultPreflightTimeout
	}
	within, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	ran, err := p.run(within, candidate)
	unknown := func(format string, words ...any) Verdict {
		return Verdict{Outcome: kubeletconfig.Unknown, Words: kubeletconfig.Quote("no verdict of the pre-flight: " + fmt.Sprintf(format, words...))}
	}
	unanswered := func(format string, words ...any) Verdict {
		verdict := unknown(format, words...)
		verdict.Unanswered = true
		return verdict
	}
	switch {
	case err != nil && ran.startFailed:
		return Verdict{Outcome: kubeletconfig.Environment, Words: kubeletconfig.Quote(err.Error()), NoRoom: IsNoRoom(err)}
	case ran.pastCheck:
		verdict := unknown("%s went on to start instead of stopping at its lock-file check, and was killed", p.Kubelet)
		verdict.NoMorePreflight = true
		return verdict
	case ctx.Err() != nil:
		return unknown("%v", context.Cause(ctx))
	case within.Err() != nil && (err != nil || ran.signalled):
		return unanswered("%s did not finish within %v", p.Kubelet, timeout)
	case err != nil:
		return unanswered("%v", err)
	case ran.signalled:
		return unanswered("%s was killed by a signal (%s)", p.Kubelet, ran.status)
	case ran.code == 0:
		return unknown("%s exited with 0 instead of stopping at its lock-file check", p.Kubelet)
	case ran.accepted:
		return Verdict{Outcome: kubeletconfig.Accepted, Version: ran.version(), Minor: kubeletconfig.Minor(ran.version()), Effective: p.effective(ran, candidate), GoingAway: kubeletconfig.GoingAway([]byte(ran.output()))}
	}
	words, isError := ran.words(candidate.File)
	if ran.cutOff && !isError { // the error may be in what was not read, and so may the mark of an accepted one
		return unanswered("%s exited (%s), but its output could not be read to its end", p.Kubelet, ran.status)
	}
	return Verdict{Outcome: kubeletconfig.Refused, Words: words, Load: strings.Contains(strings.ToLower(words), "failed to load kubelet config file")}
}

// effective is what the kubelet told of the candidate; unknown when it told nothing that can be read.
func (p *Preflight) effective(ran *attempt, candidate Candidate) kubeletconfig.Effective {
	for _, output := range []*stream{&ran.stderr, &ran.stdout} {
		if told := output.teller.configuration(); told != nil {
			return kubeletconfig.ToldEffective(told, p.Arguments, p.fileOf(candidate), ran.folder)
		}
	}
	return kubeletconfig.Effective{}
}

func (r *attempt) output() string { return r.stdout.text() + "\n" + r.stderr.text() }

// words finds the kubelet's error in what it printed; without one, they are its last words. The path of the candidate's file, which the
// kubelet says up to three times, is left out.
func (r *attempt) words(file string) (words string, isError bool) {
	output := r.output()
	if file != "" {
		output = strings.ReplaceAll(output, file, kind)
	}
	if words := kubeletlog.LastErrorLine([]byte(output)); words != "" {
		words, _, _ = strings.Cut(words, validationTail)
		return words, true
	}
	for _, line := range slices.Backward(strings.Split(output, "\n")) {
		if line = strings.TrimRight(line, " \r"); line != "" && !chatter.MatchString(line) {
			return kubeletconfig.Quote(line), false
		}
	}
	return "the kubelet exited without a word (" + r.status + ")", false
}

// said is how a kubelet tells its version just before the check, whatever its log's format and verbosity; one that
// refuses does not come so far.
var said = regexp.MustCompile(`kubeletVersion"?[=:]"(v1\.\d+[0-9A-Za-z.+-]{0,64})`)

// version is the kubelet's, empty when it is not told.
func (r *attempt) version() string {
	match := said.FindStringSubmatch(r.output())
	if match == nil {
		return ""
	}
	return match[1]
}

// chatter is what a log has that is no error, such as its flags, which may be secret.
var chatter = regexp.MustCompile(`^(?:[IW]\d{4} \d\d:|\{|\t| >)`)

// validationTail begins what the kubelet adds behind the errors of a validation; it names nothing that helps anybody.
const validationTail = ", path: &TypeMeta"

// kind is the word for a path that is left out.
const kind = "KubeletConfiguration"

var (
	paths   = regexp.MustCompile("(?:/[^\\s/\"'`,:;\\])]+)+/?")
	wording = strings.NewReplacer("[", "", "]", "", "…", "", kind, "PATH")
)

// sameFailure reports whether one error begins with the other, paths and the
// brackets of lists apart: a candidate that has faults of its own behind one that
// it shares with the control fails in the same way.
func sameFailure(words, control string) bool {
	words, control = neutral(words), neutral(control)
	return words != "" && control != "" && (strings.HasPrefix(words, control) || strings.HasPrefix(control, words))
}

func neutral(words string) string {
	return paths.ReplaceAllString(wording.Replace(words), "PATH")
}
