package kubeletconfig

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// effectively reads a configuration from files and flags.
func effectively(t *testing.T, file string, dropIns map[string]string, flags ...string) Effective {
	t.Helper()
	return ReadEffective(withDropIns(t, dropIns, flags), written(t, "kubelet.yaml", header+file))
}

func withDropIns(t *testing.T, dropIns map[string]string, flags []string) []string {
	t.Helper()
	if dropIns == nil {
		return flags
	}
	folder := t.TempDir()
	for name, content := range dropIns {
		write(t, filepath.Join(folder, name), header+content)
	}
	return append([]string{"--config-dir=" + folder}, flags...)
}

func TestReadEffective(t *testing.T) {
	for name, test := range map[string]struct {
		file    string
		dropIns map[string]string
		flags   []string
		want    string // JSON without kind and apiVersion; empty = unknown
	}{
		"a file":                  {file: "maxPods: 60\n", want: `{"maxPods":60}`},
		"drop-ins go before":      {file: "maxPods: 60\nkubeReserved: {cpu: 1, memory: 1Gi}\n", dropIns: map[string]string{"b.conf": "maxPods: 20\n", "a.conf": "maxPods: 30\nkubeReserved: {memory: 2Gi}\n"}, want: `{"kubeReserved":{"cpu":1,"memory":"2Gi"},"maxPods":20}`},
		"a null deletes":          {file: "maxPods: 60\nkubeReserved: {cpu: 1}\n", dropIns: map[string]string{"a.conf": "kubeReserved: null\n"}, want: `{"maxPods":60}`},
		"flags go before all":     {file: "maxPods: 60\n", dropIns: map[string]string{"a.conf": "maxPods: 30\n"}, flags: []string{"--max_pods", "020", "--max-pods=0x10"}, want: `{"maxPods":16}`},
		"a bool takes no word":    {flags: []string{"--fail-swap-on", "--max-pods", "5", "--register-node=false"}, want: `{"failSwapOn":true,"maxPods":5,"registerNode":false}`},
		"nested":                  {file: "authentication: {webhook: {enabled: true, cacheTTL: 5s}}\n", flags: []string{"--anonymous-auth=false", "--authentication-token-webhook-cache-ttl=1m"}, want: `{"authentication":{"anonymous":{"enabled":false},"webhook":{"cacheTTL":"1m","enabled":true}}}`},
		"lists replace, and add":  {file: "clusterDNS: [1.1.1.1]\n", flags: []string{"--cluster-dns=2.2.2.2,3.3.3.3", "--cluster-dns=4.4.4.4"}, want: `{"clusterDNS":["2.2.2.2","3.3.3.3","4.4.4.4"]}`},
		"an empty list":           {file: "clusterDNS: [1.1.1.1]\n", flags: []string{"--cluster-dns="}, want: `{"clusterDNS":[]}`},
		"pairs replace":           {file: "kubeReserved: {cpu: 1}\n", flags: []string{"--kube-reserved=memory=1Gi, pid=5", "--kube-reserved=cpu=2"}, want: `{"kubeReserved":{"cpu":"2","memory":"1Gi","pid":"5"}}`},
		"one pair":                {flags: []string{"--cpu-manager-policy-options=a=1,2"}, want: `{"cpuManagerPolicyOptions":{"a":"1,2"}}`},
		"thresholds":              {flags: []string{"--eviction-hard=memory.available<5%,nodefs.available<1Gi"}, want: `{"evictionHard":{"memory.available":"5%","nodefs.available":"1Gi"}}`},
		"gates add up":            {file: "featureGates: {A: true, B: true}\n", flags: []string{"--feature-gates=B=false", "--feature-gates=C=true"}, want: `{"featureGates":{"A":true,"B":false,"C":true}}`},
		"a form that is not read": {file: "registerWithTaints: [{key: a, effect: NoSchedule}]\nmaxPods: 1\n", flags: []string{"--register-with-taints=b=:NoSchedule"}, want: `{"maxPods":1}`},
		"the short flag":          {file: "logging: {verbosity: 2}\n", flags: []string{"-v=3", "-v", "4", "-v6"}, want: `{"logging":{"verbosity":6}}`},
		"nothing behind --":       {file: "maxPods: 60\n", flags: []string{"--", "--max-pods=1"}, want: `{"maxPods":60}`},
		"without its word":        {file: "maxPods: 60\n", flags: []string{"--max-pods"}, want: `{"maxPods":60}`},
		"what would be refused":   {file: "maxPods: 60\nfailSwapOn: true\n", flags: []string{"--max-pods=many", "--fail-swap-on=perhaps", "--kube-reserved=x"}, want: `{"failSwapOn":true,"maxPods":60}`},
		"other words":             {file: "maxPods: 60\n", flags: []string{"word", "-x", "--kubeconfig", "/k", "--max-pods-x=1"}, want: `{"maxPods":60}`},
		"a file without sense":    {file: "\t: no YAML\n"},
		"a drop-in without sense": {dropIns: map[string]string{"a.conf": "\t: no YAML\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := effectively(t, test.file, test.dropIns, test.flags...)
			if test.want != "" {
				test.want = `{"apiVersion":"kubelet.config.k8s.io/v1beta1","kind":"KubeletConfiguration",` + strings.TrimPrefix(test.want, "{")
				test.want = canonical(t, test.want)
			}
			if string(got.JSON()) != test.want || got.Told || got.Known() != (test.want != "") || got.Size() != len(test.want) {
				t.Errorf("got %s\nwant %s", got.JSON(), test.want)
			}
			if got.Digest("", nil) != "" {
				t.Error("our own reading has a digest: it is no ground to leave out a restart")
			}
		})
	}
	if got := ReadEffective([]string{"--max-pods=7"}, ""); string(got.JSON()) != `{"maxPods":7}` {
		t.Errorf("without a file: %s", got.JSON())
	}
}

