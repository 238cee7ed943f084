//go:build linux

package supervisor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/kubelet-supervisor/kubelet-supervisor/forecast"
	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
	"github.com/kubelet-supervisor/kubelet-supervisor/store"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/core"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/host"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/kubelet"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/systemd"
)

// Limits that a kubelet sets on cgroups of the system are looked at before each start, after the kubelet before has ended (package decide).
// With the kubelet's systemd driver they are properties of a slice as well, which systemd would write again.

// enforcedBy is what a kubelet writes that runs with this; nothing where that is not known, because then it is refused.
func enforcedBy(e kubeletconfig.Effective) []forecast.Enforced {
	if !e.Known() {
		return nil
	}
	c, err := forecast.DecodeConfiguration(e.JSON())
	if err != nil {
		return nil
	}
	return c.Enforced()
}

// limitsBefore lists what has to be recorded, or written back, before the start with the file; empty for local.
func (r *runner) limitsBefore(ctx context.Context, do core.Start, file string, recorded []core.KeptLimit, bootID string) []core.LimitSeen {
	if do.Unlimited {
		return nil
	}
	enforced := enforcedBy(r.prover.effectiveOf(do, file))
	if len(enforced) == 0 && len(recorded) == 0 {
		return nil
	}
	seen := seeLimits(ctx, enforced, recorded)
	if core.PlanLimits(recorded, seen, bootID).Idle(recorded) {
		return nil
	}
	return seen
}

// seeLimits reads the limits that are recorded, and those that a kubelet is going to set.
func seeLimits(ctx context.Context, enforced []forecast.Enforced, recorded []core.KeptLimit) (seen []core.LimitSeen) {
	var files []string
	units := map[string]map[string][]string{}
	property := func(unit, name string, sets []string) {
		if units[unit] == nil {
			units[unit] = map[string][]string{}
		}
		units[unit][name] = sets
	}
	for _, k := range recorded {
		if k.Unit == "" {
			files = append(files, k.File)
		} else {
			property(k.Unit, k.Property, nil)
		}
	}
	for _, e := range enforced {
		for _, cgroup := range host.CgroupPaths(e.Cgroup) {
			for name, sets := range host.UnitLimits(e) {
				if strings.HasSuffix(cgroup, ".slice") {
					property(path.Base(cgroup), name, sets)
				}
			}
		}
	}
	for _, found := range host.Limits(enforced, files) {
		seen = append(seen, core.LimitSeen{Limit: core.Limit{File: found.File}, Value: found.Value, Gone: found.Gone, Sets: found.Sets})
	}
	for _, unit := range slices.Sorted(maps.Keys(units)) {
		properties, err := systemd.SliceProperties(ctx, unit)
		if errors.Is(err, context.DeadlineExceeded) {
			break // nothing answers there, and a kubelet waits
		}
		if err != nil {
			continue // without systemd there is no such property, and of what is recorded nothing is known now
		}
		for _, name := range slices.Sorted(maps.Keys(units[unit])) {
			if value, is := properties[name]; is {
				seen = append(seen, core.LimitSeen{Limit: core.Limit{Unit: unit, Property: name}, Value: strconv.FormatUint(value, 10),
					Sets: units[unit][name]})
			}
		}
	}
	return seen
}

// writeBack gives limits the values of before where they are the kubelet's still. Properties of units come first, because systemd writes
// the files as they say.
func writeBack(ctx context.Context, limits []core.KeptLimit) error {
	var errs []error
	units := map[string]map[string]uint64{}
	for _, k := range limits {
		if k.Unit == "" {
			continue
		}
		value, err := strconv.ParseUint(k.Before, 10, 64)
		if err != nil || !strings.HasSuffix(k.Unit, ".slice") || !limitProperty.MatchString(k.Property) {
			errs = append(errs, fmt.Errorf("%.64q of %.255q is no limit of a slice", k.Before, k.Limit))
			continue
		}
		if units[k.Unit] == nil {
			units[k.Unit] = map[string]uint64{}
		}
		units[k.Unit][k.Property] = value
	}
	for _, unit := range slices.Sorted(maps.Keys(units)) {
		err := systemd.SetSliceProperties(ctx, unit, units[unit])
		errs = append(errs, err)
		crashPoint("written", unit)
		if errors.Is(err, context.DeadlineExceeded) {
			break
		}
	}
	for _, k := range limits {
		if k.Unit == "" {
			errs = append(errs, writeBackFile(k))
			crashPoint("written", filepath.Base(k.File))
		}
	}
	return errors.Join(errs...)
}

