package kubeletconfig

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
)

func TestShadowed(t *testing.T) {
	for name, test := range map[string]struct {
		file    string
		dropIns map[string]string
		flags   []string
		told    string // what the kubelet says that it runs with; empty: our own reading
		want    []string
	}{
		"nothing": {file: "maxPods: 60\n"},
		"a drop-in that says the same, of what the kubelet does not know": {file: "future: 1\n", dropIns: map[string]string{"a.conf": "future: 1\n"}, told: `{"maxPods":110}`},
		"a flag":                      {file: "maxPods: 60\n", flags: []string{"--max-pods=20"}, want: []string{"maxPods (60) by --max-pods (20)"}},
		"as the kubelet tells":        {file: "maxPods: 60\n", flags: []string{"--max-pods=20"}, told: `{"maxPods":20}`, want: []string{"maxPods (60) by --max-pods (20)"}},
		"a flag that says the same":   {file: "maxPods: 60\nsyncFrequency: 60s\n", flags: []string{"--max-pods=60", "--sync-frequency=1m"}, told: `{"maxPods":60,"syncFrequency":"1m0s"}`},
		"two forms of a number":       {file: "maxPods: 6e1\n", flags: []string{"--max-pods=60"}},
		"the kubelet's own":           {file: "maxPods: 60\nfuture: 1\naddress: \"\"\n", told: `{"maxPods":70,"address":"0.0.0.0"}`},
		"a drop-in":                   {file: "maxPods: 60\n", dropIns: map[string]string{"10-site.conf": "maxPods: 30\n", "20.conf": "podsPerCore: 1\n"}, want: []string{"maxPods (60) by 10-site.conf (30)"}},
		"the last drop-in":            {file: "maxPods: 60\n", dropIns: map[string]string{"a.conf": "maxPods: 30\n", "b.conf": "maxPods: 40\n"}, want: []string{"maxPods (60) by b.conf (40)"}},
		"the flag before the drop-in": {file: "maxPods: 60\n", dropIns: map[string]string{"a.conf": "maxPods: 30\n"}, flags: []string{"--max-pods=20"}, want: []string{"maxPods (60) by --max-pods (20)"}},
		"a drop-in's null":            {file: "maxPods: 60\n", dropIns: map[string]string{"a.conf": "maxPods: null\n"}, told: `{"maxPods":110}`, want: []string{"maxPods (60) by a.conf (110)"}},
		"nested":                      {file: "authentication: {anonymous: {enabled: true}, webhook: {enabled: true}}\n", flags: []string{"--anonymous-auth=false"}, want: []string{"authentication.anonymous.enabled (true) by --anonymous-auth (false)"}},
		"a mapping that is replaced":  {file: "kubeReserved: {cpu: \"1\", memory: 1Gi}\n", flags: []string{"--kube-reserved=cpu=2"}, want: []string{"kubeReserved.cpu (1) by --kube-reserved (2)", "kubeReserved.memory (1Gi) by --kube-reserved"}},
		"a mapping that is merged":    {file: "kubeReserved: {cpu: \"1\", memory: 1Gi}\n", dropIns: map[string]string{"a.conf": "kubeReserved: {cpu: \"2\"}\n"}, want: []string{"kubeReserved.cpu (1) by a.conf (2)"}},
		"a gate":                      {file: "featureGates: {A: true, B: true}\n", flags: []string{"--feature-gates=A=false,C=true"}, want: []string{"featureGates.A (true) by --feature-gates (false)"}},
		"a gate that the kubelet set": {file: "featureGates: {A: true}\n", flags: []string{"--feature-gates=C=true"}, told: `{"featureGates":{"A":false,"C":true}}`},
		"a list":                      {file: "clusterDNS: [10.0.0.1, 10.0.0.2]\n", flags: []string{"--cluster-dns=10.0.0.3"}, want: []string{"clusterDNS (10.0.0.1, 10.0.0.2) by --cluster-dns (10.0.0.3)"}},
		"a list of mappings":          {file: "registerWithTaints: [{key: a, effect: NoSchedule}]\n", flags: []string{"--register-with-taints=b=:NoSchedule"}, want: []string{"registerWithTaints by --register-with-taints"}},
		"verbosity":                   {file: "logging: {verbosity: 4}\n", flags: []string{"-v", "2"}, want: []string{"logging.verbosity (4) by --v (2)"}},
		"an older flag of the field":  {file: "kernelMemcgNotification: true\n", flags: []string{"--experimental-kernel-memcg-notification=false"}, want: []string{"kernelMemcgNotification (true) by --experimental-kernel-memcg-notification (false)"}},
		"a null says nothing":         {file: "maxPods: null\n", flags: []string{"--max-pods=20"}},
		"a path":                      {file: "resolvConf: /run/a/resolv.conf\n", flags: []string{"--resolv-conf=/etc/resolv.conf"}, want: []string{"resolvConf (/run/a/resolv.conf) by --resolv-conf (/etc/resolv.conf)"}},
		"secrets":                     {file: "staticPodURL: https://me:s3cret@host/\nstaticPodURLHeader: {Authorization: [s3cret]}\n", flags: []string{"--manifest-url=s3cret", "--manifest-url-header=a:s3cret"}, want: []string{"staticPodURL by --manifest-url", "staticPodURLHeader.Authorization by --manifest-url-header"}},
		"a value for a header's name": {file: "staticPodURLHeader: {\"Bearer s3cret\": [x]}\n", flags: []string{"--manifest-url-header=a:b"}, want: []string{"staticPodURLHeader.<masked> by --manifest-url-header"}},
		"long words":                  {file: "clusterDomain: " + strings.Repeat("x", 65) + "\n", flags: []string{"--cluster-domain=y"}, want: []string{"clusterDomain by --cluster-domain (y)"}},
		"words of two lines":          {file: "clusterDomain: \"a\\nb\"\n\"systemReserved\": {\"a\\nb\": x}\n", flags: []string{"--cluster-domain=y", "--system-reserved=cpu=1"}, want: []string{"clusterDomain by --cluster-domain (y)", "systemReserved.a b (x) by --system-reserved"}},
		"no file that can be read":    {file: "\t: no YAML\n", flags: []string{"--max-pods=20"}, told: `{"maxPods":20}`},
	} {
		t.Run(name, func(t *testing.T) {
			file, argv := written(t, "kubelet.yaml", header+test.file), withDropIns(t, test.dropIns, test.flags)
			effective := ReadEffective(argv, file)
			if test.told != "" {
				effective = ToldEffective(told(t, test.told), argv, file, "/tmp/preflight-1")
			}
			if diff := cmp.Diff(test.want, ShadowLines(Shadowed(file, argv, effective))); diff != "" {
				t.Error(diff)
			}
		})
	}
	if got := Shadowed("", []string{"--max-pods=20"}, ReadEffective([]string{"--max-pods=20"}, "")); got != nil {
		t.Errorf("the administrator's own: %q", got)
	}
}

func TestShadowedIsShort(t *testing.T) {
	var gates []string
	for i := range 50 {
		gates = append(gates, fmt.Sprintf("G%02d: true", i))
	}
	file := written(t, "kubelet.yaml", header+"featureGates: {"+strings.Join(gates, ", ")+"}\n")
	argv := []string{"--feature-gates=" + strings.ReplaceAll(strings.Join(gates, ","), ": true", "=false")}
	shadows := Shadowed(file, argv, ReadEffective(argv, file))
	want := nodev1.ShadowedField{Field: "featureGates.G00", Value: "true", By: "--feature-gates", Effective: "false"}
	if len(shadows) != 50 || shadows[0] != want {
		t.Errorf("%d, the first %+v", len(shadows), shadows[0])
	}
	got := ShadowLines(shadows)
	if len(got) != maxWarnings || got[0] != "featureGates.G00 (true) by --feature-gates (false)" || got[9] != "and 41 more" {
		t.Errorf("got %q", got)
	}
}
