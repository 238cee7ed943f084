// Command defaults prints, as JSON, the KubeletConfiguration that a kubelet of this module's Kubernetes runs with when its --config
// file says nothing. It is what configz would show, before the kubelet adapts to its node:
//
//	GOWORK=off go run -C test/parts/kubernetes ./defaults >plugin/document/defaults/1.36.json
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"k8s.io/kubelet/config/v1beta1"
	kubelet "k8s.io/kubernetes/pkg/kubelet/apis/config"
	"k8s.io/kubernetes/pkg/kubelet/apis/config/scheme"
	"k8s.io/kubernetes/pkg/kubelet/eviction"
)

func main() {
	if err := printDefaults(); err != nil {
		fmt.Fprintln(os.Stderr, "defaults:", err)
		os.Exit(1)
	}
}

func printDefaults() error {
	types, _, err := scheme.NewSchemeAndCodecs()
	if err != nil {
		return err
	}
	// There and back, as the kubelet does for configz.
	empty, internal, external := &v1beta1.KubeletConfiguration{}, &kubelet.KubeletConfiguration{}, &v1beta1.KubeletConfiguration{}
	types.Default(empty)
	empty.EvictionHard = eviction.DefaultEvictionHard // by loadConfigFile, for it is another on each operating system
	if err := types.Convert(empty, internal, nil); err != nil {
		return err
	}
	if err := types.Convert(internal, external, nil); err != nil {
		return err
	}
	encoder := json.NewEncoder(os.Stdout)
	encoder.SetIndent("", "  ")
	return encoder.Encode(external)
}
