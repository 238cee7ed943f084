package config

import (
	"net/netip"
	"os"
	"path/filepath"
	"testing"
)

// Local files are read before every start, and whatever is in them a kubelet is started.
func FuzzEffectiveEndpoints(f *testing.F) {
	f.Add([]byte(header+"healthzPort: 0\n"), []byte("healthzPort: null\n"))
	f.Add([]byte(`{"healthzPort":1e2,"healthzBindAddress":"::"}`), []byte("healthzPort: 9999999999999999999\ncontainerRuntimeEndpoint: [a]\n"))
	f.Fuzz(func(t *testing.T, file, dropIn []byte) {
		folder := t.TempDir()
		path := filepath.Join(folder, "kubelet.yaml")
		for path, content := range map[string][]byte{path: file, filepath.Join(folder, "a.conf"): dropIn} {
			if err := os.WriteFile(path, content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		argv := []string{"--config=" + path, "--config-dir=" + folder}
		endpoints := EffectiveEndpoints(argv, path)
		if address, err := netip.ParseAddrPort(endpoints.HealthzAddress); (err == nil && !address.Addr().IsUnspecified()) == endpoints.ReadinessByNotify {
			t.Errorf("healthz is asked at %q, READY=1 counts: %v", endpoints.HealthzAddress, endpoints.ReadinessByNotify)
		}
		LocalGates(argv)
		LocalContent(argv)
	})
}
