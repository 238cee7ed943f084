//go:build linux

package kubelet

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/kubelet/config/v1beta1"
	sigsjson "sigs.k8s.io/json"

	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
)

// everyFlag sets each field that a flag can set in a kubelet of 1.36 to another value than its default, and some by several forms.
var everyFlag = []string{
	"--address=127.0.0.2", "--allowed-unsafe-sysctls=kernel.msg*,net.core.somaxconn", "--anonymous-auth=true", "--authentication-token-webhook=false",
	"--authentication-token-webhook-cache-ttl=3m", "--authorization-mode=AlwaysAllow", "--authorization-webhook-cache-authorized-ttl=6m",
	"--authorization-webhook-cache-unauthorized-ttl=31s", "--cgroup-driver=systemd", "--cgroup-root=/x", "--cgroups-per-qos", "--client-ca-file=",
	"--cluster-dns=10.0.0.10,10.0.0.11", "--cluster-dns", "10.0.0.12", "--cluster-domain=a.b", "--container-log-max-files=7", "--container-log-max-size=11Mi",
	"--container-runtime-endpoint=unix:///x", "--contention-profiling", "--cpu-cfs-quota=false", "--cpu-manager-policy=static", "--cpu-manager-policy-options=full-pcpus-only=true",
	"--cpu-manager-reconcile-period=11s", "--enable-controller-attach-detach=false", "--enable-debugging-handlers", "--enable-server=true",
	"--enforce-node-allocatable=none", "--event-burst=101", "--event-qps=0x33", "--eviction-hard=memory.available<5%,nodefs.available<1Gi",
	"--eviction-max-pod-grace-period=5", "--eviction-minimum-reclaim=imagefs.available=2Gi", "--eviction-pressure-transition-period=6m",
	"--eviction-soft=memory.available<6%", "--eviction-soft-grace-period=memory.available=1m30s", "--fail-cgroupv1=false", "--fail-swap-on=false",
	"--file-check-frequency=21s", "--hairpin-mode=none", "--healthz-bind-address=127.0.0.3", "--healthz-port=10249", "--http-check-frequency=22s",
	"--image-gc-high-threshold=86", "--image-gc-low-threshold=81", "--image-service-endpoint=unix:///y", "--kernel-memcg-notification",
	"--kube-api-burst=102", "--kube-api-content-type=application/json", "--kube-api-qps=51", "--kube-reserved=cpu=100m, memory=100Mi", "--kube-reserved=pid=1000",
	"--kubelet-cgroups=/k/l", "--local-storage-capacity-isolation=false", "--log-flush-frequency=6s",
	"--make-iptables-util-chains=false", "--manifest-url=", "--max-open-files=999999", "--max_pods", "021", "--memory-manager-policy=None",
	"--minimum-image-ttl-duration=3m", "--node-status-max-images=51", "--node-status-update-frequency=11s", "--oom-score-adj=-998", "--pod-cidr=10.1.0.0/24",
	"--pod-manifest-path=/m", "--pod-max-pids=100", "--pods-per-core=3", "--port=10251", "--protect-kernel-defaults", "--provider-id=p",
	"--read-only-port=10256", "--register-node=false", "--registry-burst=11", "--registry-qps=6", "--resolv-conf=/r",
	"--rotate-certificates", "--runonce=false", "--runtime-request-timeout=3m", "--serialize-image-pulls=false", "--streaming-connection-idle-timeout=5h",
	"--sync-frequency=2m", "--system-cgroups=/s", "--system-reserved=cpu=50m", "--tls-cipher-suites=TLS_AES_128_GCM_SHA256",
	"--tls-min-version=VersionTLS12", "--topology-manager-policy=best-effort", "--topology-manager-policy-options=prefer-closest-numa-nodes=true",
	"--topology-manager-scope=pod", "-v=3", "--volume-plugin-dir=/v", "--volume-stats-agg-period=2m",
	// In forms of their own, which are not read.
	"--register-with-taints=a=b:NoSchedule", "--manifest-url-header=a:s3cret", "--reserved-memory=0:memory=1Gi",
}

