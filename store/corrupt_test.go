//go:build linux

package store

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// An obstacle is something that is not a readable file of ours, put where one should be.
type obstacle struct {
	name string
	put  func(t *testing.T, path string)
	says string
}

var obstacles = []obstacle{
	{"a link to a good file", func(t *testing.T, path string) {
		target := filepath.Join(t.TempDir(), "target")
		must(t, os.WriteFile(target, []byte(serializedSource), 0o600))
		must(t, os.Symlink(target, path))
	}, "is a symbolic link instead of a file"},
	{"a link to nothing", func(t *testing.T, path string) { must(t, os.Symlink("nothing", path)) }, "is a symbolic link instead of a file"},
	{"a folder", func(t *testing.T, path string) { must(t, os.MkdirAll(filepath.Join(path, "x"), 0o700)) }, "is a folder instead of a file"},
	{"a pipe", func(t *testing.T, path string) { must(t, syscall.Mkfifo(path, 0o600)) }, "is a special file instead of a file"},
	{"somebody else's file", func(t *testing.T, path string) {
		must(t, os.WriteFile(path, []byte(serializedSource), 0o600))
		giveAway(t, path)
	}, "belongs to user 65534, not to 0"},
	{"a file without end", func(t *testing.T, path string) {
		must(t, os.WriteFile(path, nil, 0o600))
		must(t, os.Truncate(path, 1<<40))
	}, "is longer than 1048576 bytes"},
}

// contents put bytes where others should be.
func contents(name, bytes, says string) obstacle {
	return obstacle{name, func(t *testing.T, path string) { must(t, os.WriteFile(path, []byte(bytes), 0o600)) }, says}
}

// bomb is within the limit of a file, and would become 10 GiB.
var bomb = "a: &a " + strings.Repeat("x", 500_000) + "\nb: [" + strings.Repeat("*a,", 20_000) + "*a]\n"

func TestCorruptSourceIsSetAside(t *testing.T) {
	for _, row := range append([]obstacle{
		contents("cut short", serializedSource[:60], "instead of SerializedNodeConfigSource"),
		contents("cut in the source", serializedSource[:len(serializedSource)-10], "empty UID is ambiguous"),
		contents("zeros, as after a power cut", strings.Repeat("\x00", len(serializedSource)), "does not decode"),
		contents("blank", "\n", "instead of SerializedNodeConfigSource"),
		contents("no YAML", "{", "does not decode"),
		contents("another kind", strings.Replace(serializedSource, "SerializedNodeConfigSource", "KubeletConfiguration", 1), `is "KubeletConfiguration" of`),
		contents("another version", strings.Replace(serializedSource, "v1beta1", "v1", 1), `of "kubelet.config.k8s.io/v1" instead of`),
		contents("no ConfigMap", serializedSource[:strings.Index(serializedSource, "  configMap")], "names no ConfigMap"),
		contents("a YAML bomb", bomb, "when its YAML aliases are followed"),
		contents("a uid that climbs", strings.Replace(serializedSource, "uid: uid", "uid: ../../etc", 1), "cannot be a file name"),
		contents("a version that is no string", strings.Replace(serializedSource, `"1"`, "[]", 1), "does not decode"),
	}, obstacles...) {
		for _, p := range []Pointer{Assigned, LastKnownGood} {
			t.Run(row.name+", "+string(p), func(t *testing.T) {
				s := corruptible(t)
				must(t, os.Mkdir(filepath.Join(s.dir, "meta"), 0o700))
				row.put(t, metaPath(s, p))
				loaded, err := s.LoadSource(p)
				wantError(t, err, row.says)
				aside := string(p) + ".corrupt-20260102T030405.000000006Z"
				wantError(t, err, "; set aside as "+aside)
				wantSource(t, loaded, nil)
				wantList(t, s, "meta", aside)
				loaded, err = s.LoadSource(p)
				must(t, err) // said once
				wantSource(t, loaded, nil)
			})
		}
	}
}

