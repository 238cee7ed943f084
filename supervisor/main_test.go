//go:build linux

package supervisor

import (
	"flag"
	"fmt"
	"os"
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
	if fakeKubelet, err = fakenode.Build(folder); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	// Lives of a fake kubelet wait more than they work.
	if err := flag.Set("test.parallel", "8"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return w.tests.Run()
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(withFakeKubelet{m}) }
