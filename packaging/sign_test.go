package packaging_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The digest of an image is signed with the only key, at a time that the key had already been made, so that the same key gives the same bytes.
// That rpms are signed so is tested with those of a release: release.TestRelease.
func TestTheSignatureOfADigest(t *testing.T) {
	for _, program := range []string{"gpg", "gpgv"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("NOT RUN: %s is not installed, so nothing is signed", program)
		}
	}
	home, err := os.MkdirTemp("", "gpg-") // short enough for its sockets
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(home) })
	folder := t.TempDir()
	digest := filepath.Join(folder, "image_v1_oci.digest")
	if err := os.WriteFile(digest, []byte("sha256:0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(name string, arguments ...string) (string, error) {
		command := exec.CommandContext(t.Context(), name, arguments...)
		command.Env = append(os.Environ(), "GNUPGHOME="+home, "SOURCE_DATE_EPOCH=1000000000")
		output, err := command.CombinedOutput()
		return string(output), err
	}
	t.Cleanup(func() { _ = exec.Command("gpgconf", "--homedir", home, "--kill", "all").Run() })
	if said, err := run("./sign.sh", folder); err == nil || !strings.Contains(said, "want one secret key, and there are 0") {
		t.Errorf("without a key: %v, %s", err, said)
	}
	if said, err := run("gpg", "--batch", "--quiet", "--passphrase", "", "--quick-generate-key", "test <test@example.org>", "ed25519", "sign", "never"); err != nil {
		t.Fatal(err, said)
	}
	keyring := filepath.Join(home, "public.gpg")
	if said, err := run("gpg", "--batch", "--output", keyring, "--export"); err != nil {
		t.Fatal(err, said)
	}
	var before []byte
	for range 2 {
		if said, err := run("./sign.sh", folder); err != nil {
			t.Fatal(err, said)
		}
		if said, err := run("gpgv", "--keyring", keyring, digest+".asc", digest); err != nil {
			t.Errorf("it is not verified: %v, %s", err, said)
		}
		signature, err := os.ReadFile(digest + ".asc")
		if err != nil || before != nil && string(before) != string(signature) {
			t.Errorf("%v: the second signature is another", err)
		}
		before = signature
	}
	if err := os.WriteFile(digest, []byte("sha256:1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if said, err := run("gpgv", "--keyring", keyring, digest+".asc", digest); err == nil {
		t.Errorf("another digest is verified: %s", said)
	}
}
