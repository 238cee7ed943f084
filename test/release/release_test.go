//go:build release

package release

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const version = "v0.1.0"

// shell runs lines of bash in a folder.
func shell(t *testing.T, folder, lines string, environment ...string) (string, error) {
	t.Helper()
	command := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", lines)
	command.Dir, command.Env = folder, append(os.Environ(), environment...)
	output, err := command.CombinedOutput()
	return string(output), err
}

func must(t *testing.T, folder, lines string, environment ...string) string {
	t.Helper()
	output, err := shell(t, folder, lines, environment...)
	if err != nil {
		t.Fatalf("%s: %v\n%s", lines, err, output)
	}
	return output
}

// What make test-release gives: the folder that releases.sh has filled.
func releases(t *testing.T) string {
	t.Helper()
	folder := os.Getenv("KUBELET_SUPERVISOR_TEST_RELEASES")
	if folder == "" {
		t.Fatal("KUBELET_SUPERVISOR_TEST_RELEASES is not set: run make test-release")
	}
	return folder
}

// What is not a release is refused, before anything is built.
func TestRefusals(t *testing.T) {
	for name, row := range map[string]struct {
		before string
		change []string // of the environment
		says   string
	}{
		"no version":          {change: []string{"VERSION="}, says: "VERSION is not set"},
		"no version of ours":  {change: []string{"VERSION=1.0"}, says: "VERSION is 1.0; it has to be like v1.2.3"},
		"another tag":         {change: []string{"VERSION=v9.9.9"}, says: "HEAD is not the tag v9.9.9"},
		"a change":            {before: "echo >>README.md", says: "the tree is not clean"},
		"a new file":          {before: "touch new", says: "the tree is not clean"},
		"nothing to say":      {before: "git -c user.name=a -c user.email=a@b commit --quiet --allow-empty --message x && git tag v0.2.0", change: []string{"VERSION=v0.2.0"}, says: `CHANGELOG.md says nothing under the heading "## 0.2.0"`},
		"a key that is not":   {change: []string{"MINISIGN_KEY=/nowhere"}, says: "MINISIGN_KEY: there is no key in /nowhere"},
		"a folder with a pit": {before: "mkdir -p ../out", says: "is there already"},
	} {
		t.Run(name, func(t *testing.T) {
			tree := filepath.Join(t.TempDir(), "tree")
			must(t, ".", fmt.Sprintf("./tree.sh %s %s", tree, version))
			if row.before != "" {
				must(t, tree, row.before)
			}
			output, err := shell(t, tree, "packaging/release.sh ../out", append([]string{"VERSION=" + version}, row.change...)...)
			if err == nil || !strings.Contains(output, "release: ") || !strings.Contains(output, row.says) {
				t.Errorf("%v, and it says %q, not %q", err, output, row.says)
			}
		})
	}
}

func TestRelease(t *testing.T) {
	folder := releases(t)
	made, tree, keys := filepath.Join(folder, version), filepath.Join(folder, "tree.git"), filepath.Join(folder, "keys")
	t.Run("all is there", func(t *testing.T) { complete(t, made) })
	t.Run("equal elsewhere", func(t *testing.T) {
		elsewhere, again := filepath.Join(t.TempDir(), "elsewhere"), filepath.Join(t.TempDir(), "again")
		must(t, ".", fmt.Sprintf("git clone --quiet %s %s", tree, elsewhere))
		must(t, elsewhere, "packaging/release.sh "+again, "SYSTEMS=linux", "VERSION="+version, "MINISIGN_KEY="+filepath.Join(keys, "secret"), "OPENPGP_KEY="+filepath.Join(keys, "openpgp"))
		must(t, ".", fmt.Sprintf("diff %s/SHA256SUMS %s/SHA256SUMS", made, again))
	})
	t.Run("verified", func(t *testing.T) { verified(t, made, keys) })
	t.Run("provenance", func(t *testing.T) { provenance(t, tree, made) })
}

