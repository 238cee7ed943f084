//go:build release

package release

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/pages"
)

// What releases.sh makes: the first release has the plugin's archives for Linux alone, the next one all.
const (
	version = "v0.1.0"
	next    = "v0.2.0"
)

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
		"another tag":         {change: []string{"VERSION=v9.9.9"}, says: `HEAD is not the tag v9.9.9: check it out, or make it as step 3 of "How to release" in CONTRIBUTING.md says`},
		"a change":            {before: "echo >>README.md", says: "the tree is not clean"},
		"a new file":          {before: "touch new", says: "the tree is not clean"},
		"nothing to say":      {before: "git -c user.name=a -c user.email=a@b commit --quiet --allow-empty --message x && git tag v0.2.0", change: []string{"VERSION=v0.2.0"}, says: `CHANGELOG.md says nothing under the heading "## 0.2.0", which step 1 of "How to release" in CONTRIBUTING.md makes of "## Unreleased"`},
		"a key that is not":   {change: []string{"MINISIGN_KEY=/nowhere"}, says: "MINISIGN_KEY: there is no key in /nowhere; step 4 of"},
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
	t.Run("all is there", func(t *testing.T) { complete(t, made, version, "linux") })
	t.Run("all systems", func(t *testing.T) {
		complete(t, filepath.Join(folder, next), next, "linux", "darwin", "windows")
		pluginOfEachSystem(t, filepath.Join(folder, next))
	})
	t.Run("equal elsewhere", func(t *testing.T) { equalElsewhere(t, tree, made, keys) })
	t.Run("verified", func(t *testing.T) { verified(t, made, keys) })
	t.Run("signed", func(t *testing.T) { signed(t, made) })
	t.Run("mixin", func(t *testing.T) { mixin(t, made) })
	t.Run("provenance", func(t *testing.T) { provenance(t, tree, made) })
}

// equalElsewhere builds a release once more, where what could leak into it is another: folder, home, user's name, time zone, umask, and language where
// that is installed. Go's caches are kept, for what is in them is known by its content.
func equalElsewhere(t *testing.T, tree, made, keys string) {
	folder, err := os.MkdirTemp("", "else where") // short enough for gpg's sockets
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	elsewhere, again := filepath.Join(folder, "a tree"), filepath.Join(folder, "once again")
	environment := []string{
		"SYSTEMS=linux", "VERSION=" + version, "MINISIGN_KEY=" + filepath.Join(keys, "secret"), "OPENPGP_KEY=" + filepath.Join(keys, "openpgp"),
		"HOME=" + t.TempDir(), "TMPDIR=" + folder, "USER=somebody", "LOGNAME=somebody", "TZ=Pacific/Kiritimati", "LANG=tr_TR.UTF-8", "LC_ALL=tr_TR.UTF-8",
	}
	for _, name := range []string{"GOCACHE", "GOMODCACHE", "GOENV"} {
		environment = append(environment, name+"="+strings.TrimSpace(must(t, ".", "go env "+name)))
	}
	must(t, ".", fmt.Sprintf("umask 077 && git clone --quiet %s '%s'", tree, elsewhere))
	must(t, elsewhere, fmt.Sprintf("umask 077 && packaging/release.sh '%s'", again), environment...)
	must(t, ".", fmt.Sprintf("diff %s/SHA256SUMS '%s/SHA256SUMS'", made, again))
	modes := func(of string) string { return must(t, of, "find . -printf '%M %n %P\n' | sort -k 3") }
	if first, second := modes(made), modes(again); first != second {
		t.Errorf("files and their modes were\n%s\nand are\n%s", first, second)
	}
}

// verifying gives the page's commands: for all files, for the rpms and for the image.
func verifying(t *testing.T) [][]pages.Command {
	t.Helper()
	page, err := os.ReadFile("../../docs/howto/verify.md")
	if err != nil {
		t.Fatal(err)
	}
	fences := pages.Marked(pages.Section(string(page), "Verify what you have downloaded"), "release")
	if len(fences) != 3 {
		t.Fatalf("the page has the commands %v", fences)
	}
	return fences
}

// verified runs the page's commands, and once more after one byte of a package was changed.
func verified(t *testing.T, made, keys string) {
	sums := verifying(t)[0]
	if len(sums) != 2 {
		t.Fatalf("the page has the commands %v", sums)
	}
	commands := []string{sums[0].Line, sums[1].Line}
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

// signed runs the page's commands for rpms and the image, and once more after each was changed, or has lost its signature.
func signed(t *testing.T, made string) {
	fences := verifying(t)[1:]
	lines := func(fence int) string {
		var all []string
		for _, command := range fences[fence] {
			all = append(all, command.Line)
		}
		return strings.Join(all, "\n")
	}
	image := "kubelet-supervisor-controller_" + version + "_oci"
	for name, test := range map[string]struct {
		spoil string
		fence int
		good  bool
	}{
		"the rpms":              {"true", 0, true},
		"a changed rpm":         {"for one in kubectl-kubelet-*.rpm; do printf x | dd of=$one bs=1 seek=50000 conv=notrunc status=none; done", 0, false},
		"an unsigned rpm":       {"rpmsign --delsign kubectl-kubelet-*.rpm", 0, false},
		"the image":             {"true", 1, true},
		"another digest":        {"sed -i s/sha256:./sha256:z/ " + image + ".digest", 1, false},
		"an image of another's": {`echo "{}" >index.json && tar --append --file ` + image + ".tar index.json", 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			must(t, made, fmt.Sprintf("cp *.rpm %s.* kubelet-supervisor.asc %s/", image, folder))
			must(t, folder, test.spoil)
			if output, err := shell(t, folder, lines(test.fence)); (err == nil) != test.good {
				t.Errorf("%v: %s", err, output)
			}
		})
	}
	named := must(t, made, "sed -n 's/^ *image: //p' kubelet-supervisor-controller_"+version+".yaml")
	if want := "kubelet-supervisor-controller:" + version + "@" + must(t, made, "cat "+image+".digest"); named != want {
		t.Errorf("the manifests name the image %s, and not %s", named, want)
	}
}

// The manifests of a release are those of the tree, whole, and name the image by its version.
func TestManifestsOfARelease(t *testing.T) {
	text, err := os.ReadFile("../../deploy/manifests/controller/deployment.yaml")
	if err != nil || !bytes.Contains(text, []byte("image: kubelet-supervisor-controller\n")) {
		t.Errorf("%v: release.sh puts the version behind an image that deployment.yaml does not name", err)
	}
}
