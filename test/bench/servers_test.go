//go:build linux

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A kubelet may be as new as its API server, and three minor versions older.
func TestAServerHasTheNewestKubeletThatItSupports(t *testing.T) {
	kubelets := []string{"1.23.17", "1.29.6", "1.30.14", "1.36.3", "1.37.1"}
	for server, want := range map[string]string{
		"1.23.17": "1.23.17", "1.24.17": "1.23.17", "1.26.1": "1.23.17", "1.27.1": "", "1.29.1": "1.29.6", "1.30.14": "1.30.14", "1.33.13": "1.30.14",
		"1.34.1": "", "1.36.3": "1.36.3", "1.38.0": "1.37.1",
	} {
		kubelet, err := kubeletFor(server, kubelets)
		if kubelet != want || (err == nil) != (want != "") {
			t.Errorf("kube-apiserver %s has kubelet %q (%v), want %q", server, kubelet, err, want)
		}
	}
}

// The section has a row for each API server that was tried, and one for all others, which were only read.
func TestTheSectionOfAPIServers(t *testing.T) {
	step := func(name, brief, words string, works bool) *Step {
		return &Step{Part: serverPart, Name: name, Works: works, Brief: brief, Words: words, Took: 1234}
	}
	r := newResult(options{Commit: "abc"}, "kube-apiserver, kubelet, etcd and containerd")
	r.Servers = []*kubeletSeen{
		{APIServer: "1.34.1", Version: "1.33.13", Steps: []*Step{step("install", "34 objects", "c", true), step("doctor", "", "it says WRONG", false)}},
		{APIServer: "1.36.3", Version: "1.36.3", Steps: []*Step{step("install", "34 objects", "c", true)}},
	}
	result := filepath.Join(t.TempDir(), "servers.json")
	if err := r.save(result); err != nil {
		t.Fatal(err)
	}
	document := filepath.Join(t.TempDir(), "compatibility.md")
	if err := os.WriteFile(document, []byte("# Words\n\n## API servers\n\nOld words.\n\n## More\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := writeSection(document, "API servers", "", []string{result}); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Join(strings.Fields(string(content)), " ")
	for _, words := range []string{"# Words ## API servers", "| kube-apiserver | kubelet | install | doctor |", "| 1.34.1 | 1.33.13 | ok: 34 objects, 1.23 s | **not**, 1.23 s |",
		"| 1.36.3 | 1.36.3 | ok: 34 objects, 1.23 s | **not tried** |", "| 1.35, 1.37 | none | only read | only read |", "- kube-apiserver 1.34.1, doctor does not work: `it says WRONG` ## More"} {
		if !strings.Contains(text, words) {
			t.Errorf("the section has no %q:\n%s", words, content)
		}
	}
	if strings.Contains(text, "Old words") {
		t.Errorf("the section has its old words:\n%s", content)
	}
}

// No act is there twice, and each is either what the node needs or is refused by an API server of today.
func TestEachActOfANodeIsDecidedOnce(t *testing.T) {
	names := map[string]bool{}
	for _, a := range nodeActs() {
		if names[a.name] || a.refusedSince != never && a.refusedSince > newestMinor {
			t.Errorf("%q is there before, or refused since 1.%d", a.name, a.refusedSince)
		}
		names[a.name] = true
	}
}
