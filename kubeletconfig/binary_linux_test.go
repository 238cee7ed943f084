package kubeletconfig

import (
	"bytes"
	"encoding/binary"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// At the next boot the same file has another device number, where overlays and loop devices are counted as they are mounted, and on some
// image another inode and ctime. It is the same kubelet.
func TestTheSameBinaryAfterAReboot(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{"an ELF executable": read(t, program), "a script": "#!/bin/sh\nexec kubelet \"$@\"\n"} {
		before, after := filepath.Join(t.TempDir(), "kubelet"), filepath.Join(otherFileSystem(t), "kubelet")
		first := identityOf(t, before, content)
		binaryDigests = digestCache{} // nothing is remembered over a boot
		second := identityOf(t, after, content)
		if first != second || first == "" {
			t.Errorf("%s was %q and is %q", name, first, second)
		}
		if other := identityOf(t, after, content+"\n"); other == second {
			t.Errorf("%s is %q, although it differs", name, other)
		}
	}
}

// otherFileSystem is a folder with another device number than t.TempDir's.
func otherFileSystem(t *testing.T) string {
	t.Helper()
	folder, err := os.MkdirTemp("/dev/shm", "kubelet-")
	if err != nil {
		t.Skip("no second file system: ", err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	if device(t, folder) == device(t, t.TempDir()) {
		t.Skip("/dev/shm is the file system of the temporary folder")
	}
	return folder
}

func device(t *testing.T, path string) uint64 {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Sys().(*syscall.Stat_t).Dev
}

// identityOf gives what the content is called as an executable that was last changed at a certain time.
func identityOf(t *testing.T, path, content string) string {
	t.Helper()
	write(t, path, content)
	changed := time.Unix(1_700_000_000, 5)
	if err := os.Chtimes(path, changed, changed); err != nil {
		t.Fatal(err)
	}
	identity, err := Identify(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	return identity.Binary
}

func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

const realGoID = "h6RoKDpS7vEPnH1-bkOq/Eo5_bzcMfVsPmmJsYkzg/0FQ5uE4tHRXyS6fZS6fx/W7-3jXJYlWAPnn2yzd_A"

func TestBuildID(t *testing.T) {
	gnu := note("GNU\x00", 3, "\x01\x23\x45\x67\x89\xab\xcd\xef\x01\x23\x45\x67\x89\xab\xcd\xef\x01\x23\x45\x67")
	for name, test := range map[string]struct {
		file string
		want string
	}{
		"GNU":                      {elf64(gnu), "build id 0123456789abcdef0123456789abcdef01234567"},
		"Go":                       {elf64(note("Go\x00\x00", 4, realGoID)), "build id " + realGoID},
		"behind other notes":       {elf64(note("GNU\x00", 1, "0123456789abcdef") + note("Other name\x00", 3, "x") + gnu), "build id 0123456789abcdef0123456789abcdef01234567"},
		"Go before GNU's":          {elf64(gnu + note("Go\x00\x00", 4, realGoID)), "build id " + realGoID},
		"one that all builds have": {elf64(gnu + note("Go\x00\x00", 4, "redacted")), ""}, // GNU's is made of it
		"no note":                  {elf64(""), ""},
		"a short one":              {elf64(note("GNU\x00", 3, "\x01\x02")), ""},
		"zeros":                    {elf64(note("GNU\x00", 3, strings.Repeat("\x00", 20))), ""},
		"a note without an end":    {elf64(gnu[:len(gnu)-8]), ""},
		"a length that is a lie":   {elf64("\xff\xff\xff\xff\xff\xff\xff\xff\x03\x00\x00\x00GNU\x00"), ""},
		"no ELF":                   {"#!/bin/sh\n", ""},
		"cut off":                  {elf64(gnu)[:70], ""},
		"empty":                    {"", ""},
	} {
		if got := buildID(strings.NewReader(test.file)); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// Of a kubelet of 80 MB next to nothing is read.
func TestBuildIDReadsLittle(t *testing.T) {
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer program.Close()
	counted := &countingReader{ReaderAt: program}
	if id := buildID(counted); id == "" || counted.bytes > 64<<10 {
		t.Errorf("build id %q, by reading %d bytes", id, counted.bytes)
	}
}

type countingReader struct {
	io.ReaderAt
	bytes int
}

func (r *countingReader) ReadAt(p []byte, at int64) (int, error) {
	n, err := r.ReaderAt.ReadAt(p, at)
	r.bytes += n
	return n, err
}

// Without a build id the bytes count, and are read once.
func TestADigestIsKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kubelet")
	before := identityOf(t, path, "#!/bin/sh\n")
	if kept := binaryDigests.sum; !strings.HasSuffix(before, kept) || kept == "" {
		t.Fatalf("identity %q, kept %q", before, kept)
	}
	binaryDigests.sum = "the kept one"
	if again, _ := Identify(path, nil); again.Binary != "sha256:the kept one" {
		t.Errorf("read again: %q", again.Binary)
	}
	write(t, path, "#!/bin/sh\n# changed\n")
	if changed, _ := Identify(path, nil); changed.Binary == before || changed.Binary == "sha256:the kept one" {
		t.Errorf("not read again: %q", changed.Binary)
	}
}

// A kubelet that may be executed and not read is one all the same.
func TestABinaryThatCannotBeRead(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "kubelet") // for root may read any file
	if err := syscall.Mkfifo(pipe, 0o700); err != nil {
		t.Fatal(err)
	}
	identity, err := Identify(pipe, nil)
	if err != nil || !strings.HasPrefix(identity.Binary, "size 0, mtime ") {
		t.Errorf("%q, %v", identity.Binary, err)
	}
}

func note(name string, kind uint32, content string) string {
	var b bytes.Buffer
	for _, number := range []uint32{uint32(len(name)), uint32(len(content)), kind} {
		_ = binary.Write(&b, binary.LittleEndian, number)
	}
	for _, text := range []string{name, content} {
		b.WriteString(text + strings.Repeat("\x00", (4-len(text)%4)%4))
	}
	return b.String()
}

// elf64 is an executable of notes alone.
func elf64(notes string) string {
	const header, entry = 64, 56
	var b bytes.Buffer
	b.WriteString("\x7fELF\x02\x01\x01" + strings.Repeat("\x00", 9))
	for _, field := range []any{uint16(2), uint16(62), uint32(1), uint64(0), uint64(header), uint64(0), uint32(0), uint16(header), uint16(entry), uint16(1), uint16(0), uint16(0), uint16(0)} {
		_ = binary.Write(&b, binary.LittleEndian, field)
	}
	for _, field := range []any{uint32(4), uint32(4), uint64(header + entry), uint64(0), uint64(0), uint64(len(notes)), uint64(len(notes)), uint64(4)} {
		_ = binary.Write(&b, binary.LittleEndian, field)
	}
	return b.String() + notes
}