// TestEffectiveOfARealKubelet holds what is told, and our own reading, against the real binary that KUBELET_SUPERVISOR_TEST_KUBELET names.
func TestEffectiveOfARealKubelet(t *testing.T) {
	kubelet := os.Getenv("KUBELET_SUPERVISOR_TEST_KUBELET")
	if kubelet == "" {
		t.Skip("NOT TESTED against a real kubelet: KUBELET_SUPERVISOR_TEST_KUBELET does not name one")
	}
	r := realKubelet{t: t, path: kubelet}
	r.learn()
	// Some exclude each other.
	t.Run("every flag", func(t *testing.T) { r.testEveryFlag(t, "--logging-format=text", "--vmodule=x=1", "--reserved-cpus=0") })
	t.Run("every flag, logging JSON", func(t *testing.T) {
		r.testEveryFlag(t, "--logging-format=json", "--kube-reserved-cgroup=/k", "--system-reserved-cgroup=/s")
	})
	t.Run("every field", r.testEveryField)
	t.Run("shadowed edits", r.testShadowedEdits)
}

type realKubelet struct {
	t     *testing.T
	path  string
	minor int
	flags map[string]bool
}

// learn asks for the version and the flags.
func (r *realKubelet) learn() {
	version, err := exec.Command(r.path, "--version").Output()
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Logf("%s", version)
	if _, err := fmt.Sscanf(string(version), "Kubernetes v1.%d.", &r.minor); err != nil {
		r.t.Fatalf("%q: %v", version, err)
	}
	help, err := exec.Command(r.path, "--help").Output()
	if err != nil {
		r.t.Fatal(err)
	}
	r.flags = map[string]bool{"-v": true}
	for _, found := range regexp.MustCompile(`(?m)^ +(?:-\w, )?(--[\w-]+)`).FindAllStringSubmatch(string(help), -1) {
		r.flags[found[1]] = true
	}
}

// tells: kubelets before print a Go value.
func (r *realKubelet) tells() bool { return r.minor >= 26 }

// known drops the flags that this kubelet does not have, and the word behind one.
func (r *realKubelet) known(flags []string) (kept []string) {
	for i, word := range flags {
		flag, _, _ := strings.Cut(word, "=")
		if i > 0 && !strings.HasPrefix(word, "-") {
			flag, _, _ = strings.Cut(flags[i-1], "=")
		}
		if r.flags[strings.ReplaceAll(flag, "_", "-")] {
			kept = append(kept, word)
		}
	}
	return kept
}

func (r *realKubelet) check(t *testing.T, file string, flags ...string) Verdict {
	t.Helper()
	preflight := Preflight{Kubelet: r.path, Arguments: r.known(flags), TempFolder: t.TempDir(), Timeout: time.Minute}
	verdict := preflight.Check(t.Context(), Candidate{File: file}, nil)
	if verdict.Outcome != kubeletconfig.Accepted || verdict.Effective.Told != r.tells() {
		t.Fatalf("%v: %s; %s", verdict.Outcome, verdict.Words, verdict.Effective)
	}
	return verdict
}

// header is accepted on any kind of cgroups.
func (r *realKubelet) header() string {
	if r.minor < 31 {
		return header
	}
	return header + "failCgroupV1: false\n"
}

func (r *realKubelet) testEveryFlag(t *testing.T, more ...string) {
	flags := slices.Concat(everyFlag, more)
	verdict := r.check(t, written(t, "kubelet.yaml", r.header()), flags...)
	own := kubeletconfig.ReadEffective(r.known(flags), "")
	want := leaves(own.Tree(), "")
	if len(want) < 80 && r.minor >= 36 {
		t.Errorf("only %d fields are read", len(want))
	}
	got := leaves(verdict.Effective.Tree(), "")
	for field, value := range want {
		if !equalValues(got[field], value) {
			t.Errorf("%s: the kubelet runs with %q, we read %q", field, got[field], value)
		}
	}
	if strings.Contains(string(verdict.Effective.JSON()), "s3cret") {
		t.Error("a secret is told")
	}
	if r.tells() {
		wantVersioned(t, verdict.Effective)
	}
}

// everyField is a file in which no structure is left out.
const everyField = `
authentication: {x509: {clientCAFile: ""}, webhook: {enabled: true, cacheTTL: 90s}, anonymous: {enabled: false}}
authorization: {mode: Webhook, webhook: {cacheAuthorizedTTL: 90s, cacheUnauthorizedTTL: 10s}}
staticPodURLHeader: {Authorization: [s3cret]}
evictionHard: {memory.available: 100Mi}
kubeReserved: {cpu: 100m, memory: 100Mi}
shutdownGracePeriodByPodPriority: [{priority: 10, shutdownGracePeriodSeconds: 20}]
reservedMemory: [{numaNode: 0, limits: {memory: 200Mi}}]
memoryManagerPolicy: Static
memorySwap: {swapBehavior: ""}
registerWithTaints: [{key: A, value: b, effect: NoSchedule}]
logging: {verbosity: 1, flushFrequency: 7s}
tracing: {endpoint: "localhost:4317", samplingRatePerMillion: 10}
`

