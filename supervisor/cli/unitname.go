//go:build linux

package cli

import (
	"fmt"
	"regexp"
	"strings"
)

// unitName is a flag with the name of a unit: one without a type is a service, as systemctl has it.
type unitName string

func (n *unitName) String() string { return string(*n) }
func (*unitName) Type() string     { return "string" }

func (n *unitName) Set(name string) error {
	if !unitTypes.MatchString(name) {
		name += ".service"
	}
	*n = unitName(name)
	return nil
}

var unitTypes = regexp.MustCompile(`\.(service|socket|target|device|mount|automount|swap|timer|path|slice|scope)$`)

// checkExecutable refuses a path that means something else in a unit: blanks and quotes part words, and the others are expanded.
func (u unitFiles) checkExecutable() error {
	if strings.ContainsAny(u.executable, " \t\n\r\"'\\%$") {
		return fmt.Errorf("the program's path is %q, which a unit cannot name: move the program, or call it by a link to it, such as "+
			"/usr/local/bin/kubelet-supervisor", u.executable)
	}
	return nil
}
