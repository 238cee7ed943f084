package main

import (
	_ "embed" // the unit files
	"strings"
)

// What systemd is told. The settings are the same for the drop-in and for the unit of our own.
var (
	//go:embed units/settings.conf
	unitSettings string
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
	// asideFolder has drop-ins that override those of administrators, until the next boot. One of our name there masks our own: systemd could
	// not execute the supervisor. (It is the folder of systemctl set-property --runtime, systemd.unit(5).)
	asideFolder = "/run/systemd/system.control"
	probeFolder = "/run/systemd/system" // of units that last until the next boot
	// ourMark begins every file that enable makes: disable removes no other.
	ourMark = "# Made by kubelet-supervisor enable"
)

// dropIn is the drop-in that makes the executable the parent of what the unit starts.
func dropIn(executable string, command startCommand) string {
	return strings.NewReplacer("@EXECUTABLE@", executable, "@PREFIX@", command.prefix,
		"@COMMAND@", command.line, "@SOURCE@", command.source).Replace(withSettings(dropInTemplate))
}

// ownUnitFile is the unit for nodes without a kubelet.service.
func ownUnitFile(executable string) string {
	return strings.ReplaceAll(withSettings(ownUnitTemplate), "@EXECUTABLE@", executable)
}

func withSettings(template string) string {
	return strings.NewReplacer("@SETTINGS@\n", unitSettings, "@ASIDE@", asideFolder, "@NAME@", dropInName).Replace(template)
}
