package kubeletconfig

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// All but the JSON are real lines, of the versions that they name.
func TestGoingAway(t *testing.T) {
	for name, test := range map[string]struct {
		output string
		want   []string
	}{
		"1.24": {"W1122 07:52:10.214325    4242 feature_gate.go:237] Setting GA feature gate DynamicKubeletConfigs=false. It will be removed in a future release.\n",
			[]string{"featureGates.DynamicKubeletConfigs goes away in a later version: it is GA"}},
		"1.36, twice": {`I1122 07:52:10.214325    4242 feature_gate.go:444] "Warning: setting GA feature gate. It will be removed in a future release." featureGate="CPUManager" value=true` + "\n" +
			`I1122 07:52:10.215325    4242 feature_gate.go:444] "Warning: setting GA feature gate. It will be removed in a future release." featureGate="CPUManager" value=true` + "\n" +
			`I1122 07:52:10.216325    4242 feature_gate.go:442] "Warning: setting deprecated feature gate. It will be removed in a future release." featureGate="Old" value=true` + "\n",
			[]string{"featureGates.CPUManager goes away in a later version: it is GA", "featureGates.Old goes away in a later version: it is deprecated"}},
		"JSON": {`{"ts":1763797930214.3,"caller":"featuregate/feature_gate.go:444","msg":"Warning: setting GA feature gate. It will be removed in a future release.","v":0,"featureGate":"CPUManager","value":true}` + "\n",
			[]string{"featureGates.CPUManager goes away in a later version: it is GA"}},
		"flags": {"Flag --max-pods has been deprecated, This parameter should be set via the config file specified by the Kubelet's --config flag. See https://kubernetes.io/docs/tasks/administer-cluster/kubelet-config-file/ for more information.\n" +
			"Flag --maximum-dead-containers has been deprecated, Use --eviction-hard or --eviction-soft instead. Will be removed in a future version.\r\n" +
			"Flag --experimental-mounter-path has been deprecated, will be removed in 1.25 or later. in favor of using CSI.\n",
			[]string{"--experimental-mounter-path goes away in a later version: will be removed in 1.25 or later. in favor of using CSI.",
				"--maximum-dead-containers goes away in a later version: Use --eviction-hard or --eviction-soft instead. Will be removed in a future version."}},
		"other lines": {"It will be removed in a future release.\nI1122 server.go:1] \"Starting\" featureGate=\"X\"\n", nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, GoingAway([]byte(test.output))); diff != "" {
				t.Error(diff)
			}
		})
	}
}
