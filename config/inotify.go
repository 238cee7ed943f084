package config

import (
	"encoding/json"
	"strings"
)

// OutOfInotify reports whether a kubelet says with the last error of its log that the node had no inotify instance or
// watch left for it. One that goes on without only warns, in other lines. The words are those of the two system calls
// (cAdvisor's watch of the cgroups), and the same since 1.8; kubernetes issues 58081 and 7815 have them from people's
// nodes.
func OutOfInotify(log []byte) bool {
	last := LastErrorLine(log)
	return strings.Contains(last, "inotify_init") && strings.Contains(last, "too many open files") ||
		strings.Contains(last, "inotify_add_watch") && strings.Contains(last, "no space left on device")
}

// MaxOpenFiles is how many files a kubelet with this command line and this file ("" for none) allows itself to have open, by its drop-in
// files, else the file, else the kubelet's default. A limit that is too low has the same words as a node without an inotify instance.
// The flag is left out: it wins over every file.
func MaxOpenFiles(argv []string, configFile string) int64 {
	merged, _ := mergedTree(ParseArguments(argv), configFile)
	number, _ := merged["maxOpenFiles"].(json.Number)
	if limit, err := number.Int64(); err == nil {
		return limit
	}
	return defaultMaxOpenFiles
}

const defaultMaxOpenFiles = 1_000_000
