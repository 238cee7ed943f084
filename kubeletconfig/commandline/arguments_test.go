package commandline

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseArguments(t *testing.T) {
	port := func(n int) *int { return &n }
	cwd, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		argv []string
		want Arguments
	}{
		"nothing given": {nil, Arguments{}},
		"one word each": {
			[]string{"--config=/etc/k.yaml", "--config-dir=/etc/k.d", "--kubeconfig=/k", "--bootstrap-kubeconfig=/b", "--hostname-override=n1",
				"--healthz-bind-address=::", "--healthz-port=0", "--container-runtime-endpoint=unix:///run/crio/crio.sock"},
			Arguments{Config: "/etc/k.yaml", ConfigDir: "/etc/k.d", Kubeconfig: "/k", BootstrapKubeconfig: "/b", HostnameOverride: "n1",
				HealthzBindAddress: "::", HealthzPort: port(0), ContainerRuntimeEndpoint: "unix:///run/crio/crio.sock"},
		},
		"two words each":                       {[]string{"--config", "/a", "--hostname-override", "n1"}, Arguments{Config: "/a", HostnameOverride: "n1"}},
		"the second word can look like a flag": {[]string{"--config", "--kubeconfig=/k"}, Arguments{Config: filepath.Join(cwd, "--kubeconfig=/k")}},
		"underscores":                          {[]string{"--container_runtime_endpoint=unix:///a_b", "--config_dir", "/d"}, Arguments{ContainerRuntimeEndpoint: "unix:///a_b", ConfigDir: "/d"}},
		"the last wins":                        {[]string{"--config=/a", "--healthz-port=1", "--config", "/b", "--healthz-port", "2"}, Arguments{Config: "/b", HealthzPort: port(2)}},
		"an empty one takes it back":           {[]string{"--config=/a", "--config="}, Arguments{}},
		"relative paths":                       {[]string{"--config=k.yaml", "--kubeconfig", "../k"}, Arguments{Config: filepath.Join(cwd, "k.yaml"), Kubeconfig: filepath.Join(filepath.Dir(cwd), "k")}},
		"others pass by":                       {[]string{"--v=4", "--fail-swap-on", "--config=/a", "--provider-id", "/r", "-v", "2", "word", "--config-dirs=/no", "-config=/no"}, Arguments{Config: "/a"}},
		"nothing behind a bare --":             {[]string{"--config=/a", "--", "--config=/b"}, Arguments{Config: "/a"}},
		"the second word is missing":           {[]string{"--config=/a", "--config"}, Arguments{Config: "/a"}},
		"not a port":                           {[]string{"--healthz-port=http"}, Arguments{}},
		"gates add up, the last wins":          {[]string{"--feature-gates=A=true,B=false", "--feature_gates", " B=true , C=0"}, Arguments{FeatureGates: map[string]bool{"A": true, "B": true, "C": false}}},
		"gates that are none":                  {[]string{"--feature-gates=A,=true,B=perhaps,"}, Arguments{}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, Parse(test.argv)); diff != "" {
				t.Errorf("ParseArguments(%q) (-want +got):\n%s", test.argv, diff)
			}
		})
	}
}

func FuzzParseArguments(f *testing.F) {
	f.Add("--config", "--config=/a", "--feature_gates=A=true,,=")
	f.Add("--", "--healthz-port", "99999999999999999999")
	f.Fuzz(func(t *testing.T, first, second, third string) {
		// The word before the last is there to be swallowed by a flag in want of a value.
		arguments := Parse([]string{first, second, third, "--v=0", "--config=/last"})
		if first != "--" && second != "--" && third != "--" && arguments.Config != "/last" {
			t.Errorf("--config=/last behind %q %q %q is lost: %+v", first, second, third, arguments)
		}
	})
}
