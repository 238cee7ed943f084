//go:build linux

package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/kubelet"
)

// checkLocal asks the kubelet about what it would be restarted into, where a supervisor runs one: its local configuration may have been
// broken for weeks, while an assigned one ran (FallbackBroken), and its unit may have other flags by now. What cannot be asked is no reason
// to refuse.
func (p prober) checkLocal(ctx context.Context) error {
	if _, err := os.Stat(p.dropInPath()); err != nil {
		return nil // a unit of our own ends with the supervisor: nothing is restarted
	}
	record, running, err := supervisor.ReadRecord(p.runDir())
	if err != nil || !running || !record.Healthy || record.Alone != "" {
		return nil //nolint:nilerror // no kubelet runs well under a supervisor, so there is none to lose
	}
	if known, err := p.checkNextStart(ctx); known {
		return err
	}
	command := kubeletOf(record.Supervisor.PID)
	if len(command) == 0 {
		return nil
	}
	folder, err := os.MkdirTemp("", "kubelet-supervisor-disable-")
	if err != nil {
		return fmt.Errorf("making a folder to ask the kubelet in: %w", err)
	}
	defer func() { _ = os.RemoveAll(folder) }()
	preflight := kubelet.Preflight{Kubelet: command[0], Arguments: command[1:], TempFolder: folder}
	if verdict := preflight.Check(ctx, kubelet.Candidate{}, nil); verdict.Outcome == kubeletconfig.Refused {
		return fmt.Errorf("nothing is done, because the kubelet would not start as %s says: %s; correct its local configuration, or use --force",
			p.unit, verdict.Words)
	}
	return nil
}

// checkNextStart asks about the unit's own next start. Where systemd cannot be asked, or cannot start this program, the answer is not
// known.
func (p prober) checkNextStart(ctx context.Context) (known bool, err error) {
	state, err := showUnit(ctx, p.unit)
	if err != nil || state.LoadState != "loaded" {
		return false, nil //nolint:nilerror // not known
	}
	_, asked, err := p.askNextStart(ctx, state)
	var local localRefusedError
	var incomplete unitIncompleteError
	if errors.As(err, &local) || errors.As(err, &incomplete) {
		return true, fmt.Errorf("nothing is done, because no kubelet would run as %s says: %w; correct that, or use --force", p.unit, err)
	}
	return asked && err == nil, nil
}

// runDir is that of the supervisor that the unit starts.
func (u unitFiles) runDir() string { return u.options().RunDir }

// kubeletOf returns the kubelet's own command line, which a supervisor has behind --; variables of the unit are expanded there.
func kubeletOf(pid int) []string {
	words := commandLine(pid)
	dash := slices.Index(words, "--")
	if dash < 0 || dash == len(words)-1 {
		return nil
	}
	return words[dash+1:]
}

// commandLine is that of a process; nil when it cannot be read.
func commandLine(pid int) (words []string) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return nil
	}
	for word := range bytes.SplitSeq(bytes.TrimSuffix(data, []byte{0}), []byte{0}) {
		words = append(words, string(word))
	}
	return words
}
