//go:build linux

package supervisor

import "github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig/commandline"

// inputs are what the supervisor was started with. All its parts share them; nothing changes them once they are at work.
type inputs struct {
	Options
	arguments commandline.Arguments    // the kubelet's
	swaps     func() ([]string, error) // what the host swaps to; nil = [host.Swaps]
}

func (in *inputs) kubeconfig() string {
	if in.Kubeconfig != "" {
		return in.Kubeconfig
	}
	return in.arguments.Kubeconfig
}