func TestCorruptDocumentIsSetAside(t *testing.T) {
	const good = "apiVersion: kubelet-supervisor.io/v1\nkind: Trial\n"
	for _, row := range append([]obstacle{
		contents("empty", "", `is "" of "" instead of Trial of kubelet-supervisor.io/v1`),
		contents("zeros", "\x00\x00\x00", "does not decode"),
		contents("cut short", good[:36], `is "" of "kubelet-supervisor.io/v1"`),
		contents("another kind", strings.Replace(good, "Trial", "Rejected", 1), `is "Rejected" of`),
		contents("a version from the future", strings.Replace(good, "/v1", "/v2", 1), `of "kubelet-supervisor.io/v2" instead of`),
		contents("a YAML bomb", bomb, "when its YAML aliases are followed"),
		contents("a list", "- 1\n", "is not a YAML object"),
		contents("a kind that is no string", "apiVersion: kubelet-supervisor.io/v1\nkind: []\n", `is "" of`),
		contents("a field of another type", good+"failures: many\nof: new\n", "does not decode"),
	}, obstacles...) {
		t.Run(row.name, func(t *testing.T) {
			s := corruptible(t)
			must(t, os.Mkdir(filepath.Join(s.dir, "meta"), 0o700))
			row.put(t, filepath.Join(s.dir, "meta", "trial"))
			got := trial{Of: "before", Failures: 7}
			err := s.LoadDocument("trial", "Trial", &got)
			wantError(t, err, row.says)
			wantError(t, err, "set aside as trial.corrupt-20260102T030405.000000006Z")
			if want := (trial{Of: "before", Failures: 7}); got != want {
				t.Errorf("the value became %+v, want it untouched", got)
			}
			must(t, s.LoadDocument("trial", "Trial", &got))
		})
	}
}

func TestCorruptCheckpointIsSetAside(t *testing.T) {
	in := func(name string, change func(t *testing.T, path string)) func(*testing.T, string) {
		return func(t *testing.T, parent string) { change(t, filepath.Join(parent, name)) }
	}
	write := func(bytes string) func(*testing.T, string) {
		return func(t *testing.T, path string) { must(t, os.WriteFile(path, []byte(bytes), 0o600)) }
	}
	remove := func(t *testing.T, path string) { must(t, os.RemoveAll(path)) }
	type row struct {
		name   string
		damage func(t *testing.T, parent string)
		says   string
	}
	rows := []row{
		{"a key changed", in("1/kubelet", write("kind: KubeletConfiguration")), "1/kubelet does not match its checksum"},
		{"a key cut short", in("1/kubelet", write("kind")), "1/kubelet does not match its checksum"},
		{"a key of length zero", in("1/kubelet", write("")), "1/kubelet does not match its checksum"},
		{"a key missing", in("1/kubelet", remove), "no such file"},
		{"a file too many", in("1/other", write("")), "1/other is not listed"},
		{"the folder missing", in("1", remove), "no such file"},
		{"the folder a file", in("1", func(t *testing.T, path string) { remove(t, path); write("")(t, path) }), "1 is a file instead of a folder"},
		{"the folder a link", in("1", func(t *testing.T, path string) {
			target := filepath.Join(t.TempDir(), "1")
			must(t, os.Rename(path, target))
			must(t, os.Symlink(target, path))
		}), "1 is a symbolic link instead of a folder"},
		{"the folder somebody else's", in("1", giveAway), "belongs to user 65534"},
		{"the marker empty", in("1.sha256", write("")), "is not listed"},
		{"the marker cut between lines", in("1.sha256", func(t *testing.T, path string) {
			marker, err := os.ReadFile(path)
			must(t, err)
			first, _, _ := strings.Cut(string(marker), "\n")
			write(first+"\n")(t, path)
		}), "1/kubelet is not listed"},
		{"the marker cut in a line", in("1.sha256", func(t *testing.T, path string) { must(t, os.Truncate(path, 100)) }), "names no file of the checkpoint"},
		{"the marker of another", in("1.sha256", write(sumOf(nil)+"  2/kubelet\n")), "names no file of the checkpoint"},
		{"a sum of the marker that is too long", in("1.sha256", write(sumOf(nil)+"z  1/kubelet\n")), "names no file of the checkpoint"},
		{"the marker without its folder", in("1.sha256", write(sumOf(nil)+"  kubelet\n")), "names no file of the checkpoint"},
		{"the marker leads elsewhere", in("1.sha256", write(sumOf(nil)+"  1/../2/kubelet\n")), "names no file of the checkpoint"},
	}
	for _, o := range obstacles {
		replace := func(t *testing.T, path string) { remove(t, path); o.put(t, path) }
		rows = append(rows, row{"the marker " + o.name, in("1.sha256", replace), o.says})
		if o.name != "a folder" && o.name != "a file without end" {
			rows = append(rows, row{"a key " + o.name, in("1/kubelet", replace), o.says})
		}
	}
	rows = append(rows, row{"a key without end", in("1/kubelet", func(t *testing.T, path string) { must(t, os.Truncate(path, 1<<40)) }), "is longer than"})

	rows = append(rows, row{"keys that are too long together", func(t *testing.T, parent string) {
		large := map[string]string{"a": strings.Repeat("x", 700<<10), "b": strings.Repeat("x", 700<<10), "ca.crt": "PEM", "kubelet": "x"}
		for key, content := range large {
			write(content)(t, filepath.Join(parent, "1", key))
		}
		write(string(encodeMarker("1", sumsOf(large))))(t, filepath.Join(parent, "1.sha256"))
	}, "is longer than"})

	payload := map[string]string{"kubelet": "kind: KubeletConfiguration\n", "ca.crt": "PEM"}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			s := corruptible(t)
			must(t, s.SaveCheckpoint(*source("1"), payload))
			row.damage(t, filepath.Join(s.dir, "checkpoints", "uid"))
			_, err := s.LoadCheckpoint(*source("1"))
			wantError(t, err, row.says)
			wantError(t, err, "; set aside as 1.corrupt-20260102T030405.000000006Z")
			if names := list(t, s.dir, "checkpoints", "uid"); regexp.MustCompile(`(^| )1(\.sha256)?( |$)`).MatchString(names) {
				t.Errorf("not set aside: %s", names)
			}
			_, err = s.LoadCheckpoint(*source("1"))
			wantError(t, err, "no checkpoint for source /api/v1/namespaces/namespace/configmaps/name")
			must(t, s.SaveCheckpoint(*source("1"), payload)) // and it heals
			saved, err := s.LoadCheckpoint(*source("1"))
			must(t, err)
			wantPayload(t, saved, payload)
		})
	}
}

