//go:build release

package release

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// published lists all files of a release by their names.
func published(version string, systems ...string) (files []string) {
	number := strings.TrimPrefix(version, "v")
	add := func(names ...string) {
		for _, name := range names {
			files = append(files, strings.NewReplacer("VERSION", version, "NUMBER", number).Replace(name))
		}
	}
	for _, program := range []string{"kubelet-supervisor", "kubelet-supervisor-controller", "kubectl-kubelet"} {
		for _, machine := range [][2]string{{"amd64", "x86_64"}, {"arm64", "aarch64"}} {
			deb, rpm := program+"_NUMBER-1_"+machine[0]+".deb", program+"-NUMBER-1."+machine[1]+".rpm"
			add(deb, "apt/pool/"+deb, rpm, "yum/"+rpm, program+"_NUMBER_"+machine[0]+".cdx.json")
		}
	}
	add("kubelet-supervisor-apt_NUMBER-1_all.deb", "apt/pool/kubelet-supervisor-apt_NUMBER-1_all.deb")
	for _, architecture := range []string{"amd64", "arm64"} {
		add("kubelet-supervisor_VERSION_" + architecture + ".sysext.raw")
		index := "apt/dists/stable/main/binary-" + architecture + "/Packages"
		add(index, index+".gz")
		for _, system := range systems {
			add("kubectl-kubelet_VERSION_" + system + "_" + architecture + ".tar.gz")
			if system != "linux" {
				add("kubectl-kubelet_NUMBER_" + system + "_" + architecture + ".cdx.json")
			}
		}
	}
	add("kubelet.yaml", "kubelet-supervisor-controller_VERSION_oci.tar", "kubelet-supervisor-controller_VERSION_oci.digest", "kubelet-supervisor-controller_VERSION_oci.digest.asc",
		"kubelet-supervisor-mixin_VERSION.tar.gz",
		"kubelet-supervisor_VERSION.yaml", "kubelet-supervisor-crd_VERSION.yaml", "kubelet-supervisor-controller_VERSION.yaml",
		"notes.md", "provenance.intoto.json", "SHA256SUMS", "SHA256SUMS.minisig", "kubelet-supervisor.asc",
		"apt/dists/stable/Release", "apt/dists/stable/InRelease", "apt/dists/stable/Release.gpg",
		"yum/repodata/repomd.xml", "yum/repodata/repomd.xml.asc",
		"yum/repodata/SUM-primary.xml.gz", "yum/repodata/SUM-filelists.xml.gz", "yum/repodata/SUM-other.xml.gz")
	slices.Sort(files)
	return files
}

var bySum = regexp.MustCompile(`^(yum/repodata/)[0-9a-f]{64}-`)

// complete: the folder has these files, and no others.
func complete(t *testing.T, made, version string, systems ...string) {
	var files []string
	for line := range strings.Lines(must(t, made, "find . -type f -printf '%P\\n'")) {
		files = append(files, bySum.ReplaceAllString(strings.TrimSpace(line), "${1}SUM-"))
	}
	slices.Sort(files)
	want := published(version, systems...)
	for _, name := range want {
		if !slices.Contains(files, name) {
			t.Errorf("there is no %s", name)
		}
	}
	for _, name := range files {
		if !slices.Contains(want, name) {
			t.Errorf("nobody expects %s", name)
		}
	}
	notes, err := os.ReadFile(filepath.Join(made, "notes.md"))
	if err != nil || !strings.HasPrefix(string(notes), "### ") || strings.Contains(string(notes), "\n## ") {
		t.Errorf("%v; the notes begin %.80q", err, notes)
	}
}

// pluginOfEachSystem: the archives have programs of their system, and Krew's manifest has each of them by its bytes.
func pluginOfEachSystem(t *testing.T, made string) {
	text, err := os.ReadFile(filepath.Join(made, "kubelet.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var manifest struct {
		Spec struct {
			Platforms []struct{ URI, SHA256, Bin string }
		}
	}
	if err := yaml.Unmarshal(text, &manifest); err != nil || len(manifest.Spec.Platforms) != 6 {
		t.Fatalf("%v: the manifest is\n%s", err, text)
	}
	begins := map[string]string{"linux": "\x7fELF", "darwin": "\xcf\xfa\xed\xfe", "windows": "MZ"}
	for _, platform := range manifest.Spec.Platforms {
		name := filepath.Base(platform.URI)
		archive, err := os.ReadFile(filepath.Join(made, name))
		if err != nil {
			t.Error(err)
			continue
		}
		if sum := sha256.Sum256(archive); hex.EncodeToString(sum[:]) != platform.SHA256 {
			t.Errorf("%s is another than the manifest's", name)
		}
		system := strings.Split(name, "_")[2]
		if program := must(t, made, "tar -xzOf "+name+" "+platform.Bin); !strings.HasPrefix(program, begins[system]) {
			t.Errorf("%s of %s begins %.8q", platform.Bin, name, program)
		}
	}
}
