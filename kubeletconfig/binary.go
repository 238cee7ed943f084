package kubeletconfig

import (
	"bytes"
	"crypto/sha256"
	"debug/elf"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
)

// Notes of an ELF file that name the build.
const (
	gnuBuildID = 3
	goBuildID  = 4
	maxNotes   = 64 << 10 // bytes
)

// identifyBinary names an executable so that the same one has the same name after a reboot. Its device number is no part of it, nor is its
// inode: where the file lies on an overlay, a loop device or an image, they are assigned again, and every verdict about the kubelet would
// be void.
func identifyBinary(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	looks := fmt.Sprintf("size %d, mtime %d.%09d", info.Size(), info.ModTime().Unix(), info.ModTime().Nanosecond())
	file, err := openRegular(path)
	if err != nil {
		return looks, nil // it may be executable anyway
	}
	defer file.Close()
	if id := buildID(file); id != "" {
		return id + ", " + looks, nil
	}
	sum, err := binaryDigests.of(file)
	if err != nil {
		return looks, nil
	}
	return "sha256:" + sum, nil
}

// buildID gives what the linker called the build; "" where there is no such name, or one that other builds have too. Only the notes are
// read, some KB.
func buildID(file io.ReaderAt) string {
	program, err := elf.NewFile(file)
	if err != nil {
		return ""
	}
	gnu := ""
	for _, segment := range program.Progs {
		if segment.Type != elf.PT_NOTE || segment.Filesz > maxNotes {
			continue
		}
		notes, err := io.ReadAll(segment.Open())
		if err != nil {
			return ""
		}
		for len(notes) > 0 {
			var n elfNote
			if n, notes = nextNote(notes, program.ByteOrder); n.name == "Go" && n.kind == goBuildID {
				return nameOf(goID(n.content))
			}
			if n.name == "GNU" && n.kind == gnuBuildID {
				gnu = gnuID(n.content)
			}
		}
	}
	return nameOf(gnu)
}

func nameOf(id string) string {
	if id == "" {
		return ""
	}
	return "build id " + id
}

// goID leaves out what is set by hand to be the same for all builds, such as "redacted". The linker's own has a hash of what it was made
// of, and one of what came out.
func goID(content []byte) string {
	if id := string(content); strings.Contains(id, "/") && len(id) >= 40 {
		return id
	}
	return ""
}

func gnuID(content []byte) string {
	if len(content) < 16 || len(bytes.Trim(content, "\x00")) == 0 {
		return ""
	}
	return hex.EncodeToString(content)
}

type elfNote struct {
	name    string
	kind    uint32
	content []byte
}

// nextNote takes the first note; no rest where that is not whole.
func nextNote(notes []byte, order binary.ByteOrder) (n elfNote, rest []byte) {
	const header = 12
	if len(notes) < header {
		return n, nil
	}
	name, content := uint64(order.Uint32(notes)), uint64(order.Uint32(notes[4:]))
	n.kind = order.Uint32(notes[8:])
	notes = notes[header:]
	if aligned(name)+content > uint64(len(notes)) {
		return elfNote{}, nil
	}
	n.name = strings.TrimRight(string(notes[:name]), "\x00")
	notes = notes[aligned(name):]
	n.content = notes[:content]
	return n, notes[min(aligned(content), uint64(len(notes))):]
}

func aligned(length uint64) uint64 { return (length + 3) &^ 3 }

// binaryDigests keeps the digest of the newest executable that has no build id: reading some 80 MB takes longer than a whole start may.
var binaryDigests digestCache

type digestCache struct {
	mutex sync.Mutex
	stamp fileStamp
	sum   string
}

func (c *digestCache) of(file *os.File) (string, error) {
	info, err := file.Stat()
	if err != nil {
		return "", err
	}
	stamp := stampOf(info)
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.sum != "" && c.stamp == stamp && stamp != (fileStamp{}) {
		return c.sum, nil
	}
	digest := sha256.New()
	if _, err := io.Copy(digest, file); err != nil {
		return "", err
	}
	c.stamp, c.sum = stamp, hex.EncodeToString(digest.Sum(nil))
	return c.sum, nil
}
