package cli

import (
	"bytes"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
)

// Words that make no sense end with 2 and a sentence, before anything is begun.
func TestUsage(t *testing.T) {
	for words, want := range map[string]string{
		"--nothing":        "unknown flag: --nothing",
		"run":              `unknown argument "run"`,
		"--log-format=xml": `--log-format="xml" is not one of text, json`,
		"--namespace=":     "--namespace is empty",
		"--metrics-address=8443 --metrics-self-signed": `--metrics-address="8443" is no HOST:PORT`,
		"--metrics-address=:8443":                      "--metrics-address=:8443 needs a certificate: give its folder with --metrics-cert-dir, or --metrics-self-signed",
		"--metrics-cert-dir=/x --metrics-self-signed":  "--metrics-cert-dir and --metrics-self-signed name two certificates",
		"--health-address=:http":                       `--health-address=":http" is no HOST:PORT`,
		"--health-address=":                            `--health-address="" is no HOST:PORT`,
		"--kubeconfig=/nowhere/at/all":                 "reading the credentials (--kubeconfig)",
	} {
		var stdout, stderr bytes.Buffer
		code := Execute("v0.0.0-test", strings.Fields(words), &stdout, &stderr)
		if !strings.Contains(stderr.String(), want) || code != exitUsage && !strings.HasPrefix(words, "--kubeconfig") {
			t.Errorf("%s: exit code %d, %q", words, code, stderr.String())
		}
	}
}

// Where an address is in use it ends, and says which.
func TestAnAddressInUse(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	text := "apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}]\ncontexts: [{name: x, context: {cluster: c}}]\ncurrent-context: x\n"
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	code := Execute("v0.0.0-test", []string{"--kubeconfig=" + kubeconfig, "--metrics-address=0", "--health-address=" + taken.Addr().String()}, &stdout, &stderr)
	if words := stderr.String(); code != exitInternal || !strings.Contains(words, taken.Addr().String()) || !strings.Contains(words, "in use") {
		t.Errorf("exit code %d, %q", code, words)
	}
}

// A profile of memory that nobody can ask for grew by a MiB in an hour.
func TestKeepsNoProfileOfMemory(t *testing.T) {
	defer func(rate int) { runtime.MemProfileRate = rate }(runtime.MemProfileRate)
	runtime.MemProfileRate = 512 << 10
	var stdout, stderr bytes.Buffer
	Execute("v0.0.0-test", []string{"--version"}, &stdout, &stderr)
	if runtime.MemProfileRate != 0 {
		t.Errorf("every %d bytes an allocation is remembered", runtime.MemProfileRate)
	}
}

// It takes little memory, unless the environment says otherwise.
func TestCollectsEarly(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	for set, want := range map[string]int{"": gcPercent, "200": 100} {
		t.Setenv("GOGC", set)
		debug.SetGCPercent(100)
		var stdout, stderr bytes.Buffer
		Execute("v0.0.0-test", []string{"--version"}, &stdout, &stderr)
		if got := debug.SetGCPercent(100); got != want {
			t.Errorf("with GOGC=%q it is %d, not %d", set, got, want)
		}
	}
}

// Its flags are a contract.
func TestFlags(t *testing.T) {
	var stdout, stderr bytes.Buffer
	if code := Execute("v0.0.0-test", []string{"--help"}, &stdout, &stderr); code != exitOK {
		t.Fatal(stderr.String())
	}
	for _, flag := range []string{"--kubeconfig", "--namespace", "--leader-elect", "--metrics-address", "--metrics-cert-dir", "--metrics-self-signed", "--health-address", "--log-format"} {
		if !strings.Contains(stdout.String(), flag+" ") {
			t.Errorf("there is no %s", flag)
		}
	}
	stdout.Reset()
	if code := Execute("v0.0.0-test", []string{"--version"}, &stdout, &stderr); code != exitOK || !strings.Contains(stdout.String(), "kubelet-supervisor-controller") {
		t.Errorf("--version says %q", stdout.String())
	}
}

// One framework is enough: the whole API server, which its metrics' filter would bring, makes the program half as big again.
func TestLinksNoMoreThanItNeeds(t *testing.T) {
	output, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, linked := range strings.Fields(string(output)) {
		for _, not := range []string{"k8s.io/apiserver", "k8s.io/kubelet", "k8s.io/kubectl", "k8s.io/kubernetes", "google.golang.org/grpc",
			"sigs.k8s.io/controller-runtime/pkg/envtest"} {
			if linked == not || strings.HasPrefix(linked, not+"/") {
				t.Errorf("it links %s", linked)
			}
		}
	}
}
