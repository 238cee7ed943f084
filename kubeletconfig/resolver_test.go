//go:build linux

package kubeletconfig

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// resolving is the effective configuration with this line; "" leaves it to the kubelet's default.
func resolving(t *testing.T, line string) Effective {
	t.Helper()
	return ReadEffective(nil, written(t, "kubelet.yaml", header+line))
}

func TestResolvConf(t *testing.T) {
	for name, test := range map[string]struct {
		effective Effective
		path      string
		known     bool
	}{
		"named":        {resolving(t, "resolvConf: /a"), "/a", true},
		"none":         {resolving(t, `resolvConf: ""`), "", true},
		"not said":     {resolving(t, ""), "/etc/resolv.conf", true},
		"taken back":   {resolving(t, "resolvConf: null"), "/etc/resolv.conf", true},
		"by a flag":    {ReadEffective([]string{"--resolv-conf=/f"}, written(t, "kubelet.yaml", header+"resolvConf: /a")), "/f", true},
		"none by flag": {ReadEffective([]string{"--resolv-conf="}, written(t, "kubelet.yaml", header+"resolvConf: /a")), "", true},
		"not known":    {Effective{}, "", false},
	} {
		if path, known := test.effective.ResolvConf(); path != test.path || known != test.known {
			t.Errorf("%s: %q, known: %t", name, path, known)
		}
	}
}

func TestMissingResolvConf(t *testing.T) {
	there := written(t, "resolv.conf", "nameserver 10.0.0.1\n")
	folder := t.TempDir()
	in := func(name string) string { return filepath.Join(folder, name) }
	for name, target := range map[string]string{"link": there, "link-to-folder": folder, "dangling": in("gone"), "loop": in("loop")} {
		if err := os.Symlink(target, in(name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(in("fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	const missing, directory, special, cannot = "this node does not have that file", "on this node that is a directory, not a file", "on this node that is not a regular file", "this node cannot have that file: "
	own := resolving(t, "resolvConf: "+there)
	names := func(path string) Effective { return resolving(t, "resolvConf: "+path) }
	for name, test := range map[string]struct {
		then, own Effective
		path      string
		fault     string // "" is none
	}{
		"there":                           {names(there), resolving(t, ""), there, ""},
		"empty":                           {names(written(t, "empty", "")), own, "", ""},
		"a link to it":                    {names(in("link")), own, "", ""},
		"gone":                            {names(in("gone")), own, in("gone"), missing},
		"gone, and nobody knows its own":  {names(in("gone")), Effective{}, in("gone"), missing},
		"a link to what is gone":          {names(in("dangling")), own, in("dangling"), missing},
		"a link to itself":                {names(in("loop")), own, in("loop"), cannot + "too many levels of symbolic links"},
		"a folder":                        {names(folder), own, folder, directory},
		"a link to a folder":              {names(in("link-to-folder")), own, in("link-to-folder"), directory},
		"a pipe":                          {names(in("fifo")), own, in("fifo"), special},
		"a device":                        {names("/dev/null"), own, "/dev/null", special},
		"below a file":                    {names(there + "/below"), resolving(t, ""), there + "/below", cannot + "not a directory"},
		"the node's own is the same":      {names(in("gone")), names(in("gone")), "", ""},
		"the node's own is a folder, too": {names(folder), names(folder), "", ""},
		"none":                            {resolving(t, `resolvConf: ""`), own, "", ""},
		"not known":                       {Effective{}, own, "", ""},
	} {
		want := ""
		if test.fault != "" {
			want = "resolvConf names " + test.path + ", and " + test.fault + ", so that no pod could be started; "
		}
		if words := MissingResolvConf(test.then, test.own); !strings.HasPrefix(words, want) || want == "" && words != "" {
			t.Errorf("%s: %q", name, words)
		}
	}
	if os.Geteuid() != 0 {
		closed := written(t, "closed", "")
		if err := os.Chmod(closed, 0); err != nil {
			t.Fatal(err)
		}
		if words := MissingResolvConf(names(closed), own); !strings.Contains(words, "permission denied") {
			t.Errorf("one that cannot be read: %q", words)
		}
	}
}

func TestLoopingResolver(t *testing.T) {
	stub := written(t, "stub.conf", "# systemd-resolved\nnameserver 127.0.0.53\noptions edns0\n")
	both := written(t, "both.conf", "nameserver ::1\nnameserver 10.0.0.1\n")
	real := resolving(t, "resolvConf: "+written(t, "real.conf", "search a\n  nameserver 10.0.0.1 \n"))
	looping := func(content string) Effective {
		return resolving(t, "resolvConf: "+written(t, "r.conf", content))
	}
	for name, test := range map[string]struct {
		then   Effective
		others []Effective
		server string // that the warning names; "" = no warning
	}{
		"the stub of systemd-resolved":       {resolving(t, "resolvConf: "+stub), []Effective{real}, "127.0.0.53"},
		"the second of the others has one":   {resolving(t, "resolvConf: "+stub), []Effective{{}, resolving(t, `resolvConf: ""`), real}, "127.0.0.53"},
		"IPv6":                               {looping("nameserver ::1"), []Effective{real}, "::1"},
		"IPv4 in IPv6":                       {looping("nameserver ::ffff:127.0.0.1"), []Effective{real}, "::ffff:127.0.0.1"},
		"two of them":                        {looping("nameserver 127.0.0.1\nnameserver ::1"), []Effective{real}, "127.0.0.1"},
		"another one, too":                   {resolving(t, "resolvConf: "+both), []Effective{real}, ""},
		"a name that nobody knows":           {looping("nameserver fe80::1%eth0x y\nnameserver localhost"), []Effective{real}, ""},
		"none at all":                        {looping("search a"), []Effective{real}, ""},
		"what runs has it, too":              {resolving(t, "resolvConf: "+stub), []Effective{resolving(t, "resolvConf: "+stub)}, ""},
		"what runs has another loopback":     {resolving(t, "resolvConf: "+stub), []Effective{looping("nameserver 127.0.0.1")}, ""},
		"what runs is not known":             {resolving(t, "resolvConf: "+stub), []Effective{{}}, ""},
		"nothing is known":                   {Effective{}, []Effective{real}, ""},
		"no resolv.conf":                     {resolving(t, `resolvConf: ""`), []Effective{real}, ""},
		"a resolv.conf that cannot be found": {resolving(t, "resolvConf: /nowhere/resolv.conf"), []Effective{real}, ""},
	} {
		words := LoopingResolver(test.then, test.others...)
		if (words != "") != (test.server != "") || test.server != "" && !strings.Contains(words, "the loopback address "+test.server+"; ") {
			t.Errorf("%s: %q", name, words)
		}
	}
}
