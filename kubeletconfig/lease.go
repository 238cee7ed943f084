package kubeletconfig

import (
	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig/commandline"
)

import (
	"encoding/json"
	"time"
)

// LeaseDuration is how long the Lease of a kubelet with this command line and this file ("" for none) lasts, by its drop-in files, else the
// file; zero where neither says. The kubelet renews it after a quarter of that. The Lease itself does not always tell: kubelets up to
// 1.33 leave the duration of one that is there as it was.
func LeaseDuration(argv []string, configFile string) time.Duration {
	merged, _ := mergedTree(commandline.Parse(argv), configFile)
	number, _ := merged["nodeLeaseDurationSeconds"].(json.Number)
	seconds, err := number.Int64()
	if err != nil || seconds < 0 || seconds > int64(longestLease/time.Second) {
		return 0
	}
	return time.Duration(seconds) * time.Second
}

// longestLease bounds what is believed: more than it would have the loss of a node go unnoticed.
const longestLease = 24 * time.Hour