func canonical(t *testing.T, document string) string {
	t.Helper()
	tree, err := Decode([]byte(document))
	if err != nil {
		t.Fatal(err)
	}
	return string(newEffective(tree, nil).JSON())
}

// told is what a kubelet says that runs with the document.
func told(t *testing.T, document string) map[string]any {
	t.Helper()
	tree, err := Decode([]byte(document))
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

func TestToldEffective(t *testing.T) {
	file := written(t, "kubelet.yaml", header+"logging: {verbosity: 2}\nstaticPodURLHeader: {Authorization: [s3cret]}\n")
	document := `{"maxPods":60,"logging":{"format":"text","verbosity":5},"staticPodURLHeader":{"Authorization":["<masked>"]},
		"tlsCertFile":"/tmp/preflight-1/kubelet.crt","tlsPrivateKeyFile":"/tmp/preflight-1/kubelet.key"}`
	effective := ToldEffective(told(t, document), nil, file, "/tmp/preflight-1")
	want := `{"logging":{"format":"text","verbosity":2},"maxPods":60,"staticPodURLHeader":{"Authorization":["\u003cmasked\u003e"]}}`
	if got := string(effective.JSON()); got != want || !effective.Told {
		t.Errorf("got %s\nwant %s", got, want)
	}
	if diff := cmp.Diff(told(t, want), effective.Tree()); diff != "" {
		t.Error(diff)
	}
	kept := ToldEffective(told(t, `{"tlsCertFile":"/tmp/preflight-12/kubelet.crt"}`), nil, file, "/tmp/preflight-1")
	if got := string(kept.JSON()); got != `{"tlsCertFile":"/tmp/preflight-12/kubelet.crt"}` {
		t.Errorf("somebody's own certificate is gone: %s", got)
	}
	unreadable := []string{"--config-dir=" + filepath.Dir(written(t, "a.conf", "\t: no YAML"))}
	if ToldEffective(told(t, document), unreadable, file, "/tmp/preflight-1").Known() {
		t.Error("what the kubelet does not tell cannot be read, and yet it is known")
	}
	large := map[string]any{"clusterDomain": strings.Repeat("x", maxEffective)}
	if ToldEffective(large, nil, file, "/tmp/preflight-1").Known() {
		t.Error("too large, and yet known")
	}
}

// A program that takes over digests a configuration as the one before did.
func TestEffectiveIsHandedOver(t *testing.T) {
	file := written(t, "kubelet.yaml", header+"logging: {verbosity: 2}\nstaticPodURLHeader: {Authorization: [s3cret]}\n")
	before := ToldEffective(told(t, `{"maxPods":60}`), nil, file, "/none")
	data, err := json.Marshal(before.HandOver())
	if err != nil {
		t.Fatal(err)
	}
	var handed *HandedEffective
	if err := json.Unmarshal(data, &handed); err != nil {
		t.Fatal(err)
	}
	after := handed.Effective()
	if !after.Told || after.Digest("", nil) != before.Digest("", nil) || string(after.JSON()) != string(before.JSON()) {
		t.Errorf("handed over was %s, and taken %s", before.JSON(), after.JSON())
	}
	if (Effective{}).HandOver() != nil || (*HandedEffective)(nil).Effective().Known() {
		t.Error("what is not known is handed over")
	}
}

func TestEffectiveIsNotPrinted(t *testing.T) {
	effective := ToldEffective(told(t, `{"staticPodURL":"https://me:s3cret@host"}`), nil, "", "/tmp/x")
	for _, format := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
		for _, printed := range []string{fmt.Sprintf(format, effective), fmt.Sprintf(format, struct{ E, e Effective }{effective, effective}), fmt.Sprintf(format, []*Effective{&effective})} {
			if strings.Contains(printed, "s3cret") {
				t.Errorf("%s prints %s", format, printed)
			}
		}
	}
	for want, e := range map[string]Effective{"unknown": {}, "told by the kubelet": effective, "our own reading": ReadEffective(nil, "")} {
		if !strings.Contains(e.String(), want) {
			t.Errorf("%q lacks %q", e, want)
		}
	}
}

