//go:build release

package main

import (
	"encoding/json"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// The page's command copies a release's image into a registry, for both architectures, by the same bytes. It is of make test-release.
func TestPushed(t *testing.T) {
	page, err := os.ReadFile("../../docs/howto/verify.md")
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`(?m)^\$ (skopeo copy .*)$`).FindSubmatch(page)
	version := regexp.MustCompile(`controller_(v[0-9.]+)_oci`).FindSubmatch(page)
	if line == nil || version == nil {
		t.Fatal("the page has no command for a registry")
	}
	to := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer to.Close()
	made := filepath.Join(os.Getenv("KUBELET_SUPERVISOR_TEST_RELEASES"), string(version[1]))

	// The registry here has neither a name nor a certificate.
	address := strings.TrimPrefix(to.URL, "http://")
	command := strings.NewReplacer("registry.example", address, "skopeo copy", "skopeo copy --dest-tls-verify=false").Replace(string(line[1]))
	push := exec.CommandContext(t.Context(), "bash", "-c", command)
	push.Dir = made
	if output, err := push.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", command, err, output)
	}

	var pushed v1.IndexManifest
	if err := json.Unmarshal([]byte(manifest(t, to, string(version[1]))), &pushed); err != nil {
		t.Fatal(err)
	}
	list, want := digestsOf(t, filepath.Join(made, program+"_"+string(version[1])+"_oci.tar"))
	if got, _, err := v1.SHA256(strings.NewReader(manifest(t, to, string(version[1])))); err != nil || got != list {
		t.Errorf("the registry has the list %s, and the manifests and the signature name %s: %v", got, list, err)
	}
	if len(pushed.Manifests) != len(want) {
		t.Errorf("the registry has %+v", pushed)
	}
	for _, one := range pushed.Manifests {
		if digest := want[one.Platform.Architecture]; digest != one.Digest {
			t.Errorf("for %s the registry has %s, and the file %s", one.Platform.Architecture, one.Digest, digest)
		}
		manifest(t, to, one.Digest.String())
	}
}

// digestsOf gives the digests of the list of images, and of each architecture's.
func digestsOf(t *testing.T, file string) (list v1.Hash, images map[string]v1.Hash) {
	t.Helper()
	layout, err := unpack(t, file).ImageIndex()
	if err != nil {
		t.Fatal(err)
	}
	outer, err := layout.IndexManifest()
	if err != nil || len(outer.Manifests) != 1 {
		t.Fatalf("%v: the layout is %+v", err, outer)
	}
	index, err := layout.ImageIndex(outer.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	inner, err := index.IndexManifest()
	if err != nil || len(inner.Manifests) != 2 {
		t.Fatalf("%v: the image is %+v", err, inner)
	}
	images = map[string]v1.Hash{}
	for _, one := range inner.Manifests {
		images[one.Platform.Architecture] = one.Digest
	}
	return outer.Manifests[0].Digest, images
}

// manifest is what the registry has under a tag or a digest.
func manifest(t *testing.T, at *httptest.Server, reference string) string {
	t.Helper()
	answer, err := at.Client().Get(at.URL + "/v2/" + program + "/manifests/" + reference)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var text strings.Builder
	if _, err := io.Copy(&text, answer.Body); err != nil || answer.StatusCode != 200 {
		t.Fatalf("%s: %v, %s: %s", reference, err, answer.Status, text.String())
	}
	return text.String()
}
