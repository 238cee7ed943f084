//go:build linux

package scale

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/cluster"
)

const (
	maxNodes = 2000
	// instancesPerNode is how many inotify instances a supervisor has: local files, the kubeconfig, the kubelet's log.
	instancesPerNode = 3
)

// allow raises this machine's limits as far as so many nodes need. The cluster restores the sysctl when it goes down.
func allow(nodes int) error {
	if err := cluster.AllowInotify(cluster.EnoughInotify + nodes*(instancesPerNode+1)); err != nil {
		return fmt.Errorf("making room for the file watches of %d nodes: %w", nodes, err)
	}
	return nil
}

// mountDisk mounts the nodes' disk below a folder of the cluster, which unmounts it when it goes down.
func mountDisk(folder string) (string, error) {
	folder = filepath.Join(folder, "nodes")
	if err := os.Mkdir(folder, 0o700); err != nil {
		return "", err
	}
	if err := unix.Mount("tmpfs", folder, "tmpfs", 0, "mode=0700"); err != nil {
		return "", fmt.Errorf("mounting a tmpfs for the nodes: %w", err)
	}
	return folder, nil
}
