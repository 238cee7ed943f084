package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// pluginName makes the command `kubectl kubelet`.
const pluginName = "kubelet"

const home = "https://github.com/kubelet-supervisor/kubelet-supervisor"

// A manifest has the fields of Krew's Plugin (https://krew.sigs.k8s.io/docs/developer-guide/plugin-manifest/; pkg/index/types.go of Krew
// v0.4) that are used.
type manifest struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec manifestSpec `json:"spec"`
}

type manifestSpec struct {
	Version          string     `json:"version"`
	Homepage         string     `json:"homepage"`
	ShortDescription string     `json:"shortDescription"`
	Description      string     `json:"description"`
	Caveats          string     `json:"caveats"`
	Platforms        []platform `json:"platforms"`
}

type platform struct {
	Selector *metav1.LabelSelector `json:"selector"`
	URI      string                `json:"uri"`
	SHA256   string                `json:"sha256"`
	Bin      string                `json:"bin"`
	Files    []fileOperation       `json:"files"`
}

// A fileOperation copies a file of the archive into the plugin's folder.
type fileOperation struct {
	From string `json:"from"`
	To   string `json:"to"`
}

const description = `Change the configuration of kubelets on live nodes, from ConfigMaps, with
trial and rollback by kubelet-supervisor on the nodes. The plugin shows what would change, field by field, and what that does to running
pods; lets the nodes read the ConfigMap; assigns it; and waits until each node
runs it, or tells in the node's own words why not.
`

const caveats = `The nodes need kubelet-supervisor, and the cluster "kubectl kubelet install"
once. For shell completion on Linux and macOS put kubectl_complete-kubelet,
which comes with the plugin, on your PATH.
`

// installedOn gives the files of an archive that Krew installs, the program first. The completion is a shell's script.
func installedOn(system string) []string {
	if system == "windows" {
		return []string{"kubectl-kubelet.exe", "LICENSE", "licences.txt"}
	}
	return []string{"kubectl-kubelet", "kubectl_complete-kubelet", "LICENSE", "licences.txt"}
}

// manifestOf describes archives, which must hold what is to be installed.
func manifestOf(version string, archives []string) (manifest, error) {
	var m manifest
	m.APIVersion, m.Kind, m.Metadata.Name = apiVersion, kind, pluginName
	m.Spec = manifestSpec{
		Version:  krewVersion(version),
		Homepage: home, Description: description, Caveats: caveats,
		ShortDescription: "Change the kubelet configuration of live nodes",
	}
	for _, archive := range archives {
		p, err := platformOf(version, archive)
		if err != nil {
			return m, fmt.Errorf("archive %s: %w", archive, err)
		}
		m.Spec.Platforms = append(m.Spec.Platforms, p)
	}
	return m, nil
}

var released = regexp.MustCompile(`^v\d+\.\d+\.\d+`)

// krewVersion is a semantic version. One without a tag comes before every release.
func krewVersion(version string) string {
	if released.MatchString(version) {
		return version
	}
	return "v0.0.0-0.git-" + version
}

func platformOf(version, archive string) (platform, error) {
	name := filepath.Base(archive)
	words := strings.Split(strings.TrimSuffix(name, ".tar.gz"), "_")
	if len(words) < 4 || !strings.HasSuffix(name, ".tar.gz") {
		return platform{}, errors.New("its name is not kubectl-kubelet_VERSION_OS_ARCH.tar.gz")
	}
	content, err := os.ReadFile(archive)
	if err != nil {
		return platform{}, err
	}
	held, err := filesIn(content)
	if err != nil {
		return platform{}, err
	}
	sum := sha256.Sum256(content)
	system := words[len(words)-2]
	installed := installedOn(system)
	p := platform{
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"os": system, "arch": words[len(words)-1]}},
		URI:      home + "/releases/download/" + version + "/" + name,
		SHA256:   hex.EncodeToString(sum[:]),
		Bin:      installed[0],
	}
	for _, file := range installed {
		if !slices.Contains(held, file) {
			return platform{}, fmt.Errorf("it has no %s", file)
		}
		p.Files = append(p.Files, fileOperation{From: file, To: "."})
	}
	return p, nil
}

func filesIn(archive []byte) (names []string, err error) {
	unzipped, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		return nil, fmt.Errorf("unzipping it: %w", err)
	}
	for reader := tar.NewReader(unzipped); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return names, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading it: %w", err)
		}
		names = append(names, header.Name)
	}
}
