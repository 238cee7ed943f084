//go:build linux

package cli

import (
	"cmp"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The kubelet's units of distributions and installers, written in their manner; each names where it is from. Talos and Bottlerocket are not among
// them: hosts whose units nobody may change. RKE1 runs the kubelet in a container.
func TestUnitsOfDistributions(t *testing.T) {
	const kubeadms = "KUBELET $KUBELET_KUBECONFIG_ARGS $KUBELET_CONFIG_ARGS $KUBELET_KUBEADM_ARGS $KUBELET_EXTRA_ARGS"
	for name, test := range map[string]struct {
		line    string // that is taken over
		refused string // why it is not
		other   string // the unit that is not ours to take over, as enable without --unit says
	}{
		"kubeadm-deb":          {line: kubeadms},
		"kubeadm-rpm":          {line: kubeadms},
		"kind":                 {line: kubeadms + " --runtime-cgroups=/system.slice/containerd.service"},
		"minikube":             {line: "KUBELET --bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf --config=/var/lib/kubelet/config.yaml --hostname-override=minikube --kubeconfig=/etc/kubernetes/kubelet.conf --node-ip=192.0.2.49"},
		"kubespray":            {line: "KUBELET $KUBE_LOGTOSTDERR $KUBE_LOG_LEVEL $KUBELET_ARGS $KUBELET_CLOUDPROVIDER"},
		"kops":                 {line: `KUBELET "$DAEMON_ARGS"`},
		"eks-al2":              {line: "KUBELET --config /etc/kubernetes/kubelet/kubelet-config.json --kubeconfig /var/lib/kubelet/kubeconfig --container-runtime-endpoint unix:///run/containerd/containerd.sock $KUBELET_ARGS $KUBELET_EXTRA_ARGS"}, // but its systemd is too old
		"eks-al2023":           {line: "KUBELET $NODEADM_KUBELET_ARGS"},
		"gke-cos":              {line: "KUBELET $KUBELET_OPTS"},
		"aks-ubuntu":           {line: `KUBELET --enable-server --node-labels="${KUBELET_NODE_LABELS}" --v=2 --volume-plugin-dir=/etc/kubernetes/volumeplugins $KUBELET_FLAGS $KUBELET_REGISTER_NODE $KUBELET_REGISTER_WITH_TAINTS`},
		"flatcar":              {line: kubeadms},
		"hard-way":             {line: "KUBELET --config=/var/lib/kubelet/kubelet-config.yaml --kubeconfig=/var/lib/kubelet/kubeconfig --v=2"},
		"debian":               {line: "KUBELET $DAEMON_ARGS"},
		"nixos":                {line: "KUBELET --config=/nix/store/7vqh-kubelet-config --hostname-override=node1 --kubeconfig=/nix/store/zjp1-kubelet-kubeconfig --pod-infra-container-image=pause --node-ip=192.0.2.3"}, // but its folder cannot be written
		"cluster-api-relative": {line: "kubelet $KUBELET_KUBECONFIG_ARGS $KUBELET_EXTRA_ARGS"},
		"opensuse":             {line: "SCRIPT $KUBELET_KUBECONFIG_ARGS $KUBELET_CONFIG_ARGS $KUBELET_KUBEADM_ARGS $KUBELET_EXTRA_ARGS"},

		"flatcar-wrapper":     {refused: "1-kubelet.service:4 names a kubelet that cannot be run"}, // nor could what is in its container
		"openshift":           {refused: "1-kubelet.service:11 starts /usr/local/bin/kubenswrapper: ExecStart must run the kubelet directly"},
		"openshift-hyperkube": {refused: "1-kubelet.service:4 starts /usr/bin/hyperkube: ExecStart must run the kubelet directly"},
		"docker-run":          {refused: "1-kubelet.service:5 starts /usr/bin/docker: ExecStart must run the kubelet directly"},
		"podman-run":          {refused: "1-kubelet.service:2 starts /usr/bin/podman: ExecStart must run the kubelet directly"},
		"taskset":             {refused: "1-kubelet.service:2 starts /usr/bin/taskset: ExecStart must run the kubelet directly"},
		"shell":               {refused: "1-kubelet.service:3 starts /bin/sh: ExecStart must run the kubelet directly"},
		"script-own-flags":    {refused: "kubelet-start.sh, a script that does not hand on its arguments"},
		"script-config-last":  {refused: "kubelet-start.sh, a script that gives a --config after its own arguments"},
		"script-log":          {refused: "kubelet-with-log.sh, a script that does not become the kubelet"},
		"script-prepares":     {refused: "kubelet-prepares.sh, a script that does not become the kubelet"},
		"coreos-rkt":          {refused: "kubelet-wrapper.sh, a script that becomes /usr/bin/rkt and not the kubelet"},
		"docker-script":       {refused: "kubelet-docker.sh, a script that becomes docker and not the kubelet"},

		"k3s":        {refused: "1-k3s.service:24 starts /usr/local/bin/k3s: ExecStart must run the kubelet directly", other: "k3s.service"},
		"k3s-agent":  {refused: "1-k3s-agent.service:7 starts /usr/local/bin/k3s: ExecStart must run the kubelet directly", other: "k3s-agent.service"},
		"rke2":       {refused: "1-rke2-server.service:15 starts /usr/local/bin/rke2: ExecStart must run the kubelet directly", other: "rke2-server.service"},
		"rke2-agent": {refused: "1-rke2-agent.service:5 starts /usr/local/bin/rke2: ExecStart must run the kubelet directly", other: "rke2-agent.service"},
		"k0s":        {refused: "1-k0sworker.service:10 starts /usr/local/bin/k0s: ExecStart must run the kubelet directly", other: "k0sworker.service"},
		"microk8s":   {refused: "1-snap.microk8s.daemon-kubelite.service:9 starts /usr/bin/snap: ExecStart must run the kubelet directly", other: "snap.microk8s.daemon-kubelite.service"},
		"eks-ubuntu": {refused: "1-snap.kubelet-eks.daemon.service:7 starts /usr/bin/snap: ExecStart must run the kubelet directly", other: "snap.kubelet-eks.daemon.service"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("PATH", filepath.Dir(fakeKubelet)+":"+os.Getenv("PATH"))
			files, script := unitOnThisMachine(t, filepath.Join("testdata/units", name))
			got, err := readStartCommand(files)
			line := strings.NewReplacer(fakeKubelet, "KUBELET", cmp.Or(script, "no script"), "SCRIPT").Replace(got.line)
			switch {
			case test.refused != "" && (err == nil || !strings.Contains(err.Error(), test.refused)):
				t.Errorf("%v, want it refused: %s", err, test.refused)
			case test.refused == "" && (err != nil || line != test.line || got.prefix != ""):
				t.Errorf("%q, %q, %v, want %q", got.prefix, got.line, err, test.line)
			}
			if test.other == "" {
				return
			}
			if !strings.HasSuffix(files[0], "-"+test.other) {
				t.Errorf("the unit's name is not that of %s", files[0])
			}
			h := newHost(t)
			written(t, h.folder+"/active-units", test.other+" loaded active running it\n")
			if err := h.enable(t.Context(), true); err == nil || !strings.Contains(err.Error(), test.other+" runs this node's kubelet") || h.changes() != "" {
				t.Errorf("%v; did %s", err, h.changes())
			}
		})
	}
	if folders, err := filepath.Glob("testdata/units/*"); err != nil || len(folders) != 36 {
		t.Errorf("%d units are there, want 36: %v", len(folders), err)
	}
}

