package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The kubelet's units of distributions and installers, written in their manner; each names where it is from. k3s, RKE2, Talos and
// Bottlerocket are not among them: a kubelet that is part of another program, or a host whose units nobody may change. RKE1 runs the
// kubelet in a container.
func TestUnitsOfDistributions(t *testing.T) {
	for name, test := range map[string]struct{ line, refused string }{
		"kubeadm-deb":         {line: "KUBELET $KUBELET_KUBECONFIG_ARGS $KUBELET_CONFIG_ARGS $KUBELET_KUBEADM_ARGS $KUBELET_EXTRA_ARGS"},
		"kubeadm-rpm":         {line: "KUBELET $KUBELET_KUBECONFIG_ARGS $KUBELET_CONFIG_ARGS $KUBELET_KUBEADM_ARGS $KUBELET_EXTRA_ARGS"},
		"kubespray":           {line: "KUBELET $KUBE_LOGTOSTDERR $KUBE_LOG_LEVEL $KUBELET_ARGS $KUBELET_CLOUDPROVIDER"},
		"kops":                {line: `KUBELET "$DAEMON_ARGS"`},
		"eks-al2":             {line: "KUBELET --config /etc/kubernetes/kubelet/kubelet-config.json --kubeconfig /var/lib/kubelet/kubeconfig --container-runtime-endpoint unix:///run/containerd/containerd.sock $KUBELET_ARGS $KUBELET_EXTRA_ARGS"},
		"eks-al2023":          {line: "KUBELET $NODEADM_KUBELET_ARGS"},
		"gke-cos":             {line: "KUBELET $KUBELET_OPTS"},
		"aks-ubuntu":          {line: `KUBELET --enable-server --node-labels="${KUBELET_NODE_LABELS}" --v=2 --volume-plugin-dir=/etc/kubernetes/volumeplugins $KUBELET_FLAGS $KUBELET_REGISTER_NODE $KUBELET_REGISTER_WITH_TAINTS`},
		"flatcar":             {line: "KUBELET $KUBELET_KUBECONFIG_ARGS $KUBELET_CONFIG_ARGS $KUBELET_KUBEADM_ARGS $KUBELET_EXTRA_ARGS"},
		"hard-way":            {line: "KUBELET --config=/var/lib/kubelet/kubelet-config.yaml --kubeconfig=/var/lib/kubelet/kubeconfig --v=2"},
		"debian":              {line: "KUBELET $DAEMON_ARGS"},
		"flatcar-wrapper":     {refused: "1-kubelet.service:4 names a kubelet that cannot be run"}, // nor could what is in its container
		"openshift":           {refused: "1-kubelet.service:11 starts /usr/local/bin/kubenswrapper: only a kubelet's own command line"},
		"openshift-hyperkube": {refused: "1-kubelet.service:4 starts /usr/bin/hyperkube: only a kubelet's own command line"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := readStartCommand(unitOnThisMachine(t, filepath.Join("testdata/units", name)))
			switch {
			case test.refused != "" && (err == nil || !strings.Contains(err.Error(), test.refused)):
				t.Errorf("%v, want it refused: %s", err, test.refused)
			case test.refused == "" && (err != nil || strings.Replace(got.line, fakeKubelet, "KUBELET", 1) != test.line || got.prefix != ""):
				t.Errorf("%q, %q, %v, want %q", got.prefix, got.line, err, test.line)
			}
		})
	}
	if folders, err := filepath.Glob("testdata/units/*"); err != nil || len(folders) != 14 {
		t.Errorf("%d units are there, want 14: %v", len(folders), err)
	}
}

var programPath = regexp.MustCompile(`(?m)^(ExecStart=)\S*/bin/kubelet\b`)

// unitOnThisMachine gives the files of a unit in systemd's order, with a kubelet that this machine has.
func unitOnThisMachine(t *testing.T, folder string) (files []string) {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		text, err := os.ReadFile(filepath.Join(folder, entry.Name()))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, written(t, filepath.Join(t.TempDir(), entry.Name()), programPath.ReplaceAllString(string(text), "${1}"+fakeKubelet)))
	}
	return files
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
