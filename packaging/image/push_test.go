//go:build release

package main

import (
	"encoding/json"
	"io"
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

// The page's command copies a release's image into a registry, whole: for both architectures, by the same bytes. It is of make test-release.
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
	to := httptest.NewServer(registry.New())
	defer to.Close()
	made := filepath.Join(os.Getenv("KUBELET_SUPERVISOR_TEST_RELEASES"), string(version[1]))

	// The registry here has neither a name nor a certificate.
	address := strings.TrimPrefix(to.URL, "http://")
	command := strings.NewReplacer("registry.example", address, "skopeo copy", "skopeo --insecure-policy copy --dest-tls-verify=false").Replace(string(line[1]))
	push := exec.CommandContext(t.Context(), "bash", "-c", command)
	push.Dir = made
	if output, err := push.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", command, err, output)
	}

	index, err := unpack(t, filepath.Join(made, program+"_"+string(version[1])+"_oci.tar")).ImageIndex()
	if err != nil {
		t.Fatal(err)
	}
	list, err := index.IndexManifest()
	if err != nil || len(list.Manifests) != 1 {
		t.Fatalf("%v: the layout is %+v", err, list)
	}
	pushed := manifest(t, to, string(version[1]))
	if digest, _, err := v1.SHA256(strings.NewReader(pushed)); err != nil || digest != list.Manifests[0].Digest {
		t.Errorf("%v: the registry has %s, and the file %s", err, digest, list.Manifests[0].Digest)
	}
	var platforms v1.IndexManifest
	if err := json.Unmarshal([]byte(pushed), &platforms); err != nil || len(platforms.Manifests) != 2 {
		t.Fatalf("%v: the registry has %s", err, pushed)
	}
	for _, one := range platforms.Manifests {
		manifest(t, to, one.Digest.String())
	}
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
