package plugin

import (
	_ "embed"
	"encoding/csv"
	"strings"
	"sync"
)

//go:embed risk.csv
var riskTable string

// A risk says what changing a field does to the node and its pods.
type risk struct {
	class, effect string
	flags         []string // the kubelet flags that win over the field
}

// risks are those of risk.csv by path, such as maxPods or authentication.anonymous.enabled.
var risks = sync.OnceValue(func() map[string]risk {
	reader := csv.NewReader(strings.NewReader(riskTable))
	reader.Comment = '#'
	rows, err := reader.ReadAll()
	if err != nil {
		panic(err) // a test reads the same
	}
	table := map[string]risk{}
	for _, row := range rows[1:] {
		table[row[0]] = risk{class: row[1], effect: row[2], flags: strings.Fields(row[3])}
	}
	return table
})

// riskOf gives the risk of the field with this path, or of the nearest one that it is in.
func riskOf(path string) (risk, bool) {
	for {
		if found, is := risks()[path]; is {
			return found, true
		}
		dot := strings.LastIndexByte(path, '.')
		if dot < 0 {
			return risk{}, false
		}
		path = path[:dot]
	}
}

// harmless tells whether running pods and the node do not notice.
func (r risk) harmless() bool { return r.class == "safe" || r.class == "inert" }
