package main

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// anArchive makes an archive with these files.
func anArchive(t *testing.T, folder, name string, files ...string) string {
	t.Helper()
	file, err := os.Create(filepath.Join(folder, name))
	if err != nil {
		t.Fatal(err)
	}
	zipped := gzip.NewWriter(file)
	packed := tar.NewWriter(zipped)
	for _, name := range files {
		if err := packed.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Typeflag: tar.TypeReg}); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(packed.Close(), zipped.Close(), file.Close()); err != nil {
		t.Fatal(err)
	}
	return file.Name()
}

func someManifest(t *testing.T) (manifest, []string) {
	t.Helper()
	folder := t.TempDir()
	var archives []string
	for _, system := range []string{"linux", "darwin", "windows"} {
		for _, arch := range []string{"amd64", "arm64"} {
			archives = append(archives, anArchive(t, folder, "kubectl-kubelet_v1.2.0_"+system+"_"+arch+".tar.gz", installedOn(system)...))
		}
	}
	m, err := manifestOf("v1.2.0", archives)
	if err != nil {
		t.Fatal(err)
	}
	return m, archives
}

func TestManifest(t *testing.T) {
	m, archives := someManifest(t)
	if found := problems(m); len(found) > 0 {
		t.Error(found)
	}
	if len(m.Spec.Platforms) != 6 || m.Metadata.Name != "kubelet" || m.Spec.Version != "v1.2.0" {
		t.Errorf("got %+v", m)
	}
	p := m.Spec.Platforms[1]
	content, err := os.ReadFile(archives[1])
	sum := sha256.Sum256(content)
	if err != nil || p.SHA256 != hex.EncodeToString(sum[:]) {
		t.Errorf("checksum %s, %v", p.SHA256, err)
	}
	if p.Selector.MatchLabels["os"] != "linux" || p.Selector.MatchLabels["arch"] != "arm64" || !strings.HasSuffix(p.URI, "/releases/download/v1.2.0/kubectl-kubelet_v1.2.0_linux_arm64.tar.gz") {
		t.Errorf("got %+v", p)
	}
	for _, p := range m.Spec.Platforms {
		if !slices.Contains(p.Files, fileOperation{From: p.Bin, To: "."}) || strings.HasSuffix(p.Bin, ".exe") != (p.Selector.MatchLabels["os"] == "windows") {
			t.Errorf("on %v, bin is %q and the files are %v", p.Selector.MatchLabels, p.Bin, p.Files)
		}
	}
}

func TestProblems(t *testing.T) {
	for _, test := range []struct {
		name  string
		spoil func(*manifest)
		want  string
	}{
		{"another apiVersion", func(m *manifest) { m.APIVersion = "krew.googlecontainertools.github.com/v1" }, "apiVersion"},
		{"another kind", func(m *manifest) { m.Kind = "Plug" }, "kind"},
		{"a name that is none", func(m *manifest) { m.Metadata.Name = "kubelet/x" }, "name"},
		{"no version", func(m *manifest) { m.Spec.Version = "" }, "version"},
		{"a version without v", func(m *manifest) { m.Spec.Version = "1.2.0" }, "version"},
		{"half a version", func(m *manifest) { m.Spec.Version = "v1.2" }, "version"},
		{"no short description", func(m *manifest) { m.Spec.ShortDescription = "" }, "no shortDescription"},
		{"a short description in two lines", func(m *manifest) { m.Spec.ShortDescription = "a\nb" }, "line break"},
		{"a short description that is none", func(m *manifest) { m.Spec.ShortDescription = strings.Repeat("long ", 11) }, "55 characters"},
		{"no platform", func(m *manifest) { m.Spec.Platforms = nil }, "no platform"},
		{"a platform twice", func(m *manifest) { m.Spec.Platforms[1] = m.Spec.Platforms[0] }, "two platforms are for arch=amd64,os=linux"},
		{"no uri", func(m *manifest) { m.Spec.Platforms[0].URI = "" }, "uri"},
		{"no checksum", func(m *manifest) { m.Spec.Platforms[0].SHA256 = "" }, "sha256"},
		{"a checksum in capitals", func(m *manifest) { m.Spec.Platforms[0].SHA256 = strings.ToUpper(strings.Repeat("a", 64)) }, "sha256"},
		{"no bin", func(m *manifest) { m.Spec.Platforms[0].Bin = "" }, "bin"},
		{"no files", func(m *manifest) { m.Spec.Platforms[0].Files = []fileOperation{} }, "files"},
		{"a file from nowhere", func(m *manifest) { m.Spec.Platforms[0].Files[0].From = "" }, "from"},
		{"no selector", func(m *manifest) { m.Spec.Platforms[0].Selector = nil }, "selector is empty"},
		{"an empty selector", func(m *manifest) { m.Spec.Platforms[0].Selector = &metav1.LabelSelector{} }, "selector is empty"},
		{"a selector by another label", func(m *manifest) { m.Spec.Platforms[0].Selector.MatchLabels["libc"] = "musl" }, "label libc"},
	} {
		t.Run(test.name, func(t *testing.T) {
			m, _ := someManifest(t)
			test.spoil(&m)
			found := errors.Join(problems(m)...)
			if found == nil || !strings.Contains(found.Error(), test.want) {
				t.Errorf("got %v, want %q", found, test.want)
			}
		})
	}
}

// What git describe gives without a tag has to be a version for Krew, too.
func TestKrewVersion(t *testing.T) {
	for version, want := range map[string]string{
		"v1.2.0": "v1.2.0", "v1.2.0-rc.1": "v1.2.0-rc.1", "v1.2.0-4-g123abcd-dirty": "v1.2.0-4-g123abcd-dirty",
		"0123456": "v0.0.0-0.git-0123456", "22dcee1-dirty": "v0.0.0-0.git-22dcee1-dirty", "unknown": "v0.0.0-0.git-unknown",
	} {
		m, _ := someManifest(t)
		m.Spec.Version = krewVersion(version)
		if found := problems(m); m.Spec.Version != want || len(found) > 0 {
			t.Errorf("%s becomes %s: %v", version, m.Spec.Version, found)
		}
	}
}

func TestArchivesThatAreNone(t *testing.T) {
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "kubectl-kubelet_v1_linux_amd64.tar.gz"), []byte("no"), 0o600); err != nil {
		t.Fatal(err)
	}
	for archive, want := range map[string]string{
		filepath.Join(folder, "kubectl-kubelet_v1_linux_amd64.tar.gz"):                              "unzipping",
		filepath.Join(folder, "kubectl-kubelet_v1_linux_arm.tar.gz"):                                "no such file",
		anArchive(t, folder, "kubectl.tar.gz", installedOn("linux")...):                             "its name is not",
		anArchive(t, folder, "kubectl-kubelet_v1_linux_arm64.tar.gz", "kubectl-kubelet", "LICENSE"): "it has no kubectl_complete-kubelet",
	} {
		if _, err := manifestOf("v1.2.0", []string{archive}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", archive, err, want)
		}
	}
}
