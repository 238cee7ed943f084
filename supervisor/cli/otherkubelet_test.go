//go:build linux

package cli

import (
	"path/filepath"
	"strings"
	"testing"
)

// On a node whose kubelet another unit runs, enable adds none, and says which unit that is.
func TestANodeWhoseKubeletIsAnothers(t *testing.T) {
	for name, test := range map[string]struct {
		active  string // of list-units
		runs    []runningKubelet
		unit    string // how kubelet.service is; "" where there is none
		refused string
	}{
		"nobody":                                  {"", nil, "", ""},
		"k3s":                                     {"k3s.service loaded active running Lightweight Kubernetes\n", nil, "", "k3s.service runs this node's kubelet, and it is a part of k3s"},
		"k3s that only starts":                    {"k3s-agent.service loaded activating start start Lightweight Kubernetes\n", nil, "", "enable --unit=k3s-agent.service says why"},
		"k3s, and a kubelet's package":            {"k3s.service loaded active running Lightweight Kubernetes\n", nil, "inactive", "never starts a second kubelet"},
		"a snap":                                  {"snap.kubelet-eks.daemon.service loaded active running Service for snap\n", nil, "", "snap.kubelet-eks.daemon.service runs this node's kubelet, and snap starts it"},
		"a unit of another name":                  {"", []runningKubelet{{7, "kubelet", "node-agent.service"}}, "", "kubelet-supervisor enable --unit=node-agent.service"},
		"that, and a kubelet's package":           {"", []runningKubelet{{7, "kubelet", "node-agent.service"}}, "inactive", "process 7 (kubelet) of node-agent.service"},
		"that, and one that cannot start":         {"", []runningKubelet{{7, "kubelet", "node-agent.service"}}, "activating", "process 7 (kubelet) of node-agent.service"},
		"a container":                             {"", []runningKubelet{{7, "hyperkube", "docker-0123.scope"}}, "", "in docker-0123.scope, which is no service"},
		"a process that nothing is told of":       {"", []runningKubelet{{7, "kubelet", ""}}, "", ""},
		"the unit itself":                         {"", []runningKubelet{{7, "kubelet", kubeletUnit}}, "activating", ""},
		"the unit of our own":                     {"", []runningKubelet{{7, "kubelet", ownUnit}}, "inactive", ""},
		"the unit itself, and one on other ports": {"", []runningKubelet{{7, "kubelet", "test.service"}}, "active", ""},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			h.kubelets = func() []runningKubelet { return test.runs }
			written(t, h.folder+"/active-units", test.active)
			if test.unit != "" {
				h.kubelet(test.unit)
			} else {
				written(t, h.flagsFile, "KUBELET="+fakeKubelet+"\nKUBELET_ARGS=--v=2\n"+h.flags(""))
				written(t, h.folder+"/loaded/"+ownUnit, "LoadState=loaded\nFragmentPath="+filepath.Join(h.folder, "etc", ownUnit)+execStart("@LINE@"))
			}
			err := h.enable(t.Context(), true)
			if test.refused == "" && err != nil || test.refused != "" && (err == nil || !strings.Contains(err.Error(), test.refused) || h.changes() != "" || h.has(h.folder+"/etc")) {
				t.Errorf("%v; did %s", err, h.changes())
			}
		})
	}
}

// Where there is neither a unit nor a program, the words lead to --unit, and not to a second kubelet.
func TestANodeWithoutAKubelet(t *testing.T) {
	h := newHost(t)
	written(t, h.flagsFile, "KUBELET=/absent/kubelet\n")
	err := h.enable(t.Context(), false)
	if err == nil || !strings.Contains(err.Error(), "--unit") || !strings.Contains(err.Error(), "systemctl list-units") {
		t.Error(err)
	}
}

func TestUnitOfACgroup(t *testing.T) {
	for cgroups, want := range map[string]string{
		"0::/system.slice/kubelet.service\n":                                                  "kubelet.service",
		"0::/system.slice/k3s.service/init\n":                                                 "k3s.service",
		"12:cpu,cpuacct:/user.service\n1:name=systemd:/runtime.slice/kubelet.service\n0::/\n": "kubelet.service",
		"0::/system.slice/docker-0123.scope\n":                                                "docker-0123.scope",
		"0::/user.slice/user-0.slice/session-3.scope\n":                                       "session-3.scope",
		"0::/podruntime/kubelet\n":                                                            "",
		"":                                                                                    "",
	} {
		if unit := unitOfCgroup(cgroups); unit != want {
			t.Errorf("%q: %q, want %q", cgroups, unit, want)
		}
	}
}