// complete holds the folder against what issue and page promise: names, without versions and architectures.
func complete(t *testing.T, made string) {
	for _, pattern := range []string{
		"kubelet-supervisor_*_amd64.deb", "kubelet-supervisor_*_arm64.deb", "kubelet-supervisor-*.x86_64.rpm", "kubelet-supervisor-*.aarch64.rpm",
		"kubelet-supervisor-controller_*_arm64.deb", "kubelet-supervisor-controller-*.x86_64.rpm", "kubelet-supervisor-apt_*_all.deb", "kubectl-kubelet_*_amd64.deb",
		"kubectl-kubelet_v0.1.0_linux_amd64.tar.gz", "kubelet.yaml", "kubelet-supervisor-controller_v0.1.0_oci.tar", "kubelet-supervisor-mixin_v0.1.0.tar.gz",
		"kubelet-supervisor_v0.1.0_amd64.sysext.raw", "*_amd64.cdx.json", "kubelet-supervisor_v0.1.0.yaml", "kubelet-supervisor-crd_v0.1.0.yaml",
		"kubelet-supervisor-controller_v0.1.0.yaml", "notes.md", "provenance.intoto.json", "SHA256SUMS", "SHA256SUMS.minisig", "kubelet-supervisor.asc",
		"apt/dists/stable/InRelease", "apt/dists/stable/Release.gpg", "yum/repodata/repomd.xml.asc",
	} {
		if files, err := filepath.Glob(filepath.Join(made, pattern)); err != nil || len(files) == 0 {
			t.Errorf("there is no %s", pattern)
		}
	}
	notes, err := os.ReadFile(filepath.Join(made, "notes.md"))
	if err != nil || !strings.HasPrefix(string(notes), "### Added") || strings.Contains(string(notes), "\n## ") {
		t.Errorf("%v; the notes begin %.80q", err, notes)
	}
}

// verified runs the page's commands, and once more after one byte of a package was changed.
func verified(t *testing.T, made, keys string) {
	page, err := os.ReadFile("../../docs/howto/verify.md")
	if err != nil {
		t.Fatal(err)
	}
	var commands []string
	for _, line := range regexp.MustCompile(`(?m)^\$ (.*)$`).FindAllStringSubmatch(string(page), -1) {
		commands = append(commands, line[1])
	}
	if len(commands) != 2 {
		t.Fatalf("the page has the commands %q", commands)
	}
	must(t, ".", fmt.Sprintf("cp %s/kubelet-supervisor.pub %s/", keys, made))
	if output := must(t, made, strings.Join(commands, "\n")); !strings.Contains(output, "kubelet-supervisor "+version) {
		t.Errorf("it is verified as %s", output)
	}
	for file, want := range map[string]int{"notes.md": 1, "SHA256SUMS": 0} { // which of the two commands notices
		must(t, made, fmt.Sprintf("cp %[1]s kept && printf x >>%[1]s", file))
		if output, err := shell(t, made, commands[want]); err == nil {
			t.Errorf("a changed %s is taken: %s", file, output)
		}
		must(t, made, fmt.Sprintf("mv kept %s", file))
	}
	must(t, made, strings.Join(commands, "\n")+"\nrm kubelet-supervisor.pub")
}

// provenance names each published file by its bytes, and the commit.
func provenance(t *testing.T, tree, made string) {
	text, err := os.ReadFile(filepath.Join(made, "provenance.intoto.json"))
	if err != nil {
		t.Fatal(err)
	}
	var statement struct {
		Subject []struct {
			Name   string
			Digest struct{ SHA256 string }
		}
		PredicateType string
		Predicate     struct {
			BuildDefinition struct {
				ExternalParameters   map[string]string
				ResolvedDependencies []struct{ Digest map[string]string }
			}
		}
	}
	if err := json.Unmarshal(text, &statement); err != nil {
		t.Fatal(err)
	}
	commit := strings.TrimSpace(must(t, tree, "git rev-parse HEAD"))
	definition := statement.Predicate.BuildDefinition
	if statement.PredicateType != "https://slsa.dev/provenance/v1" || definition.ExternalParameters["version"] != version || definition.ResolvedDependencies[0].Digest["gitCommit"] != commit {
		t.Errorf("%s", text)
	}
	var named []string
	for _, subject := range statement.Subject {
		named = append(named, subject.Digest.SHA256+"  "+subject.Name)
	}
	sums, err := os.ReadFile(filepath.Join(made, "SHA256SUMS"))
	if err != nil {
		t.Fatal(err)
	}
	listed := strings.Split(strings.TrimSpace(string(sums)), "\n")
	listed = slices.DeleteFunc(listed, func(line string) bool { return strings.HasSuffix(line, "  provenance.intoto.json") })
	if !slices.Equal(named, listed) || len(named) < 30 {
		t.Errorf("the statement is about %d files, SHA256SUMS about %d beside it", len(named), len(listed))
	}
}

// The manifests of a release are those of the tree, whole, and name the image by its version.
func TestManifestsOfARelease(t *testing.T) {
	text, err := os.ReadFile("../../packaging/manifests/controller/deployment.yaml")
	if err != nil || !bytes.Contains(text, []byte("image: kubelet-supervisor-controller\n")) {
		t.Errorf("%v: release.sh puts the version behind an image that deployment.yaml does not name", err)
	}
}
