package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// build makes an image of two binaries and two documents.
func build(t *testing.T) string {
	t.Helper()
	t.Setenv("SOURCE_DATE_EPOCH", "1700000000")
	folder := t.TempDir()
	for name, text := range map[string]string{"amd64": "binary for amd64", "arm64": "binary for arm64", "doc/LICENSE": "Apache-2.0", "doc/third-party.txt": "others"} {
		file := filepath.Join(folder, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(folder, "image.tar")
	if err := run([]string{"--output", file, "--version", "v1.2.3", "--documents", filepath.Join(folder, "doc"), "amd64=" + filepath.Join(folder, "amd64"),
		"arm64=" + filepath.Join(folder, "arm64")}); err != nil {
		t.Fatal(err)
	}
	return file
}

// unpack gives the layout that is in the file.
func unpack(t *testing.T, file string) layout.Path {
	t.Helper()
	folder := t.TempDir()
	for name, data := range files(t, file) {
		at := filepath.Join(folder, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, data, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	path, err := layout.FromPath(folder)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func files(t *testing.T, file string) map[string][]byte {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string][]byte{}
	for r := tar.NewReader(bytes.NewReader(data)); ; {
		header, err := r.Next()
		if err == io.EOF {
			return found
		}
		if err != nil {
			t.Fatal(err)
		}
		if header.Typeflag == tar.TypeReg {
			if found[header.Name], err = io.ReadAll(r); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// The same input gives the same bytes.
func TestSameBytes(t *testing.T) {
	var made [2][]byte
	for i := range made {
		var err error
		if made[i], err = os.ReadFile(build(t)); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(made[0], made[1]) {
		t.Error("two images of the same input differ")
	}
}

// The layout is sound by the library's own checks: each digest, size and media type. There is an image for each architecture, which runs the
// binary of that architecture, not as root, and has nothing else in it but its documents.
func TestImages(t *testing.T) {
	root, err := unpack(t, build(t)).ImageIndex()
	if err != nil {
		t.Fatal(err)
	}
	top, err := root.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	if len(top.Manifests) != 1 || top.Manifests[0].Annotations["org.opencontainers.image.ref.name"] != "v1.2.3" {
		t.Fatalf("the layout has %+v", top.Manifests)
	}
	index, err := root.ImageIndex(top.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(index); err != nil {
		t.Error(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	var platforms []string
	for _, m := range manifest.Manifests {
		platforms = append(platforms, m.Platform.String())
		image, err := index.Image(m.Digest)
		if err != nil {
			t.Fatal(err)
		}
		checkImage(t, image, m.Platform.Architecture)
	}
	if want := []string{"linux/amd64", "linux/arm64"}; !slices.Equal(platforms, want) {
		t.Errorf("it is for %v", platforms)
	}
}

func checkImage(t *testing.T, image v1.Image, architecture string) {
	t.Helper()
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if c := config.Config; config.Architecture != architecture || c.User != "65532:65532" || !slices.Equal(c.Entrypoint, []string{"/kubelet-supervisor-controller"}) ||
		c.Labels["org.opencontainers.image.version"] != "v1.2.3" || config.Created.Unix() != 1700000000 {
		t.Errorf("the configuration is %+v", config)
	}
	layers, err := image.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatalf("%d layers, %v", len(layers), err)
	}
	content, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	defer content.Close()
	var names []string
	for r := tar.NewReader(content); ; {
		header, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, fmt.Sprintf("%s %o %d:%d", header.Name, header.Mode, header.Uid, header.Gid))
		if header.Name == program {
			if data, _ := io.ReadAll(r); string(data) != "binary for "+architecture {
				t.Errorf("the binary is %q", data)
			}
		}
	}
	const want = "kubelet-supervisor-controller 555 0:0, usr/ 755 0:0, usr/share/ 755 0:0, usr/share/doc/ 755 0:0, " +
		"usr/share/doc/kubelet-supervisor-controller/ 755 0:0, usr/share/doc/kubelet-supervisor-controller/LICENSE 444 0:0, " +
		"usr/share/doc/kubelet-supervisor-controller/third-party.txt 444 0:0"
	if got := strings.Join(names, ", "); got != want {
		t.Errorf("the layer has %s", got)
	}
}

// Bad input is named.
func TestBadInput(t *testing.T) {
	t.Setenv("SOURCE_DATE_EPOCH", "1700000000")
	file := filepath.Join(t.TempDir(), "image.tar")
	for words, arguments := range map[string][]string{
		"--output, --version and at least one": {"--output", file},
		"not ARCHITECTURE=BINARY":              {"--output", file, "--version", "v1", "amd64"},
		"reading the binary for amd64":         {"--output", file, "--version", "v1", "amd64=/nonexistent"},
		"reading the documents":                {"--output", file, "--version", "v1", "--documents", "/nonexistent", "amd64=/dev/null"},
		"writing the image":                    {"--output", "/nonexistent/image.tar", "--version", "v1", "amd64=/dev/null"},
	} {
		if err := run(arguments); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%q: %v", arguments, err)
		}
	}
	t.Setenv("SOURCE_DATE_EPOCH", "yesterday")
	if err := run([]string{"--output", file, "--version", "v1", "amd64=/dev/null"}); err == nil || !strings.Contains(err.Error(), "SOURCE_DATE_EPOCH") {
		t.Errorf("a time that is none: %v", err)
	}
}
