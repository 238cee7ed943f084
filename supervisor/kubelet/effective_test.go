//go:build linux

package kubelet

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
)

const (
	infoHeader  = "I1122 07:40:03.000001    4242 server.go:301] "
	errorHeader = "E1122 07:40:03.000002    4242 run.go:72] "
	checkLine   = errorHeader + `"command failed" err="failed to run Kubelet: ` + acceptedMark + "\"\n"
)

// heard is what passes, and what is told, when the output comes in pieces of a size.
func heard(output string, size int) (rest string, told map[string]any) {
	var t teller
	for piece := range slices.Chunk([]byte(output), size) {
		rest += string(t.pass(piece))
	}
	return rest + string(t.end()), t.configuration()
}

func told(t *testing.T, document string) map[string]any {
	t.Helper()
	tree, err := kubeletconfig.Decode([]byte(document))
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

func TestTeller(t *testing.T) {
	block := func(lines string) string { return "<\n\t" + strings.ReplaceAll(lines, "\n", "\n\t") + "\n >\n" }
	internal := `{
  "EnableServer": true,
  "ResolverConfig": "/etc/resolv.conf",
  "Authentication": {
    "X509": {
      "ClientCAFile": "/ca"
    },
    "Webhook": {
      "Enabled": true,
      "CacheTTL": "2m0s"
    }
  },
  "KubeReserved": {
    "CPU": "1"
  },
  "ReservedMemory": [
    {
      "NumaNode": 0,
      "Limits": {
        "Memory": "1Gi"
      }
    }
  ],
  "Logging": {
    "flushFrequency": "5s"
  },
  "UserNamespaces": {
    "IDsPerPod": 65536
  }
}`
	want := told(t, `{"enableServer":true,"resolvConf":"/etc/resolv.conf","authentication":{"x509":{"clientCAFile":"/ca"},"webhook":{"enabled":true,"cacheTTL":"2m0s"}},
		"kubeReserved":{"CPU":"1"},"reservedMemory":[{"numaNode":0,"limits":{"Memory":"1Gi"}}],"logging":{"flushFrequency":"5s"},"userNamespaces":{"idsPerPod":65536}}`)
	inline := strings.Join(strings.Fields(internal), "")
	for name, test := range map[string]struct {
		output string
		rest   string
		want   map[string]any
	}{
		"text, internal names": {"before\n" + infoHeader + `"KubeletConfiguration" configuration=` + block(internal) + checkLine, "before\n >\n" + checkLine, want},
		"text, versioned names": {infoHeader + `"Effective KubeletConfiguration" config=` + block("maxPods: 60\nkubeReserved:\n  cpu: \"1\"\n") + checkLine,
			" >\n" + checkLine, told(t, `{"maxPods":60,"kubeReserved":{"cpu":"1"}}`)},
		"JSON, inline": {`{"ts":1.5,"caller":"app/server.go:301","msg":"KubeletConfiguration","v":5,"configuration":` + inline + "}\n" + checkLine, checkLine, want},
		"JSON, a string": {`{"ts":1.5,"caller":"app/server.go:301","msg":"Effective KubeletConfiguration","v":0,"config":"maxPods: 60\n"}` + "\n", "",
			told(t, `{"maxPods":60}`)},
		"a Go value":                           {infoHeader + `"KubeletConfiguration" configuration=&{TypeMeta:{Kind: APIVersion:} EnableServer:true}` + "\n" + checkLine, checkLine, nil},
		"nothing told":                         {"before\n" + checkLine, "before\n" + checkLine, nil},
		"of another message":                   {infoHeader + `"Flags" configuration=` + block("{}"), infoHeader + `"Flags" configuration=` + block("{}"), nil},
		"of another file":                      {"I1122 07:40:03.000001 1 evil.go:1] " + `"KubeletConfiguration" configuration=` + block("{}"), "I1122 07:40:03.000001 1 evil.go:1] " + `"KubeletConfiguration" configuration=` + block("{}"), nil},
		"in a value of several lines":          {errorHeader + "\"bad\" err=<\n\t" + infoHeader + "\"KubeletConfiguration\" configuration=<\n\t{\"MaxPods\":1}\n >\n", errorHeader + "\"bad\" err=<\n\t" + infoHeader + "\"KubeletConfiguration\" configuration=<\n\t{\"MaxPods\":1}\n >\n", nil},
		"in a value of JSON":                   {`{"ts":1.5,"msg":"x","err":"\"msg\":\"KubeletConfiguration\",\"configuration\":{}"}` + "\n", `{"ts":1.5,"msg":"x","err":"\"msg\":\"KubeletConfiguration\",\"configuration\":{}"}` + "\n", nil},
		"marks in a value":                     {infoHeader + `"KubeletConfiguration" configuration=` + block(`{"ClusterDomain": "`+acceptedMark+`\nStarting kubelet"}`), " >\n", told(t, `{"clusterDomain":"`+acceptedMark+`\nStarting kubelet"}`)},
		"the first of two":                     {infoHeader + `"KubeletConfiguration" configuration=` + block(`{"MaxPods":1}`) + infoHeader + `"KubeletConfiguration" configuration=` + block(`{"MaxPods":2}`), " >\n >\n", told(t, `{"maxPods":1}`)},
		"cut off":                              {infoHeader + `"KubeletConfiguration" configuration=` + "<\n\t{\"MaxPods\":1}\n", "", nil},
		"cut off in JSON":                      {`{"ts":1.5,"msg":"KubeletConfiguration","v":5,"configuration":{"MaxPods":1}}`, "", nil},
		"no JSON":                              {infoHeader + `"KubeletConfiguration" configuration=` + block("{no"), " >\n", nil},
		"no mapping":                           {infoHeader + `"KubeletConfiguration" configuration=` + block("- a"), " >\n", nil},
		"empty":                                {infoHeader + `"KubeletConfiguration" configuration=` + block("{}"), " >\n", nil},
		"JSON without it":                      {`{"ts":1.5,"msg":"KubeletConfiguration","v":5,"configuration":7}` + "\n", "", nil},
		"the end without a line feed":          {infoHeader + `"Starting"`, infoHeader + `"Starting"`, nil},
		"a long line that tells nothing":       {infoHeader + strings.Repeat("x", 2000) + "\n", infoHeader + strings.Repeat("x", 2000) + "\n", nil},
		"a long line of JSON, telling":         {`{"ts":1.5,"msg":"KubeletConfiguration","v":5,"configuration":{"ClusterDomain":"` + strings.Repeat("x", 2000) + `"}}` + "\n" + checkLine, checkLine, told(t, `{"clusterDomain":"`+strings.Repeat("x", 2000)+`"}`)},
		"too long":                             {infoHeader + `"KubeletConfiguration" configuration=` + block(`{"ClusterDomain":"`+strings.Repeat("x", maxTold)+`"}`) + checkLine, " >\n" + checkLine, nil},
		"too long, and then one that is not":   {infoHeader + `"KubeletConfiguration" configuration=` + block(`{"ClusterDomain":"`+strings.Repeat("x", maxTold)+`"}`) + infoHeader + `"KubeletConfiguration" configuration=` + block(`{"MaxPods":1}`), " >\n >\n", nil},
		"of too many levels":                   {infoHeader + `"KubeletConfiguration" configuration=` + block(`{"A":`+strings.Repeat("[", 200)+strings.Repeat("]", 200)+"}") + checkLine, " >\n" + checkLine, nil},
		"a Go value, and then one that is not": {infoHeader + `"KubeletConfiguration" configuration=&{}` + "\n" + infoHeader + `"KubeletConfiguration" configuration=` + block(`{"MaxPods":1}`), " >\n", nil},
	} {
		t.Run(name, func(t *testing.T) {
			sizes := []int{1, 7, 4096, len(test.output)}
			if len(test.output) > maxTold {
				sizes = []int{4096, 32 << 10}
			}
			for _, size := range sizes {
				rest, configuration := heard(test.output, size)
				if rest != test.rest {
					t.Errorf("in pieces of %d, what passes is %.300q, want %.300q", size, rest, test.rest)
				}
				if diff := cmp.Diff(test.want, configuration); diff != "" {
					t.Errorf("in pieces of %d (-want +got):\n%s", size, diff)
				}
			}
		})
	}
}

// Of a line without an end no more is held back than what may tell.
func TestTellerHoldsLittleBack(t *testing.T) {
	for _, begin := range []string{infoHeader, "{"} {
		var teller teller
		line := begin + strings.Repeat("x", tellingHead-len(begin)-1)
		if rest := teller.pass([]byte(line)); len(rest) > 0 {
			t.Errorf("passes before it is known: %q", rest)
		}
		if rest := teller.pass([]byte("y")); string(rest) != line+"y" {
			t.Errorf("%d bytes of %d are held back", len(line)+1-len(rest), len(line)+1)
		}
	}
}

// Whatever a kubelet prints, and however it comes in pieces: what is told does not pass, all else does, and little is kept.
func FuzzTeller(f *testing.F) {
	f.Add(infoHeader+"\"KubeletConfiguration\" configuration=<\n\t{\n\t  \"MaxPods\": 1\n\t}\n >\n"+checkLine, uint16(3))
	f.Add(infoHeader+"\"Effective KubeletConfiguration\" config=<\n\tmaxPods: 1\n >\n", uint16(1))
	f.Add("{\"ts\":1,\"msg\":\"KubeletConfiguration\",\"v\":5,\"configuration\":{\"ReservedMemory\":[{\"Limits\":null},3]}}\n", uint16(5))
	f.Add(infoHeader+"\"KubeletConfiguration\" configuration=&{a\n}\n", uint16(9))
	f.Fuzz(func(t *testing.T, output string, piece uint16) {
		rest, configuration := heard(output, int(piece)+1)
		whole, same := heard(output, len(output)+1)
		if rest != whole || cmp.Diff(configuration, same) != "" {
			t.Errorf("in pieces of %d it is %q, in one %q", int(piece)+1, rest, whole)
		}
		if len(rest) > len(output) || !strings.Contains(output, "KubeletConfiguration\"") && (rest != output || configuration != nil) {
			t.Errorf("of %q passes %q, and told is %v", output, rest, configuration)
		}
	})
}
