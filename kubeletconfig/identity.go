package kubeletconfig

import (
	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig/commandline"
)

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"

	"github.com/kubelet-supervisor/kubelet-supervisor/internal/bounded"
)

// maxFile bounds, in bytes, the files of the node that are read: --config and the drop-in files.
const maxFile = 4 << 20

// Identity tells apart everything besides the payload that decides what a kubelet makes of it. Two identities are equal (==) when a verdict
// about a payload holds for both.
type Identity struct {
	Binary    string `json:"binary"`    // ELF build id, size and mtime of the executable; without a build id its SHA-256
	Arguments string `json:"arguments"` // SHA-256 of the command line
	Local     string `json:"local"`     // SHA-256 of the drop-in files and of the feature gates in the local --config file
}

// Identify looks at the kubelet executable (links followed), its command line and the local files that take part in every configuration.
// The binary is hashed only where it has no build id, and then once: reading some 80 MB costs more than the whole start may take. Drop-in
// files that cannot be read count as unreadable; the kubelet reports them. The error is about the executable.
func Identify(kubelet string, argv []string) (Identity, error) {
	binary, err := identifyBinary(kubelet)
	if err != nil {
		return Identity{}, fmt.Errorf("identifying the kubelet binary: %w", err)
	}
	arguments := newDigest()
	arguments.add(argv...)
	local := newDigest()
	eachDropIn(commandline.Parse(argv).ConfigDir, func(file dropIn) {
		local.add("file", file.name, file.fault(), string(file.bytes))
	})
	gates := LocalGates(argv)
	for _, name := range slices.Sorted(maps.Keys(gates)) {
		local.add("gate", name, strconv.FormatBool(gates[name]))
	}
	return Identity{
		Binary:    binary,
		Arguments: arguments.String(),
		Local:     local.String(),
	}, nil
}

// LocalContent digests the file behind --config, byte for byte, as "sha256:" and 64 hex digits; "sha256:none" for a command line without
// one. A file that cannot be read counts by the reason: the kubelet has to be asked about it too.
func LocalContent(argv []string) string {
	path := commandline.Parse(argv).Config
	if path == "" {
		return noFile
	}
	content, err := ReadFile(path)
	if err != nil {
		content = []byte("unreadable: " + err.Error())
	}
	return digestOfFile(content)
}

const noFile = "sha256:none"

// digestOfFile is what sha256sum would say.
func digestOfFile(content []byte) string {
	sum := sha256.Sum256(content)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// LocalGates gives the feature gates of the local --config file, to be added to what is rendered; nil without a file, or when it cannot be
// read or decoded.
func LocalGates(argv []string) map[string]bool {
	named, _ := readTree(commandline.Parse(argv).Config)["featureGates"].(map[string]any)
	var gates map[string]bool
	for name, value := range named {
		enabled, ok := value.(bool)
		if !ok {
			continue
		}
		if gates == nil {
			gates = map[string]bool{}
		}
		gates[name] = enabled
	}
	return gates
}

type dropIn struct {
	name  string // relative to the folder
	bytes []byte
	err   error
}

func (d dropIn) fault() string {
	if d.err != nil {
		return "unreadable"
	}
	return ""
}

// eachDropIn reads the files that the kubelet merges over its --config file, one at a time, in its order: *.conf, recursively, in lexical
// order, links to folders not followed (mergeKubeletConfigurations of Kubernetes 1.36). None for "".
func eachDropIn(folder string, use func(dropIn)) {
	if folder == "" {
		return
	}
	_ = filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			use(dropIn{name: path, err: err})
			return nil
		}
		if entry.IsDir() || filepath.Ext(entry.Name()) != ".conf" {
			return nil
		}
		name, err := filepath.Rel(folder, path)
		if err != nil {
			name = path
		}
		content, err := ReadFile(path)
		use(dropIn{name: name, bytes: content, err: err})
		return nil
	})
}

// readTree decodes a file of the node; nil when that fails or path is "".
func readTree(path string) map[string]any {
	if path == "" {
		return nil
	}
	content, err := ReadFile(path)
	if err != nil {
		return nil
	}
	tree, err := Decode(content)
	if err != nil {
		return nil
	}
	return tree
}

// openRegular opens a regular file. A named pipe or a device in its place would block or never end.
func openRegular(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", path)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// ReadFile reads a regular file of at most maxFile bytes.
func ReadFile(path string) ([]byte, error) {
	file, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	content, err := bounded.Read(file, maxFile)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	return content, nil
}