// A folder of ours that is a link, a file or somebody else's is set aside like a file.
func TestCorruptFoldersAreSetAside(t *testing.T) {
	damages := map[string]func(t *testing.T, path string){
		"a link": func(t *testing.T, path string) {
			must(t, os.Rename(path, path+"-elsewhere"))
			must(t, os.Symlink(path+"-elsewhere", path))
		},
		"a file": func(t *testing.T, path string) {
			must(t, os.RemoveAll(path))
			must(t, os.WriteFile(path, nil, 0o600))
		},
		"somebody else's": giveAway,
	}
	for _, folder := range []string{"meta", "checkpoints", "checkpoints/uid"} {
		for name, damage := range damages {
			for _, saveFirst := range []bool{false, true} {
				t.Run(folder+" is "+name, func(t *testing.T) {
					s := corruptible(t)
					must(t, s.SaveSource(Assigned, source("1")))
					must(t, s.SaveCheckpoint(*source("1"), map[string]string{"kubelet": "x"}))
					damage(t, filepath.Join(s.dir, folder))
					if !saveFirst {
						_, sourceErr := s.LoadSource(Assigned)
						_, checkpointErr := s.LoadCheckpoint(*source("1"))
						if folder == "meta" {
							checkpointErr = sourceErr
						}
						wantError(t, checkpointErr, "set aside as "+filepath.Base(folder)+".corrupt-20260102T030405.000000006Z")
					}
					must(t, s.SaveSource(Assigned, source("1")))
					must(t, s.SaveCheckpoint(*source("1"), map[string]string{"kubelet": "x"}))
					_, err := s.LoadCheckpoint(*source("1"))
					must(t, err)
				})
			}
		}
	}
}

// What cannot be set aside stays where it is, and both is said.
func TestWhatCannotBeSetAside(t *testing.T) {
	disk := populated(t)
	must(t, disk.create("/state/meta/last-known-good", []byte("{")))
	disk.left = 0
	_, err := disk.store().LoadSource(LastKnownGood)
	wantError(t, err, "does not decode")
	wantError(t, err, "; it could not be set aside: "+errNoPower.Error())
	if disk.find("/state/meta/last-known-good") == nil {
		t.Error("it is gone")
	}
}

// A name that is too long with the time is cut, and not the time.
func TestALongNameIsSetAside(t *testing.T) {
	s := corruptible(t)
	name := strings.Repeat("n", 244)
	must(t, s.SaveDocument(name, "Trial", trial{}))
	must(t, os.WriteFile(filepath.Join(s.dir, "meta", name), []byte("{"), 0o600))
	err := s.LoadDocument(name, "Trial", &trial{})
	const suffix = ".corrupt-20260102T030405.000000006Z"
	wantError(t, err, "set aside as n")
	wantList(t, s, "meta", name[:255-len(suffix)]+suffix)
}

func corruptible(t *testing.T) *Store {
	s := open(t, t.TempDir())
	s.now = func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC) }
	return s
}

// list returns the names in a folder, sorted and separated by spaces; nothing for a folder that is not there.
func list(t *testing.T, folder ...string) string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(folder...))
	if !os.IsNotExist(err) {
		must(t, err)
	}
	names := make([]string, 0, len(entries))
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return strings.Join(names, " ")
}

func wantList(t *testing.T, s *Store, folder, want string) {
	t.Helper()
	if got := list(t, s.dir, folder); got != want {
		t.Errorf("%s holds %q, want %q", folder, got, want)
	}
}
