//go:build linux

package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor"
)

// sandboxProperties are those of a unit that change what its processes may do, as far as the supervisor's own files are concerned.
var sandboxProperties = []string{"User", "DynamicUser", "RootDirectory", "RootImage", "ProtectSystem", "ProtectHome", "ReadWritePaths",
	"ReadOnlyPaths",
	"InaccessiblePaths", "TemporaryFileSystem", "StateDirectory", "RuntimeDirectory", "CacheDirectory", "LogsDirectory"}

// access is what a unit may do with a folder.
type access int

const (
	writes access = iota
	reads
	nothing
)

// pathRule is what the unit's sandbox says of a path and what is below it. Of several rules the one with the longest path counts.
type pathRule struct {
	path   string
	access access
	by     string // the setting
}

// checkUnit finds what would keep the supervisor from working in this unit.
func (i installation) checkUnit(state unitState, command startCommand) error {
	o := i.options()
	if err := i.checkSandbox(state, o); err != nil {
		return err
	}
	if flags, known := i.kubeletFlags(state, command); known {
		i.warnNoKubeconfig(flags, o.Kubeconfig)
	}
	return nil
}

// options are those of the supervisor that the unit starts.
func (u unitFiles) options() supervisor.Options {
	var o runOptions
	_ = o.command().Flags().Parse(supervisorWords(u.flagsFile)) // what cannot be parsed has started no supervisor
	return o.Options
}

// checkUnitFolder asks what the real run will meet when it writes.
func (i installation) checkUnitFolder(path string) error {
	if err := i.checkFolder(filepath.Dir(path)); err != nil {
		return fmt.Errorf("%s cannot be written: %w; where the units of a host are made elsewhere, as on NixOS or in an image, have %s made "+
			"there (docs/howto/images.md)", path, err, filepath.Base(path))
	}
	return nil
}

// checkFolder is checkWritable, also for a dry run of a user who is not root.
func (i installation) checkFolder(folder string) error {
	err := checkWritable(folder)
	if errors.Is(err, fs.ErrPermission) && os.Geteuid() != 0 {
		i.say("Not checked:        whether %s can be written, because that takes root", folder)
		return nil
	}
	return err
}

// checkSandbox finds what the unit's own sandbox would keep the supervisor from: it has to be root, to see its program and to write its
// folders.
func (u unitFiles) checkSandbox(state unitState, o supervisor.Options) error {
	if user := state.value("User"); user != "" && user != "root" && user != "0" {
		return fmt.Errorf("%s has User=%s, and the supervisor has to be root: it keeps its state where only root may write; run the kubelet "+
			"as root, or leave this node as it is", u.unit, user)
	}
	if state.value("DynamicUser") == "yes" {
		return fmt.Errorf("%s has DynamicUser=yes, and the supervisor has to be root", u.unit)
	}
	for _, name := range []string{"RootDirectory", "RootImage"} {
		if root := state.value(name); root != "" && root != "/" {
			return fmt.Errorf("%s has %s=%s: its processes have a file system of their own, in which the supervisor's program and folders are not",
				u.unit, name, root)
		}
	}
	rules := pathRules(state)
	if rule := ruleFor(rules, u.executable); rule.access == nothing {
		return fmt.Errorf("%s has %s, so that systemd could not start %s there; put the program elsewhere, /usr/bin for example", u.unit, rule.by,
			u.executable)
	}
	for _, f := range []struct{ flag, folder string }{{"--state-dir", o.StateDir}, {"--run-dir", o.RunDir}} {
		if f.folder == defaultRunDir {
			continue // RuntimeDirectory= of the drop-in makes it, and lets the unit write it
		}
		if rule := ruleFor(rules, f.folder); rule.access != writes {
			return fmt.Errorf("%s has %s, so that the supervisor could not write %s (%s); add ReadWritePaths=%s to a drop-in file of your own, "+
				"and make that folder", u.unit, rule.by, f.folder, f.flag, f.folder)
		}
	}
	return nil
}

// pathRules are those of systemd.exec(5), "Sandboxing" and "Paths".
func pathRules(state unitState) (rules []pathRule) {
	add := func(access access, by string, paths ...string) {
		for _, path := range paths {
			path, _, _ = strings.Cut(strings.TrimLeft(path, "-+"), ":")
			rules = append(rules, pathRule{filepath.Clean(path), access, by})
		}
	}
	protect := state.value("ProtectSystem")
	by := "ProtectSystem=" + protect
	switch protect {
	case "yes", "true":
		add(reads, by, "/usr", "/boot", "/efi")
	case "full":
		add(reads, by, "/usr", "/boot", "/efi", "/etc")
	case "strict":
		add(reads, by, "/")
		add(writes, by, "/dev", "/proc", "/sys")
	}
	home := state.value("ProtectHome")
	switch home {
	case "read-only":
		add(reads, "ProtectHome="+home, "/home", "/root", "/run/user")
	case "yes", "true", "tmpfs":
		add(nothing, "ProtectHome="+home, "/home", "/root", "/run/user")
	}
	for name, parent := range map[string]string{"StateDirectory": "/var/lib", "RuntimeDirectory": "/run", "CacheDirectory": "/var/cache",
		"LogsDirectory": "/var/log"} {
		for _, folder := range strings.Fields(state.value(name)) {
			add(writes, name+"="+folder, filepath.Join(parent, folder))
		}
	}
	for _, list := range []struct {
		name   string
		access access
	}{{"ReadWritePaths", writes}, {"ReadOnlyPaths", reads}, {"InaccessiblePaths", nothing}, {"TemporaryFileSystem", nothing}} {
		for _, path := range strings.Fields(state.value(list.name)) {
			add(list.access, list.name+"="+path, path)
		}
	}
	return rules
}

// ruleFor returns the rule that counts for a path; without one all is allowed.
func ruleFor(rules []pathRule, path string) (counts pathRule) {
	for _, rule := range rules {
		below := rule.path == "/" || path == rule.path || strings.HasPrefix(path, rule.path+"/")
		if below && (len(rule.path) > len(counts.path) || len(rule.path) == len(counts.path) && rule.access > counts.access) {
			counts = rule
		}
	}
	return counts
}
