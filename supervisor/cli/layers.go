//go:build linux

package cli

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
	"github.com/kubelet-supervisor/kubelet-supervisor/store"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor"
)

// baseOf is what the layers of a checkpoint lie over: the copy of the node's own file with that digest; without one, the file itself.
func baseOf(reader *store.Reader, source corev1.ConfigMapNodeConfigSource, digest string, argv []string,
) func() (kubeletconfig.Base, error) {
	return func() (kubeletconfig.Base, error) {
		if digest == "" {
			return kubeletconfig.ReadBase(argv)
		}
		document, err := reader.Base(source, digest)
		return kubeletconfig.BaseOf(argv, document), err
	}
}

// goodBase is the digest of what the layers of the last known good configuration lie over; empty = it has none.
func goodBase(reader *store.Reader) string {
	trial, err := supervisor.ReadTrial(reader)
	if err != nil {
		return ""
	}
	return trial.GoodBase
}
