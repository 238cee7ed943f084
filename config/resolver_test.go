package config

import (
	"path/filepath"
	"strings"
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
	gone := filepath.Join(t.TempDir(), "gone")
	for name, test := range map[string]struct {
		then, own Effective
		missing   bool
	}{
		"there":                          {resolving(t, "resolvConf: "+there), resolving(t, ""), false},
		"gone":                           {resolving(t, "resolvConf: "+gone), resolving(t, "resolvConf: "+there), true},
		"gone, and nobody knows its own": {resolving(t, "resolvConf: "+gone), Effective{}, true},
		"the node's own is the same":     {resolving(t, "resolvConf: "+gone), resolving(t, "resolvConf: "+gone), false},
		"none":                           {resolving(t, `resolvConf: ""`), resolving(t, "resolvConf: "+there), false},
		"not known":                      {Effective{}, resolving(t, "resolvConf: "+there), false},
		"it cannot be looked at":         {resolving(t, "resolvConf: "+there+"/below"), resolving(t, ""), false},
	} {
		if words := MissingResolvConf(test.then, test.own); (words != "") != test.missing || test.missing && !strings.Contains(words, "resolvConf names "+gone+", and this node does not have") {
			t.Errorf("%s: %q", name, words)
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