func TestDigest(t *testing.T) {
	type payload struct {
		told, file, folder string
		beside             map[string]string
	}
	same := payload{told: `{"maxPods":20,"a":{"b":1}}`, file: "maxPods: 60\n"}
	for name, test := range map[string]struct {
		a, b  payload
		equal bool
	}{
		"the same":                     {same, same, true},
		"another order":                {same, payload{told: `{"a":{"b":1},"maxPods":20}`, file: "maxPods: 70\n"}, true},
		"another value":                {same, payload{told: `{"maxPods":21,"a":{"b":1}}`, file: same.file}, false},
		"another verbosity":            {same, payload{told: same.told, file: "logging: {verbosity: 2}\n"}, false},
		"another secret":               {payload{told: same.told, file: "staticPodURLHeader: {A: [x]}\n"}, payload{told: same.told, file: "staticPodURLHeader: {A: [y]}\n"}, false},
		"another file beside":          {same, payload{told: same.told, file: same.file, beside: map[string]string{"ca.crt": "x"}}, false},
		"files beside, elsewhere":      {payload{told: `{"tlsCertFile":"/c/1/t"}`, folder: "/c/1"}, payload{told: `{"tlsCertFile":"/c/2/t"}`, folder: "/c/2"}, true},
		"deep, and elsewhere":          {payload{told: `{"authentication":{"x509":{"clientCAFile":"/c/1/t"}}}`, folder: "/c/1"}, payload{told: `{"authentication":{"x509":{"clientCAFile":"/c/2/t"}}}`, folder: "/c/2"}, true},
		"another file beside is named": {payload{told: `{"tlsCertFile":"/c/1/t"}`, folder: "/c/1"}, payload{told: `{"tlsCertFile":"/c/2/u"}`, folder: "/c/2"}, false},
		"one beside, one not":          {payload{told: `{"tlsCertFile":"/c/1/t"}`, folder: "/c/1"}, payload{told: `{"tlsCertFile":"/c/1/t"}`, folder: "/c/2"}, false},
		"a folder of that name":        {payload{told: `{"tlsCertFile":"/c/1/t"}`, folder: "/c/1"}, payload{told: `{"tlsCertFile":"t"}`, folder: "/c/2"}, false},
		"another field of that path":   {payload{told: `{"clusterDomain":"/c/1/t"}`, folder: "/c/1"}, payload{told: `{"clusterDomain":"/c/2/t"}`, folder: "/c/2"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			digest := func(p payload) string {
				file := written(t, "kubelet.yaml", header+p.file)
				return ToldEffective(told(t, p.told), nil, file, "/tmp/preflight-1").Digest(p.folder, p.beside)
			}
			a, b := digest(test.a), digest(test.b)
			if (a == b) != test.equal || !strings.HasPrefix(a, "sha256:") {
				t.Errorf("%s and %s", a, b)
			}
		})
	}
	if (Effective{}).Digest("", nil) != "" || (Effective{Told: true}).Digest("", nil) != "" {
		t.Error("what is not known has a digest")
	}
}

// The kubelet masks headers, so our own reading of them counts.
func TestOtherPodHeaders(t *testing.T) {
	told := func(secret string) Effective {
		return ToldEffective(map[string]any{}, nil, written(t, "kubelet.yaml", header+"staticPodURLHeader: {A: ["+secret+"]}\n"), t.TempDir())
	}
	if a, b := told("x"), told("y"); !a.OtherPodHeaders(b) || a.OtherPodHeaders(a) || a.OtherPodHeaders(Effective{}) {
		t.Errorf("x and y differ: %t; x and x: %t", a.OtherPodHeaders(b), a.OtherPodHeaders(a))
	}
}
