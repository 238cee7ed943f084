//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"sigs.k8s.io/yaml"
)

// tell prints the effective configuration as a kubelet of 1.37 does. Only --max-pods and --manifest-url go before the file.
func tell(flags map[string]string, content []byte) {
	if verbosity, _ := strconv.Atoi(flags["v"]); verbosity < 5 {
		return
	}
	tree := map[string]any{"maxPods": 110, "cpuManagerPolicy": "none", "memoryManagerPolicy": "None", "failSwapOn": false}
	if err := yaml.Unmarshal(content, &tree); err != nil {
		return
	}
	if pods, err := strconv.Atoi(flags["max-pods"]); err == nil {
		tree["maxPods"] = pods
	}
	if url, given := flags["manifest-url"]; given {
		tree["staticPodURL"] = url
	}
	document, err := json.MarshalIndent(tree, "", "  ")
	if err != nil {
		return
	}
	header := fmt.Sprintf("I%s %7d server.go:1] ", time.Now().Format("0102 15:04:05.000000"), os.Getpid())
	fmt.Fprintf(os.Stderr, "%s\"Effective KubeletConfiguration\" config=<\n\t%s\n >\n", header, strings.ReplaceAll(string(document), "\n", "\n\t"))
}
