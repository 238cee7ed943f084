//go:build linux

package kubelet

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
)

// TestPreflightOfARealKubelet keeps the assumptions about the kubelet's order of work true: it runs the real binary that
// KUBELET_SUPERVISOR_TEST_KUBELET names, of any version from 1.21 on.
func TestPreflightOfARealKubelet(t *testing.T) {
	kubelet := os.Getenv("KUBELET_SUPERVISOR_TEST_KUBELET")
	if kubelet == "" {
		t.Skip("NOT TESTED against a real kubelet: KUBELET_SUPERVISOR_TEST_KUBELET does not name one")
	}
	version, err := exec.Command(kubelet, "--version").Output()
	if err != nil {
		t.Fatal(err)
	}
	minor := kubeletconfig.Minor(strings.TrimSpace(strings.TrimPrefix(string(version), "Kubernetes ")))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	taken := strconv.Itoa(listener.Addr().(*net.TCPAddr).Port)
	dropIns := filepath.Dir(written(t, "10.conf", "maxPods: 1\n")) // neither kind nor apiVersion
	absent := filepath.Join(t.TempDir(), "absent")
	// Since 1.35 the default is not to run on cgroup v1; older kubelets do not know the field.
	header := header + "failCgroupV1: false\n"
	asJSON := `{"failCgroupV1":false,"kind":"KubeletConfiguration","apiVersion":"kubelet.config.k8s.io/v1beta1","maxPods":20}`

	for name, test := range map[string]struct {
		candidate string // "-" is an absent file
		flags     []string
		want      kubeletconfig.Outcome
		load      bool
		words     string
	}{
		"empty":                            {"", nil, kubeletconfig.Refused, true, "was empty"},
		"missing":                          {"-", nil, kubeletconfig.Refused, true, "no such file or directory"},
		"does not parse":                   {header + "a: b: c", nil, kubeletconfig.Refused, true, "mapping values are not allowed"},
		"wrong type":                       {header + "maxPods: many", nil, kubeletconfig.Refused, true, "KubeletConfiguration.maxPods of type int32"},
		"wrong kind":                       {"kind: Pod\napiVersion: v1", nil, kubeletconfig.Refused, true, `no kind "Pod" is registered`},
		"no kind":                          {"s3cret: \"it's\"\nmore: s3cret\n", nil, kubeletconfig.Refused, true, "Object 'Kind' is missing in …"},
		"invalid":                          {header + "eventRecordQPS: -5\nmaxPods: -1", nil, kubeletconfig.Refused, false, "eventRecordQPS (--event-qps) -5 must not be a negative number, "},
		"unknown gate":                     {header + "featureGates: {Bogus: true}", nil, kubeletconfig.Refused, false, "unrecognized feature gate: Bogus"},
		"gate that is locked, or of later": {header + "featureGates: {SidecarContainers: false}", nil, kubeletconfig.Refused, false, "SidecarContainers"},
		"unknown field":                    {header + "maxPodz: 1", nil, kubeletconfig.Accepted, false, ""},
		"duplicate key":                    {header + "maxPods: 1\nmaxPods: 2", nil, kubeletconfig.Accepted, false, ""},
		"JSON":                             {asJSON, nil, kubeletconfig.Accepted, false, ""},
		"JSON logging":                     {header + "logging: {format: json}", nil, kubeletconfig.Accepted, false, ""},
		"invalid, with JSON logging":       {header + "maxPods: -1\nlogging: {format: json}", nil, kubeletconfig.Refused, false, "maxPods (--max-pods) -1 must not be a negative number"},
		"runtime socket absent":            {header + "containerRuntimeEndpoint: unix://" + absent, nil, kubeletconfig.Accepted, false, ""},
		"clientCAFile absent":              {header + "authentication: {x509: {clientCAFile: " + absent + "}}", nil, kubeletconfig.Accepted, false, ""},
		"systemReserved negative":          {header + "systemReserved: {memory: -1Gi}", nil, kubeletconfig.Accepted, false, ""},
		"systemReserved too large":         {header + "systemReserved: {memory: 1Ti}", nil, kubeletconfig.Accepted, false, ""},
		"kubeReservedCgroup missing":       {header + "kubeReservedCgroup: /absent\nenforceNodeAllocatable: [pods, kube-reserved]\ncgroupRoot: /", nil, kubeletconfig.Accepted, false, ""},
		"its port is taken":                {header + "port: " + taken, nil, kubeletconfig.Accepted, false, ""},
		"healthz off":                      {header + "healthzPort: 0", nil, kubeletconfig.Accepted, false, ""},
		"--lock-file in production":        {header, []string{"--lock-file=" + absent}, kubeletconfig.Accepted, false, ""},
		"two --config, one in two words":   {header, []string{"--config", absent}, kubeletconfig.Accepted, false, ""},
		"very verbose":                     {header, []string{"--v=10"}, kubeletconfig.Accepted, false, ""},
		"kubeconfig absent":                {header, []string{"--kubeconfig=" + absent}, kubeletconfig.Accepted, false, ""},
		"flags win":                        {header + "maxPods: -1", []string{"--max-pods=10"}, kubeletconfig.Accepted, false, ""},
		"unknown flag":                     {header, []string{"--bogus"}, kubeletconfig.Environment, false, "unknown flag: --bogus"},
		"invalid flag":                     {header, []string{"--max-pods=-1"}, kubeletconfig.Environment, false, "maxPods (--max-pods) -1 must not be a negative number"},
		"invalid flag, other fault too":    {header + "topologyManagerPolicy: bogus", []string{"--max-pods=-1"}, kubeletconfig.Environment, false, "--max-pods"},
		"bad drop-in":                      {header + "maxPods: 20", []string{"--config-dir=" + dropIns}, kubeletconfig.Environment, false, "config"},
		"not a flag":                       {header, []string{"--"}, kubeletconfig.Environment, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			candidate := Candidate{File: absent}
			if test.candidate != "-" {
				candidate.File = written(t, "candidate.yaml", test.candidate)
			}
			control := Candidate{File: written(t, "control.yaml", header)}
			preflight := Preflight{Kubelet: kubelet, Arguments: test.flags, TempFolder: t.TempDir(), Timeout: time.Minute}
			verdict := preflight.Check(t.Context(), candidate, &control)
			t.Logf("%v: %s", verdict.Outcome, verdict.Words)
			if name == "clientCAFile absent" && verdict.Outcome == kubeletconfig.Refused && strings.Contains(verdict.Words, "unable to load client CA file") {
				return // kubelets up to 1.23, at least, load it before the check
			}
			if verdict.Outcome != test.want || verdict.Load != test.load || verdict.NoMorePreflight || !strings.Contains(verdict.Words, test.words) {
				t.Errorf("got %+v, want %v (load %v) with %q", verdict, test.want, test.load, test.words)
			}
			if verdict.Outcome != kubeletconfig.Environment && verdict.Minor != minor {
				t.Errorf("its minor version is told as %d, want %d", verdict.Minor, minor)
			}
			if strings.Contains(verdict.Words, "s3cret") || kubeletconfig.Quote(verdict.Words) != verdict.Words {
				t.Errorf("words %q are not fit to be shown", verdict.Words)
			}
		})
	}
}
