package kubeletconfig

import (
	"bytes"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"go.yaml.in/yaml/v2"
)

// What the decoder finds behind the first document is told.
func FuzzSecondDocument(f *testing.F) {
	f.Add([]byte(header + "---\nmaxPods: 1\n"))
	f.Add([]byte("--- {a: b}\r\n... # c\r%YAML 1.1\n---\tc: |\n ---\n"))
	f.Fuzz(func(t *testing.T, document []byte) {
		line := secondDocument(document)
		if isJSON(document) || len(document) > 1<<12 || bytes.ContainsAny(document, "*&") {
			return
		}
		decoder := yaml.NewDecoder(bytes.NewReader(document))
		var first, second any
		if decoder.Decode(&first) == nil && first != nil && decoder.Decode(&second) == nil && second != nil && line == 0 {
			t.Errorf("%q has a second document: %v", document, second)
		}
	})
}

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
