package kubeletconfig

import (
	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig/commandline"
)

import "encoding/json"

// MaxOpenFiles is how many files a kubelet with this command line and this file ("" for none) allows itself to have open, by its drop-in
// files, else the file, else the kubelet's default. A limit that is too low has the same words as a node without an inotify instance.
// The flag is left out: it wins over every file.
func MaxOpenFiles(argv []string, configFile string) int64 {
	merged, _ := mergedTree(commandline.Parse(argv), configFile)
	number, _ := merged["maxOpenFiles"].(json.Number)
	if limit, err := number.Int64(); err == nil {
		return limit
	}
	return defaultMaxOpenFiles
}

const defaultMaxOpenFiles = 1_000_000
