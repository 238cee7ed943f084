//go:build linux

package cli

import (
	"path/filepath"
	"strings"
	"testing"
)

// A line of a unit, and the argv[] that systemctl show has for it: as systemd 252 and 257 say it in TestSystemdReadsUnitsAsEnableDoes of
// test/systemd.
func TestTheWordsThatSystemdStarts(t *testing.T) {
	for line, test := range map[string]struct{ systemds, other string }{
		`/k --a=1 --b=2`:                        {`/k --a=1 --b=2`, `/k --a=1`},
		`/k $ARGS ${ONE} $$HOME`:                {`/k $ARGS ${ONE} $$HOME`, `/k $ARGS ${ONE} $HOME`},
		`"/k" --labels='a=b c' --x="${Y}"`:      {`/k --labels=a=b c --x=${Y}`, `/k --labels='a=b c' --x=${Y}`},
		`/k "" --a`:                             {`/k  --a`, `/k --a`},
		`/k --host=%H --cpu=50%% --v=2`:         {`/k --host=node.example --cpu=50% --v=2`, `/k --host=node.example --cpu=50% --v=3`},
		`/k --a=\x41\102\u0043\tx \s \q "\"'"`:  {"/k --a=ABC\tx   \\q \"'", "/k --a=A"},
		`kubelet --a`:                           {`kubelet --a`, `kubectl --a`},
		`/k --reserved=cpu=1,memory=1Gi.*(a|b)`: {`/k --reserved=cpu=1,memory=1Gi.*(a|b)`, `/k --reserved=cpu=1,memory=1Gi...`},
		`/k --a=\x4`:                            {`/k --a=\x4`, `/k --a=x4`},
	} {
		words, err := splitWords(line)
		if err != nil {
			t.Fatal(err)
		}
		if pattern := samePattern(words); !pattern.MatchString(test.systemds) || pattern.MatchString(test.other) {
			t.Errorf("%s: %s\nmatches %q: %v, %q: %v", line, pattern, test.systemds, pattern.MatchString(test.systemds), test.other, pattern.MatchString(test.other))
		}
	}
	if words := startWords("{ path=/k ; argv[]=/k --a ; ignore_errors=no ; b ; ignore_errors=no ; start_time=[n/a] ; pid=0 }"); words != "/k --a ; ignore_errors=no ; b" {
		t.Errorf("read %q", words)
	}
}

// What systemd would start is another line than enable reads in the files: nothing is written.
func TestALineThatSystemdReadsOtherwise(t *testing.T) {
	for name, test := range map[string]struct {
		argv, more string
		now        bool
		want       string // of the error; "" for none
		changes    string
	}{
		"the same":         {fakeKubelet + " $KUBELET_KUBECONFIG_ARGS", "", true, "", "daemon-reload, restart kubelet.service"},
		"another":          {fakeKubelet + " --config=/a", "", true, "systemd reads kubelet.service otherwise than enable does", ""},
		"more":             {fakeKubelet + " $KUBELET_KUBECONFIG_ARGS --v=2", "", true, "and systemd starts\n  " + fakeKubelet + " $KUBELET_KUBECONFIG_ARGS --v=2", ""},
		"one more command": {fakeKubelet + " $KUBELET_KUBECONFIG_ARGS", execStart(fakeKubelet + " two"), true, "\n  and ", ""},
		"another, because systemd has not looked yet": {"@LINE@", "NeedDaemonReload=yes\n", true, "", "daemon-reload, daemon-reload, daemon-reload, daemon-reload, restart kubelet.service"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			h.kubelet("active")
			show := "LoadState=loaded\nActiveState=active\nFragmentPath=" + h.folder + "/lib/kubelet.service\nDropInPaths=" + h.folder + "/lib/kubelet.service.d/10-kubeadm.conf"
			written(t, filepath.Join(h.folder, "units/kubelet.service"), show+execStart(test.argv)+test.more)
			err := h.enable(t.Context(), test.now)
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) || h.changes() != test.changes {
				t.Errorf("%v; did %s", err, h.changes())
			}
			if h.has(h.dropInPath()) != (test.want == "") {
				t.Errorf("the drop-in is there: %t", h.has(h.dropInPath()))
			}
		})
	}
}

