//go:build linux

package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestTheStartCommandOfAUnit(t *testing.T) {
	kubelet := fakeKubelet
	script := func(text string) string {
		path := written(t, filepath.Join(t.TempDir(), "kubelet.sh"), "#!/bin/sh\n"+text+"\n")
		if err := os.Chmod(path, 0o755); err != nil {
			t.Fatal(err)
		}
		return path
	}
	becomes, beside := script(`exec `+kubelet+` "$@"`), script("# no exec\n"+kubelet+` "$@"`)
	for name, test := range map[string]struct {
		files []string
		want  string // prefix, a space, line
		error string
	}{
		"a plain unit": {
			files: []string{"[Unit]\nExecStart=no\n[Service]\nExecStart=" + kubelet + " --v=2\n[Install]\nExecStart=no\n"},
			want:  " " + kubelet + " --v=2",
		},
		"kubeadm's drop-in takes the place of the unit's": {
			files: []string{"[Service]\nExecStart=" + kubelet + "\n", "[Service]\nExecStart=\nExecStart=" + kubelet + " $KUBELET_KUBECONFIG_ARGS $KUBELET_EXTRA_ARGS\n"},
			want:  " " + kubelet + " $KUBELET_KUBECONFIG_ARGS $KUBELET_EXTRA_ARGS",
		},
		"quotes, specifiers and escapes are left to systemd": {
			files: []string{"[Service]\nExecStart=\"" + kubelet + "\" --node-labels='a=b c' --hostname-override=%H --x=$$HOME\\x20\n"},
			want:  " \"" + kubelet + "\" --node-labels='a=b c' --hostname-override=%H --x=$$HOME\\x20",
		},
		"lines that go on, with a comment between": {
			files: []string{"[Service]\nExecStart=" + kubelet + " \\\n  --a=1 \\\n# not this\n  --b=2\nRestart=always\n"},
			want:  " " + kubelet + " --a=1 --b=2",
		},
		"spaces around, and failures that are ignored": {
			files: []string{"[Service]\n  ExecStart = -" + kubelet + " --a\n"},
			want:  "- " + kubelet + " --a",
		},
		"a byte order mark, which systemd passes over": {
			files: []string{"[Service]\nExecStart=" + kubelet + " --config=/a\n", "\uFEFF[Service]\nExecStart=\nExecStart=" + kubelet + " --config=/b\n"},
			want:  " " + kubelet + " --config=/b",
		},
		"blanks of joined lines, within quotes and without": {
			files: []string{"[Service]\nExecStart=" + kubelet + "  \\\n\t\t--a='b \\\n  c' \\\n\n"},
			want:  " " + kubelet + " --a='b    c'",
		},
		"lines of another system": {
			files: []string{"[Service]\r\nExecStart=" + kubelet + " \\\r\n --a\r\nRestart=always\r\n"},
			want:  " " + kubelet + " --a",
		},
		"two backslashes, and one with a blank behind it, join no lines": {
			files: []string{"[Service]\nExecStart=\nEnvironment=A=\\\\\nEnvironment=B=\\ \nExecStart=" + kubelet + " --b\n"},
			want:  " " + kubelet + " --b",
		},
		"a script that becomes the kubelet":      {files: []string{"[Service]\nExecStart=" + becomes + " --a\n"}, want: " " + becomes + " --a"},
		"a script that stays beside the kubelet": {files: []string{"[Service]\nExecStart=" + beside + "\n"}, error: "a script that does not become the kubelet"},
		"commented out":                          {files: []string{"[Service]\n#ExecStart=" + kubelet + "\n;ExecStart=" + kubelet + "\n"}, error: "have 0 ExecStart lines"},
		"two commands":                           {files: []string{"[Service]\nExecStart=" + kubelet + "\n", "[Service]\nExecStart=" + kubelet + "\n"}, error: "have 2 ExecStart lines"},
		"taken back":                             {files: []string{"[Service]\nExecStart=" + kubelet + "\n", "[Service]\nExecStart=\n"}, error: "have 0 ExecStart lines"},
		"another name for the program":           {files: []string{"[Service]\nExecStart=@" + kubelet + " kubelet\n"}, error: "with one of @ : |"},
		"variables that are not expanded":        {files: []string{"[Service]\nExecStart=:" + kubelet + " $A\n"}, error: "with one of @ : |"},
		"a shell":                                {files: []string{"[Service]\nExecStart=/bin/sh -c 'exec " + kubelet + "'\n"}, error: "starts /bin/sh: ExecStart must run the kubelet directly"},
		"the supervisor, put there by hand":      {files: []string{"[Service]\nExecStart=/usr/local/bin/kubelet-supervisor run -- " + kubelet + "\n"}, error: "runs kubelet-supervisor already: remove it first"},
		"a kubelet that is not there":            {files: []string{"[Service]\nExecStart=/absent/kubelet\n"}, error: "names a kubelet that cannot be run"},
	} {
		t.Run(name, func(t *testing.T) {
			var files []string
			for i, content := range test.files {
				files = append(files, written(t, filepath.Join(t.TempDir(), string(rune('a'+i))+".conf"), content))
			}
			got, err := readStartCommand(files)
			switch {
			case test.error != "" && (err == nil || !strings.Contains(err.Error(), test.error)):
				t.Errorf("error %v", err)
			case test.error == "" && (err != nil || got.prefix+" "+got.line != test.want || got.source != files[len(files)-1]):
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
}

func FuzzLogicalLines(f *testing.F) {
	f.Add([]byte("[Service]\nExecStart=/usr/bin/kubelet \\\n # c\n --a\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, line := range logicalLines(data) {
			if strings.Contains(line.text, "\n") {
				t.Errorf("not one line: %q", line.text)
			}
		}
		_ = serviceValues(data, "ExecStart")
	})
}

// Files from which systemd would start the supervisor at its next start.
func TestFilesOfAUnit(t *testing.T) {
	state := unitState{FragmentPath: "/usr/lib/systemd/system/kubelet.service", DropInPaths: []string{"/usr/lib/systemd/system/kubelet.service.d/10-kubeadm.conf", "/etc/systemd/system/kubelet.service.d/20-a.conf", "/etc/systemd/system/kubelet.service.d/30-b.conf"},
		properties: map[string][]string{"EnvironmentFiles": {"/var/lib/kubelet/kubeadm-flags.env (ignore_errors=yes)", "/etc/default/*.env (ignore_errors=no)"}}}
	want := []string{"/etc/default/*.env", "/etc/systemd/system/kubelet.service.d/*.conf", "/run/systemd/system/kubelet.service.d/*.conf", "/usr/lib/systemd/system/kubelet.service", "/usr/lib/systemd/system/kubelet.service.d/*.conf", "/var/lib/kubelet/kubeadm-flags.env"}
	if got := filesOf("kubelet.service", state); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