func (r *realKubelet) testEveryField(t *testing.T) {
	more := ""
	if r.minor >= 35 {
		more = "crashLoopBackOff: {maxContainerRestartPeriod: 100s}\n"
	}
	if r.minor >= 34 {
		more += "userNamespaces: {idsPerPod: 65536}\n"
	}
	dropIns := filepath.Dir(written(t, "10.conf", r.header()+"kubeReserved: {memory: 300Mi}\nmaxPods: 30\n"))
	flags := []string{"--logging-format=text"}
	if r.minor >= 30 {
		flags = append(flags, "--config-dir="+dropIns)
	}
	file := written(t, "kubelet.yaml", r.header()+everyField+more)
	verdict := r.check(t, file, flags...)
	want := leaves(kubeletconfig.ReadEffective(r.known(flags), file).Tree(), "")
	got := leaves(verdict.Effective.Tree(), "")
	for field, value := range want {
		if !equalValues(got[field], value) && !strings.Contains(field, "staticPodURLHeader") && !slices.Contains([]string{"kind", "apiVersion"}, field) {
			t.Errorf("%s: the kubelet runs with %q, we read %q", field, got[field], value)
		}
	}
	if !r.tells() {
		return
	}
	for _, absent := range []string{"tlsCertFile", "tlsPrivateKeyFile"} {
		if got[absent] != "" {
			t.Errorf("%s is %q", absent, got[absent])
		}
	}
	wantVersioned(t, verdict.Effective)
}

func (r *realKubelet) testShadowedEdits(t *testing.T) {
	flags := []string{"--max-pods=20"}
	digest := func(content string) (string, []string) {
		verdict := r.check(t, written(t, "kubelet.yaml", r.header()+content), flags...)
		return verdict.Effective.Digest("", nil), kubeletconfig.ShadowLines(verdict.Shadowed)
	}
	first, shadowed := digest("maxPods: 60\n")
	if diff := cmp.Diff([]string{"maxPods (60) by --max-pods (20)"}, shadowed); diff != "" {
		t.Error(diff)
	}
	if (first != "") != r.tells() {
		t.Errorf("its digest is %q", first)
	}
	for content, equal := range map[string]bool{
		"maxPods: 61\n": true, "": true, "maxPods: 61\nsyncFrequency: 60s\n": true, "maxPods: 60\npodsPerCore: 3\n": false, "maxPods: 60\nlogging: {verbosity: 1}\n": false,
		"maxPods: 60\nstaticPodURLHeader: {a: [b]}\n": false,
	} {
		if got, _ := digest(content); r.tells() && (got == first) != equal {
			t.Errorf("%q: its digest is %q, that of the first %q", content, got, first)
		}
	}
	one, _ := digest("maxPods: 60\nstaticPodURLHeader: {a: [b]}\n")
	if other, _ := digest("maxPods: 60\nstaticPodURLHeader: {a: [c]}\n"); r.tells() && one == other {
		t.Error("two secrets look equal")
	}
}

// wantVersioned: each field is one of v1beta1, in the same place and of its type.
func wantVersioned(t *testing.T, effective kubeletconfig.Effective) {
	t.Helper()
	strict, err := sigsjson.UnmarshalStrict(effective.JSON(), &v1beta1.KubeletConfiguration{})
	if err != nil {
		t.Error(err)
	}
	for _, fault := range strict {
		t.Error(fault)
	}
}

// leaves has the values of a tree by their paths; those of lists as JSON.
func leaves(tree map[string]any, above string) map[string]string {
	found := map[string]string{}
	for name, value := range tree {
		switch value := value.(type) {
		case map[string]any:
			for path, leaf := range leaves(value, above+name+".") {
				found[path] = leaf
			}
		case nil:
		case string:
			found[above+name] = value
		default:
			text, _ := json.Marshal(value)
			found[above+name] = string(text)
		}
	}
	return found
}

// equalValues: of several forms of a duration and of a number the kubelet tells one.
func equalValues(a, b string) bool {
	if a == b {
		return true
	}
	first, errA := time.ParseDuration(a)
	second, errB := time.ParseDuration(b)
	if errA == nil && errB == nil {
		return first == second
	}
	x, errX := strconv.ParseFloat(a, 64)
	y, errY := strconv.ParseFloat(b, 64)
	return errX == nil && errY == nil && x == y
}
