//go:build linux

package kubelet

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/fakenode"
)

// fakeKubelet is the path of the fake kubelet, built once.
var fakeKubelet string

type withFakeKubelet struct{ tests *testing.M }

func (w withFakeKubelet) Run() int {
	flag.Parse()
	if flag.Lookup("test.fuzz").Value.String() != "" {
		return w.tests.Run() // of many processes, none of which starts a kubelet
	}
	folder, err := os.MkdirTemp("", "fakekubelet-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(folder)
	if os.Getenv("KUBELET_TEST_PREFLIGHT_OF") != "" {
		return w.tests.Run()
	}
	if fakeKubelet, err = fakenode.Build(folder); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return w.tests.Run()
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(withFakeKubelet{m}) }

// written makes a file in a folder of the test and gives its path.
func written(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	write(t, path, content)
	return path
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// header begins each valid configuration of the tests.
const header = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
