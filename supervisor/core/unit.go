package core

import (
	"slices"
	"strings"

	"github.com/kubelet-supervisor/kubelet-supervisor/internal/bounded"
)

// maxUnitNames bounds the names of files that have changed, in bytes.
const maxUnitNames = 200

// maxRefusal bounds what systemd has against the next start, in bytes.
const maxRefusal = 400

// Unit is what is known of the files that systemd reads again at each start of the supervisor, and no restart of the kubelet does: its unit
// file, drop-ins and environment files. They hold the kubelet's flags and environment. Digests by path.
type Unit struct {
	Started map[string]string // as this supervisor, or the one that handed over to it, saw them first
	Now     map[string]string
	Refuse  string // what systemd has against its next start; empty = nothing that is known
}

func (u *Unit) learn(e UnitSeen) {
	if u.Now, u.Refuse = e.Files, bounded.Text(e.Refuse, maxRefusal); u.Started == nil {
		u.Started = e.Files
	}
}

// changed returns the names of the files that have changed or appeared since the start; empty = none.
func (u *Unit) changed() string {
	var names []string
	for _, files := range []map[string]string{u.Started, u.Now} {
		for name := range files {
			if was, is := u.Started[name], u.Now[name]; was != is {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return bounded.Text(strings.Join(slices.Compact(names), ", "), maxUnitNames)
}