// Files that are written, and what is: a record on a disk is no leave to write anything anywhere.
var (
	limitFile = regexp.MustCompile(`^(memory\.(limit_in_bytes|max|min)|cpu\.(shares|weight)|pids\.max|` +
		`hugetlb\.[0-9]+[KMG]B\.(rsvd\.)?(max|limit_in_bytes))$`)
	limitProperty = regexp.MustCompile(`^(MemoryMax|MemoryMin|MemoryLimit|CPUWeight|CPUShares|TasksMax)$`)
	limitValue    = regexp.MustCompile(`^(max|-?[0-9]+)$`)
)

func writeBackFile(k core.KeptLimit) error {
	if !filepath.IsLocal(k.File) || !limitFile.MatchString(filepath.Base(k.File)) || !limitValue.MatchString(k.Before) {
		return fmt.Errorf("%.64q of %.255q is no limit of a cgroup", k.Before, k.File)
	}
	file, err := os.OpenFile(filepath.Join(host.CgroupMount, k.File), os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // its cgroup is gone
	}
	if err != nil {
		return fmt.Errorf("writing a limit back: %w", err)
	}
	defer func() { _ = file.Close() }()
	content := make([]byte, 64)
	n, _ := file.Read(content)
	if !k.IsKubelets(strings.TrimSpace(string(content[:n]))) {
		return nil // it has been changed since, by systemd or another program
	}
	if _, err := file.WriteAt([]byte(k.Before), 0); err != nil {
		return fmt.Errorf("writing %s back into %s: %w", k.Before, k.File, err)
	}
	return nil
}

// WriteBackLimits writes back the limits that kubelets of a supervisor with this state folder have set since the host has booted. Only what
// ends the supervisor's work may call it: disable, and the kubelet alone. It returns what was written, and what is left because another
// program has set it. An error is one of reading the state folder, or of limits that could not be written.
func WriteBackLimits(ctx context.Context, stateDir string) (said []string, err error) {
	back, foreign, err := LimitsToWriteBack(ctx, stateDir)
	if err != nil {
		return nil, err
	}
	for _, l := range foreign {
		said = append(said, fmt.Sprintf("%s is %.64s, which no kubelet has set: it is left as it is", l.Limit, l.Value))
	}
	if err := writeBack(ctx, back); err != nil {
		return said, err
	}
	for _, k := range back {
		said = append(said, fmt.Sprintf("%s is %.64s, as it was before a kubelet set it", k.Limit, k.Before))
	}
	return said, nil
}

// LimitsToWriteBack returns the limits that WriteBackLimits would write, and those that another program has changed. It changes nothing.
// Without a state folder there are none, and that is no error.
func LimitsToWriteBack(ctx context.Context, stateDir string) (back []core.KeptLimit, foreign []core.LimitSeen, err error) {
	reader, err := store.Look(stateDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	trial, err := ReadTrial(reader)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, err
	}
	bootID := kubelet.BootID()
	recorded := slices.DeleteFunc(trial.Limits, func(k core.KeptLimit) bool { return bootID == "" || k.BootID != bootID })
	plan := core.PlanLimits(recorded, seeLimits(ctx, nil, recorded), bootID)
	return plan.Back, plan.Foreign, nil
}

var errLimits = errors.New("it sets other limits on the host than the one that runs")

// limitsStay reports whether two kubelets set the same limits, so that nothing has to be done between the end of one and the start of the
// other.
func limitsStay(now, then kubeletconfig.Effective) bool {
	return reflect.DeepEqual(enforcedBy(now), enforcedBy(then))
}
