//go:build linux

package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// ownAndKubelets is a node on which our own unit runs the kubelet, and which got a kubelet.service since.
func (h *host) ownAndKubelets(own string) {
	h.Helper()
	h.kubelet("inactive")
	path := written(h.T, filepath.Join(h.installation.folder, ownUnit), ourMark+".\n"+ownUnitFile("/usr/bin/kubelet-supervisor"))
	written(h.T, h.folder+"/units/"+ownUnit, "LoadState=loaded\nUnitFileState=enabled\nFragmentPath="+path+"\nActiveState="+own+"\n")
}

// property adds one to what systemd says of the kubelet's unit, now and after a daemon-reload.
func (h *host) property(line string) {
	h.Helper()
	for _, folder := range []string{"units", "loaded"} {
		path := filepath.Join(h.folder, folder, kubeletUnit)
		before, err := os.ReadFile(path)
		if err != nil {
			h.Fatal(err)
		}
		written(h.T, path, string(before)+line+"\n")
	}
}

// Of two units with the supervisor systemd would start our own at boot, with the command line of flags.env.
func TestTheUnitTakenOverStartsInThePlaceOfOurOwn(t *testing.T) {
	const retired = "disable --now " + ownUnit + ", daemon-reload"
	for name, test := range map[string]struct {
		own, unit    string // ActiveState, and what systemd says of kubelet.service
		now, dryRun  bool
		prepare      func(h *host)
		changes      string
		says         string
		refused, has bool
	}{
		"started now":                       {own: "active", unit: "UnitFileState=enabled", now: true, changes: "daemon-reload, start kubelet.service, " + retired, says: "Removed:"},
		"started later":                     {own: "active", unit: "UnitFileState=enabled", changes: "daemon-reload, disable " + ownUnit, says: "until kubelet.service is started", has: true},
		"started later, and ours has ended": {own: "inactive", unit: "UnitFileState=enabled", changes: "daemon-reload, disable " + ownUnit + ", daemon-reload", says: "Removed:"},
		"a unit that nobody has enabled":    {own: "active", unit: "UnitFileState=disabled", now: true, changes: "daemon-reload, start kubelet.service, enable kubelet.service", says: "Not disabled:", has: true},
		"one that another unit wants":       {own: "active", unit: "UnitFileState=static\nWantedBy=node.target", now: true, changes: "daemon-reload, start kubelet.service, " + retired, says: "Disabled:"},
		"one for this boot only":            {own: "active", unit: "UnitFileState=enabled-runtime\nWantedBy=multi-user.target", changes: "daemon-reload, enable kubelet.service", says: "Not disabled:", has: true},
		"only asked":                        {own: "active", unit: "UnitFileState=disabled", now: true, dryRun: true, says: "Would do:           systemctl enable kubelet.service\nWould do:           systemctl disable " + ownUnit, has: true},
		"a start that fails": {own: "active", unit: "UnitFileState=enabled", now: true, prepare: func(h *host) { written(h.T, h.folder+"/start-fails", "") },
			changes: "daemon-reload, start kubelet.service, daemon-reload, start " + ownUnit, says: "Undoing:", refused: true, has: true},
		"a kubelet that would refuse its configuration": {own: "active", unit: "UnitFileState=enabled", prepare: func(h *host) {
			written(h.T, h.folder+"/probe", "ExecMainCode=1\nExecMainStatus=3\nResult=exit-code\n")
			written(h.T, h.folder+"/probe-says", "bad\n")
		}, refused: true, has: true},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			h.ownAndKubelets(test.own)
			h.property(test.unit)
			h.dryRun = test.dryRun
			if test.prepare != nil {
				test.prepare(h)
			}
			err := h.enable(t.Context(), test.now)
			if (err != nil) != test.refused || h.changes() != test.changes || !strings.Contains(h.out.String(), test.says) {
				t.Errorf("%v; did %s, said %s", err, h.changes(), h.out.String())
			}
			if has := h.has(filepath.Join(h.installation.folder, ownUnit)); has != test.has {
				t.Errorf("our own unit is there: %v", has)
			}
			if err != nil || test.dryRun {
				return
			}
			before := h.changes()
			written(t, h.folder+"/units/"+ownUnit, "LoadState=not-found\n")
			if err := h.enable(t.Context(), false); err != nil || h.changes() != before {
				t.Errorf("again: %v; did %s", err, h.changes())
			}
		})
	}
}
