package decide

import (
	"slices"
	"strings"

	"github.com/kubelet-supervisor/kubelet-supervisor/internal/bounded"
)

// maxUnitNames bounds the names of files that have changed, in bytes.
const maxUnitNames = 200

// Unit is what is known of the files that systemd reads again at each start of the supervisor, and no restart of the kubelet does: its unit
// file, drop-ins and environment files. They hold the kubelet's flags and environment. Digests by path.
type Unit struct {
	Started map[string]string // as this supervisor, or the one that handed over to it, saw them first
	Now     map[string]string
}

func (u *Unit) learn(files map[string]string) {
	if u.Now = files; u.Started == nil {
		u.Started = files
	}
}

// changed names the files that were others, or were not there, at the start; empty = none.
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