// A node that is enabled, and whose unit has another line since: that is compared, too, before the drop-in is written again.
func TestANewLineThatSystemdReadsOtherwise(t *testing.T) {
	for systemds, refused := range map[string]bool{"@TWIN@": false, fakeKubelet + " --other": true} {
		h := newHost(t)
		h.kubelet("active")
		if err := h.enable(t.Context(), false); err != nil {
			t.Fatal(err)
		}
		before := contentOf(t, h.dropInPath())
		written(t, filepath.Join(h.folder, "lib/kubelet.service.d/10-kubeadm.conf"), "[Service]\nExecStart=\nExecStart="+fakeKubelet+" --new\n")
		written(t, filepath.Join(h.folder, "loaded", twinUnit), "LoadState=loaded"+execStart(systemds))
		err := h.enable(t.Context(), true)
		if (err != nil) != refused || refused && !strings.Contains(err.Error(), "and systemd starts\n  "+systemds) || (contentOf(t, h.dropInPath()) == before) != refused {
			t.Errorf("%s: %v; did %s", systemds, err, h.changes())
		}
		if left, _ := filepath.Glob(h.folder + "/probes/*"); len(left) > 0 {
			t.Errorf("%s: %q are left", systemds, left)
		}
	}
}

// A dry run does not make systemd read anything.
func TestADryRunBeforeSystemdHasReadTheUnit(t *testing.T) {
	h := newHost(t)
	h.kubelet("active")
	h.dryRun = true
	written(t, filepath.Join(h.folder, "units/kubelet.service"), "LoadState=loaded\nActiveState=active\nNeedDaemonReload=yes\nFragmentPath="+h.folder+"/lib/kubelet.service"+execStart(fakeKubelet+" --old"))
	if err := h.enable(t.Context(), false); err != nil || h.changes() != "" || !strings.Contains(h.out.String(), "Not compared:") {
		t.Errorf("%v; did %s, said %s", err, h.changes(), h.out.String())
	}
}

// A drop-in that is right and that systemd has not read, or that another one overrides, is not up to date.
func TestADropInThatIsNotInForce(t *testing.T) {
	for name, show := range map[string]string{
		"not read":   "DropInPaths=DIR/lib/kubelet.service.d/10-kubeadm.conf" + execStart(fakeKubelet+" $KUBELET_KUBECONFIG_ARGS"),
		"changed":    "DropInPaths=DIR/lib/kubelet.service.d/10-kubeadm.conf DIR/etc/kubelet.service.d/" + dropInName + execStart("@LINE@") + "NeedDaemonReload=yes\n",
		"overridden": "DropInPaths=DIR/lib/kubelet.service.d/10-kubeadm.conf DIR/etc/kubelet.service.d/" + dropInName + execStart(fakeKubelet+" --other"),
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			h.kubelet("active")
			if err := h.enable(t.Context(), false); err != nil {
				t.Fatal(err)
			}
			h.out.Reset()
			written(t, filepath.Join(h.folder, "units/kubelet.service"), "LoadState=loaded\nActiveState=active\nFragmentPath="+h.folder+"/lib/kubelet.service\n"+strings.ReplaceAll(show, "DIR", h.folder))
			if err := h.enable(t.Context(), false); err != nil || !strings.HasPrefix(h.changes(), "daemon-reload, daemon-reload") {
				t.Errorf("%v; did %s, said %s", err, h.changes(), h.out.String())
			}
		})
	}
}

func TestASystemdThatIsTooOld(t *testing.T) {
	for said, refused := range map[string]bool{
		"systemd 219\n+PAM +AUDIT": true, "systemd 238 (238)": true, "systemd 239 (239-82.el8)": false, "systemd 257.7": false, "elogind": false,
	} {
		h := newHost(t)
		h.kubelet("active")
		written(t, h.folder+"/version", said+"\n")
		err := h.enable(t.Context(), false)
		if (err != nil) != refused || refused && !strings.Contains(err.Error(), "needs 239 or later") || h.has(h.dropInPath()) == refused {
			t.Errorf("%s: %v", said, err)
		}
	}
}