var programPath = regexp.MustCompile(`(?m)^(ExecStart=)\S*/bin/kubelet\b`)

// unitOnThisMachine gives the files of a unit in systemd's order, with a kubelet that this machine has, and the script that it starts, if any.
func unitOnThisMachine(t *testing.T, folder string) (files []string, script string) {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	here := t.TempDir()
	for _, entry := range slices.Backward(entries) { // a script comes behind the unit that starts it
		text, err := os.ReadFile(filepath.Join(folder, entry.Name()))
		if err != nil {
			t.Fatal(err)
		}
		content := string(text)
		if filepath.Ext(entry.Name()) == ".sh" {
			script = written(t, filepath.Join(here, entry.Name()), content)
			continue
		}
		content = programPath.ReplaceAllString(content, "${1}"+fakeKubelet)
		files = append(files, written(t, filepath.Join(here, entry.Name()), strings.ReplaceAll(content, "=SCRIPT", "="+script)))
	}
	slices.Reverse(files)
	return files, script
}

// Any other construct is refused with the line that has it.
func TestConstructsThatAreRefused(t *testing.T) {
	for construct, want := range map[string]string{
		"ExecStart=-":                                           ":3 names no program",
		"ExecStart=+":                                           ":3 names no program",
		"ExecStart=- ":                                          ":3 names no program",
		`ExecStart=""`:                                          ":3 names no program",
		`ExecStart="/usr/bin/kubelet`:                           ":3 cannot be taken over: a quote \" is not closed",
		"ExecStart=KUBELET --a='b":                              ":3 cannot be taken over: a quote ' is not closed",
		"ExecStart=KUBELET --a ; /bin/true":                     ":3 has several commands",
		"ExecStart=KUBELET \\\n --a\nExecStart=KUBELET":         ":3, ", // and the second
		"ExecStart=KUBELET --a \\ ":                             ":3 ends with a backslash",
		"ExecStart=/usr/bin/env kubelet":                        ":3 starts /usr/bin/env",
		"ExecStart=${KUBELET_BIN} --a":                          ":3 starts ${KUBELET_BIN}",
		"ExecStart=/opt/%v/kubelet":                             ":3 names a kubelet that cannot be run",
		`ExecStart=/usr/bin/kube\x6cet`:                         ":3 starts /usr/bin/kube",
		"ExecStart=!!-@KUBELET kubelet":                         ":3 has ExecStart=!!-@…",
		"ExecStart=/bin/sh -c 'exec kubelet \\\n# a comment\n'": ":3 starts /bin/sh",
	} {
		file := written(t, filepath.Join(t.TempDir(), "kubelet.service"), "[Unit]\n[Service]\n"+strings.ReplaceAll(construct, "KUBELET ", fakeKubelet+" ")+"\n")
		if got, err := readStartCommand([]string{file}); err == nil || !strings.Contains(err.Error(), "kubelet.service"+want) {
			t.Errorf("%q: %+v, %v, want %s", construct, got, err, want)
		}
	}
}

// Whatever a unit says, enable does not panic, and what it takes over is one line with a program.
func FuzzStartCommand(f *testing.F) {
	files, err := filepath.Glob("testdata/units/*/*")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Add([]byte("[Service]\nExecStart=-\n"))
	f.Add([]byte("[Service]\nExecStart=\"\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, c := range addStartCommands(nil, "unit", data) {
			if err := c.check(); err != nil {
				continue
			}
			if program, err := c.program(); err != nil || program == "" || strings.Contains(c.line, "\n") {
				t.Errorf("%+v is taken over: %q, %v", c, program, err)
			}
		}
	})
}
