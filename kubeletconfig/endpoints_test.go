package kubeletconfig

import (
	"path/filepath"
	"testing"
)

func TestEffectiveEndpoints(t *testing.T) {
	const runtime = "unix:///run/containerd/containerd.sock"
	for name, test := range map[string]struct {
		argv    []string
		file    string            // "" is none
		dropIns map[string]string // name to content
		want    Endpoints
	}{
		"defaults":                  {nil, "", nil, Endpoints{HealthzAddress: "127.0.0.1:10248", Runtime: runtime}},
		"a file":                    {nil, "healthzPort: 1\nhealthzBindAddress: 10.0.0.1\ncontainerRuntimeEndpoint: unix:///c", nil, Endpoints{HealthzAddress: "10.0.0.1:1", Runtime: "unix:///c"}},
		"a JSON file":               {nil, `{"healthzPort": 2}`, nil, Endpoints{HealthzAddress: "127.0.0.1:2", Runtime: runtime}},
		"a drop-in beats the file":  {nil, "healthzPort: 1", map[string]string{"a.conf": "healthzPort: 2"}, Endpoints{HealthzAddress: "127.0.0.1:2", Runtime: runtime}},
		"the last drop-in wins":     {nil, "", map[string]string{"b.conf": "healthzPort: 3", "a.conf": "healthzPort: 2", "z.yaml": "healthzPort: 4"}, Endpoints{HealthzAddress: "127.0.0.1:3", Runtime: runtime}},
		"a drop-in's null deletes":  {nil, "healthzPort: 1\ncontainerRuntimeEndpoint: unix:///c", map[string]string{"a.conf": "healthzPort: null"}, Endpoints{HealthzAddress: "127.0.0.1:10248", Runtime: "unix:///c"}},
		"flags beat all":            {[]string{"--healthz-port=9", "--healthz-bind-address", "10.0.0.9", "--container-runtime-endpoint=unix:///f"}, "healthzPort: 1", map[string]string{"a.conf": "healthzPort: 2\ncontainerRuntimeEndpoint: unix:///d"}, Endpoints{HealthzAddress: "10.0.0.9:9", Runtime: "unix:///f"}},
		"IPv4 wildcard":             {nil, "healthzBindAddress: 0.0.0.0", nil, Endpoints{HealthzAddress: "127.0.0.1:10248", Runtime: runtime}},
		"IPv6 wildcard":             {nil, `healthzBindAddress: "::"`, nil, Endpoints{HealthzAddress: "[::1]:10248", Runtime: runtime}},
		"IPv6":                      {[]string{"--healthz-bind-address=fd00::1"}, "", nil, Endpoints{HealthzAddress: "[fd00::1]:10248", Runtime: runtime}},
		"port 0 in the file":        {nil, "healthzPort: 0", nil, Endpoints{Runtime: runtime, ReadinessByNotify: true}},
		"port 0 by flag":            {[]string{"--healthz-port=0"}, "healthzPort: 1", nil, Endpoints{Runtime: runtime, ReadinessByNotify: true}},
		"a flag turns it on again":  {[]string{"--healthz-port=5"}, "healthzPort: 0", nil, Endpoints{HealthzAddress: "127.0.0.1:5", Runtime: runtime}},
		"wrong types are as absent": {nil, "healthzPort: \"1\"\nhealthzBindAddress: 7\ncontainerRuntimeEndpoint: [a]", nil, Endpoints{HealthzAddress: "127.0.0.1:10248", Runtime: runtime}},
		"no address, no number":     {nil, "healthzPort: 1.5\nhealthzBindAddress: localhost", nil, Endpoints{HealthzAddress: "127.0.0.1:10248", Runtime: runtime}},
		"broken files are absent":   {nil, "healthzPort: [", map[string]string{"a.conf": "{", "b.conf": "healthzPort: 2"}, Endpoints{HealthzAddress: "127.0.0.1:2"}},
		"a broken drop-in":          {[]string{"--container-runtime-endpoint=unix:///f"}, "healthzPort: 1", map[string]string{"a.conf": "{"}, Endpoints{HealthzAddress: "127.0.0.1:1"}},
		"an empty file":             {nil, "\n", nil, Endpoints{HealthzAddress: "127.0.0.1:10248"}},
	} {
		t.Run(name, func(t *testing.T) {
			file, argv := "", test.argv
			if test.file != "" {
				file = written(t, "kubelet.yaml", test.file)
			}
			if test.dropIns != nil {
				folder := t.TempDir()
				for name, content := range test.dropIns {
					write(t, filepath.Join(folder, name), content)
				}
				argv = append([]string{"--config-dir=" + folder}, argv...)
			}
			if got := EffectiveEndpoints(argv, file); got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
	absent := filepath.Join(t.TempDir(), "none")
	if got := EffectiveEndpoints([]string{"--config-dir=" + absent}, absent); got.HealthzAddress != "127.0.0.1:10248" || got.Runtime != "" {
		t.Errorf("with absent files: %+v", got)
	}
}
