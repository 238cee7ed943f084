// Command slowkubelet stands in front of a kubelet, as on a machine that is too busy: SLOW_KUBELET is the kubelet's path, and SLOW_KUBELET_TIME
// how long each pre-flight takes before it begins. Whatever else it is asked to do begins at once.
package main

import (
	"fmt"
	"os"
	"slices"
	"syscall"
	"time"
)

func main() {
	if slices.Contains(os.Args, "--lock-file=") {
		slow, err := time.ParseDuration(os.Getenv("SLOW_KUBELET_TIME"))
		if err != nil {
			fail(err)
		}
		time.Sleep(slow)
	}
	kubelet := os.Getenv("SLOW_KUBELET")
	fail(syscall.Exec(kubelet, append([]string{kubelet}, os.Args[1:]...), os.Environ()))
}

func fail(err error) {
	_, _ = fmt.Fprintln(os.Stderr, "slowkubelet:", err)
	os.Exit(1)
}
