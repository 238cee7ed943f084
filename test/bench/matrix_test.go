package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestCompatibilityDocumentHidesNothing(t *testing.T) {
	works := func(part, name string, took float64, brief, words string) *step {
		return &step{Part: part, Name: name, Works: true, Took: took, Brief: brief, Words: words}
	}
	m := &matrix{Commit: "v1", Date: time.Unix(0, 0).UTC(), Machine: []string{"a machine"}, Kubelets: []*kubeletSeen{
		{Version: "1.9.0", Not: []string{"with kube-apiserver 2: no", "with kube-apiserver 1: neither"}, Steps: []*step{
			{Part: preflightPart, Name: "good", Brief: "refused", Took: 12, Words: "a`b"}}},
		{Version: "1.36.3", APIServer: "2", Steps: []*step{
			works(preflightPart, "good", 61.5, "accepted", "FILE is accepted"), works(jobPart, "start", 1500, "", "Local: using current (default)")}},
	}}
	text, err := m.document()
	if err != nil {
		t.Fatal(err)
	}
	text = squeezed(text)
	for _, words := range []string{
		"Commit v1, 1970-01-01 00:00 UTC.", "\n- a machine\n",
		"\n- **1.9.0**: 1 of 1 steps do not work: good; not Ready with kube-apiserver 2: no; not Ready with kube-apiserver 1: neither.\n",
		"\n- **1.36.3**: all 2 steps work.\n",
		"| kubelet | 1.9.0 | 1.36.3 |\n", "| good | **no**: refused, 12 ms | accepted, 61.5 ms |\n",
		"| kube-apiserver | **none** | 2 |\n", "| start | **not tried** | 1.50 s |\n",
		"\n### Kubelet 1.9.0\n", "\n- **good: no**: `a'b`\n", "\n- start: `Local: using current (default)`\n",
	} {
		if !strings.Contains(text, words) {
			t.Errorf("the document has no %q:\n%s", words, text)
		}
	}
}

func TestKubeletsAreFoundInTheOrderOfTheirVersions(t *testing.T) {
	parts := t.TempDir()
	for _, name := range []string{"kubelet-1.36.3", "kubelet-1.9.10", "kubelet-1.9.2", "kube-apiserver-1.36.3", "kubectl-1.36.3", "etcd"} {
		if err := os.WriteFile(filepath.Join(parts, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if seen := kubeletsAmong(parts); !slices.Equal(seen, []string{"1.9.2", "1.9.10", "1.36.3"}) {
		t.Errorf("seen: %v", seen)
	}
}

func TestOneLineIsShort(t *testing.T) {
	for text, expected := range map[string]string{" a\n b ": "a b", strings.Repeat("ü", 600): strings.Repeat("ü", 550) + "…"} {
		if seen := oneLine(text); seen != expected {
			t.Errorf("%q became %q", text, seen)
		}
	}
}
