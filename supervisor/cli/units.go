//go:build linux

package cli

import (
	"cmp"
	_ "embed" // the unit files
	"strings"
)

// The settings for systemd. They are the same for the drop-in and for the unit of our own.
var (
	//go:embed units/settings.conf
	unitSettings string
	// unitFallBack starts the kubelet where systemd could not execute the supervisor, by a drop-in that says @SAYS@.
	//go:embed units/fall-back.conf
	unitFallBack string
	//go:embed units/drop-in.conf
	dropInTemplate string
	//go:embed units/kubelet-supervisor.service
	ownUnitTemplate string
)

const (
	unitFolder = "/etc/systemd/system"
	ownUnit    = "kubelet-supervisor.service"
	flagsFile  = "/etc/kubelet-supervisor/flags.env"

	// dropInName sorts behind what others call theirs, override.conf included: the last ExecStart counts.
	dropInName = "zz-kubelet-supervisor.conf"
	// asideFolder has drop-ins that override those of administrators, until the next boot. One of our name there masks our own: systemd
	// could not execute the supervisor. (It is the folder of systemctl set-property --runtime, systemd.unit(5).)
	asideFolder = "/run/systemd/system.control"
	probeFolder = "/run/systemd/system" // of units that last until the next boot
	// ourMark begins every file that enable makes: disable removes no other.
	ourMark = "# Made by kubelet-supervisor enable"
)

// surrounding is what the drop-in says in addition to the command.
type surrounding struct {
	stopPost  []string // the unit's own ExecStopPost=
	runDir    string   // of the supervisor
	runFolder bool     // systemd has to make the run folder, because the unit may not
	ownMode   bool     // the unit has run folders of its own, so that RuntimeDirectoryMode= would change theirs as well
}

// dropIn is the drop-in that makes the executable the parent of what the unit starts. A minus in front of the command is left out: systemd
// passes over a program then that it cannot execute, and no error would show that there is no kubelet.
func dropIn(executable string, command startCommand, s surrounding) string {
	var folder, stopPost string
	if s.runFolder {
		folder = runFolderSettings
		if !s.ownMode { // the supervisor sees to it, too
			folder += runFolderMode
		}
	}
	for _, line := range s.stopPost {
		stopPost += "ExecStopPost=" + line + "\n"
	}
	return strings.NewReplacer("@EXECUTABLE@", executable, "@PREFIX@", strings.ReplaceAll(command.prefix, "-", ""), "@RUNFOLDER@\n", folder,
		"@STOPPOST@\n", stopPost, "@RUNDIR@", cmp.Or(s.runDir, defaultRunDir),
		"@COMMAND@", command.line, "@SOURCE@", command.source).Replace(withSettings(dropInTemplate, unitAlone))
}

// runFolderSettings are for a unit that may not write below /run. Elsewhere the supervisor makes the folder: systemd starts nothing where
// it cannot.
const runFolderSettings = `# The record of which kubelet runs has to outlive the supervisor, or the next one would start a second kubelet.
RuntimeDirectory=kubelet-supervisor
RuntimeDirectoryPreserve=yes
`

// runFolderMode is the mode that the supervisor gives the folder itself.
const runFolderMode = "RuntimeDirectoryMode=0711\n"

// ownUnitFile is the unit for nodes without a kubelet.service.
func ownUnitFile(executable string) string {
	return strings.NewReplacer("@EXECUTABLE@", executable, "@RUNDIR@", defaultRunDir).Replace(withSettings(ownUnitTemplate, ownUnitAlone))
}

// What the drop-in of a unit says that has stepped aside, as a shell command in a unit: the rest is as without enable.
const (
	unitAlone    = `"[Unit]" StartLimitIntervalSec=0 "[Service]" Restart=always RestartSec=1s`
	ownUnitAlone = `"[Service]" Type=simple WatchdogSec=0 ExecStart= "ExecStart=/usr/bin/env \\$${KUBELET} \\$$KUBELET_ARGS"`
)

// withSettings puts in what the drop-in and our own unit share.
func withSettings(template, alone string) string {
	template = strings.NewReplacer("@SETTINGS@\n", unitSettings, "@FALLBACK@\n", unitFallBack).Replace(template)
	return strings.NewReplacer("@ASIDE@", asideFolder, "@NAME@", dropInName, "@SAYS@", alone).Replace(template)
}
