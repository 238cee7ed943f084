//go:build linux

package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The supervisor's flags are those that systemd starts it with.
func TestFlagsInQuotes(t *testing.T) {
	for file, want := range map[string][]string{
		`--a --b=1`:         {"--a", "--b=1"},
		`"--a --b=1"`:       {"--a", "--b=1"},
		`'--a --b=1'  `:     {"--a", "--b=1"},
		`"--a='b c' --d"`:   {"--a=b c", "--d"},
		`'--a="b c" --d'`:   {"--a=b c", "--d"},
		`"--a=\"b c\" --d"`: {"--a=b c", "--d"},
		`--a='b c' --d`:     {"--a=b c", "--d"},
		`--a="b  c"`:        {"--a=b  c"},
		`"--a='b"  "c'"`:    {"--a=bc"},
		`--a=b\ c`:          {"--a=b", "c"},
		`'--a=b\ c'`:        {"--a=b c"},
		`"--a=\n"`:          {"--a=n"},
		`--a="b`:            {`--a="b`}, // enable refuses it
		``:                  nil,
		`""`:                nil,
	} {
		path := written(t, filepath.Join(t.TempDir(), "flags.env"), "KUBELET_SUPERVISOR_ARGS="+file+"\n")
		if got := supervisorWords(path); !slices.Equal(got, want) {
			t.Errorf("%s gives %q, want %q", file, got, want)
		}
	}
}

// A unit is named as systemctl would take it.
func TestNamesOfUnits(t *testing.T) {
	for name, want := range map[string]string{
		"kubelet": "kubelet.service", "kubelet.service": "kubelet.service", `my\x2dkubelet`: `my\x2dkubelet.service`,
		"kubelet.old": "kubelet.old.service", "kubelet.socket": "kubelet.socket", "kubelet@1": "kubelet@1.service",
	} {
		command := newEnable()
		if err := command.ParseFlags([]string{"--unit=" + name}); err != nil {
			t.Fatal(err)
		}
		if got := command.Flag("unit").Value.String(); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
	if without := newDisable().Flag("unit"); without.DefValue != kubeletUnit || without.Value.String() != kubeletUnit {
		t.Errorf("without the flag: %s, %s", without.DefValue, without.Value)
	}
}

// systemctl show quotes what a shell would not take as it is.
func TestDropInPathsInQuotes(t *testing.T) {
	h := newHost(t)
	written(t, h.folder+"/units/x.service", `DropInPaths="/etc/my\\x2dkubelet.service.d/a.conf" /etc/b.conf`+"\n")
	state, err := showUnit(t.Context(), "x.service")
	if want := []string{`/etc/my\x2dkubelet.service.d/a.conf`, "/etc/b.conf"}; err != nil || !slices.Equal(state.DropInPaths, want) {
		t.Errorf("%v, %q", err, state.DropInPaths)
	}
}

// A second supervisor in the folders of the first is refused, except in the place of our own unit's.
func TestASecondSupervisorInTheSameFolders(t *testing.T) {
	for name, test := range map[string]struct{ unit, pid, of, want string }{
		"of another unit":                  {"other.service", "PID", kubeletUnit, "the supervisor of other.service runs"},
		"of another unit, which runs none": {"other.service", "1", kubeletUnit, ""},
		"of our own unit":                  {ownUnit, "PID", kubeletUnit, ""},
		"of our own unit, which conflicts with kubelet.service alone": {ownUnit, "PID", "agent.service", "the supervisor of kubelet-supervisor.service runs"},
		"of this unit": {kubeletUnit, "PID", kubeletUnit, ""},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			record, err := os.ReadFile(h.folder + "/record")
			if err != nil {
				t.Fatal(err)
			}
			written(t, h.folder+"/run/state.json", string(record))
			h.installation.unit = test.of
			other := h.installation
			other.unit = test.unit
			path := other.dropInPath()
			if test.unit == ownUnit {
				path = filepath.Join(h.installation.folder, ownUnit)
			}
			written(t, path, ourMark+"\n")
			written(t, filepath.Join(h.folder, "units", test.unit), "LoadState=loaded\nMainPID="+strings.ReplaceAll(test.pid, "PID", strconv.Itoa(os.Getpid()))+"\n")
			err = h.checkNoOtherSupervisor(t.Context())
			if (err != nil) != (test.want != "") || err != nil && !strings.HasPrefix(err.Error(), test.want) {
				t.Errorf("%v, want %s", err, test.want)
			}
		})
	}
}
