//go:build e2e

package e2e

import (
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/deploy"
	"github.com/kubelet-supervisor/kubelet-supervisor/test/cluster"
)

// assignmentValues are values of the annotation, good and bad: what the node would refuse, the API server has to refuse, in
// the same words, and nothing else.
func assignmentValues() []string {
	const alphabet = "abcxyz019...---_/@:A \n\"\\é"
	long := strings.Repeat("x", 1100)
	values := []string{
		"local", "LOCAL", "local ", " local", "local/", "local@", "locally", "@", "/", "//", "///", "@//", "//@", "",
		"ns", "ns/", "ns/name", "ns/name/", "ns/name/key", "ns/name/key/", "ns/name/key/more", "/name/key", "ns//key", "//key", "ns/name/@", "ns/name/@u", "ns/name@u/key",
		"../baz/name/key", "ns/../bar/key", "ns/name/../qux", "ns/name/.", "ns/name/..", "ns/name/..key", "ns/name/...", "ns/name/.key", "ns/name/-", "ns/name/_",
		"my.ns/name/key", "Ns/name/key", "-ns/name/key", "ns-/name/key", "n/n/k", "0/0/0", "ns/my.name/key.yaml", "ns/my..name/key", "ns/.name/key", "ns/name./key", "ns/na_me/key", "ns/Name/KEY_NAME",
		"ns/name/key@u", "ns/name/key@", "ns/name/key@.", "ns/name/key@..", "ns/name/key@...", "ns/name/key@a/b", "ns/name/key@a@b", "ns/name/key@@", "ns/name/key@ü", "ns/name/key@0e6c1c4e-86f5-4a6a-9a4f-5b8f6e4f5a11",
		" ns/name/key", "ns/name/key ", "ns/name/key\n", "ns\n/name/key", "ns/na\tme/key", `ns/"name"/key`, `ns/na\me/key`, "ns/name/kéy", "ns/name/key…", "nš/name/key", "ns/名/key",
		`{"configMap":{"namespace":"ns","name":"name","kubeletConfigKey":"kubelet"}}`,
		long, "ns/" + long, "ns/name/" + long, "ns/name/key@" + long, long + "/name/key", strings.Repeat("/", 1100), strings.Repeat("@", 1100), strings.Repeat("é", 600), "local" + long,
		strings.Repeat("x", 200<<10), strings.Repeat("ns/name/key@", 16<<10),
	}
	for _, size := range []int{63, 64, 65, 253, 254, 255, 256} {
		part := long[:size]
		values = append(values, part+"/name/key", "ns/"+part+"/key", "ns/name/"+part, "ns/name/key@"+part, part[:size/2]+"."+part[:size/2]+"/name/key", "ns/name/."+part, "ns/name/.."+part)
	}
	values = append(values, long[:63]+"/"+long[:253]+"/"+long[:253]+"@"+long[:255]) // the longest
	random := rand.New(rand.NewPCG(1, 2))
	letters := []rune(alphabet)
	for range 300 {
		parts := []string{"ns", "name", "key"}
		for i := range parts {
			text := []rune(parts[i])
			for range random.IntN(2) {
				at := random.IntN(len(text) + 1)
				text = append(text[:at:at], append([]rune{letters[random.IntN(len(letters))]}, text[at:]...)...)
			}
			parts[i] = string(text)
		}
		values = append(values, strings.Join(parts, "/"))
	}
	return values
}

// The policy and the node judge a value alike.
func TestPolicyJudgesAsTheNodeDoes(t *testing.T) {
	n := guardedNode(t)
	n.must(t, http.MethodPost, "/api/v1/nodes", nodeObject(cluster.NodeName, ""), nil)
	refused := 0
	for _, value := range assignmentValues() {
		_, wanted := nodev1.ParseAssignment(value)
		change := object{"metadata": object{"annotations": object{assignmentAnnotation: value}}}
		code, err := n.request(http.MethodPatch, nodePath+"?dryRun=All", change, nil)
		switch {
		case wanted == nil && err != nil:
			t.Errorf("%.100q: the node takes it, the policy says: %v", value, err)
		case wanted != nil && err == nil:
			t.Errorf("%.100q: the policy lets it through, the node says: %v", value, wanted)
		case wanted != nil:
			refused++
			words := "annotation " + assignmentAnnotation + ": " + wanted.Error() + "; write NAMESPACE/NAME/KEY, NAMESPACE/NAME/KEY@UID or local"
			if said := deniedWords(t, err); code != http.StatusUnprocessableEntity || said != words && !cutBeforeJudged(value) {
				t.Errorf("%.100q: answered %d,\n     %s\nwant %s", value, code, said, words)
			}
		}
	}
	if taken := len(assignmentValues()) - refused; taken < 100 || refused < 100 {
		t.Errorf("%d values are taken and %d refused: too few of a kind to tell", taken, refused)
	}
}

// cutBeforeJudged tells whether the policy judged only the beginning of a value, or shows another beginning of it: Go's
// strings are cut after bytes, those of CEL after characters.
func cutBeforeJudged(value string) bool {
	return len([]rune(value)) > 1024 || len(value) > 64 && len([]rune(value)) < len(value)
}

// deniedWords are the policy's own words in an error of a request.
func deniedWords(t *testing.T, err error) string {
	t.Helper()
	text := err.Error()
	var status struct{ Message string }
	if start := strings.Index(text, "{"); start < 0 || json.Unmarshal([]byte(text[start:]), &status) != nil {
		t.Fatalf("no status: %s", text)
	}
	_, words, _ := strings.Cut(status.Message, "'"+deploy.Policy+"' with binding '"+deploy.Policy+"' denied request: ")
	return words
}

// What was malformed before the policy came may stay, and go.
func TestPolicyAndAnOldMalformedAssignment(t *testing.T) {
	n := guardedNode(t)
	n.withoutPolicy(t, func() {
		n.must(t, http.MethodPost, "/api/v1/nodes", nodeObject(cluster.NodeName, "malformed"), nil)
	})
	annotate := func(annotations object) error {
		_, err := n.request(http.MethodPatch, nodePath, object{"metadata": object{"annotations": annotations}}, nil)
		return err
	}
	for _, step := range []struct {
		name        string
		annotations object
		refused     bool
	}{
		{"a foreign annotation", object{"example.com/foreign": "set"}, false},
		{"a retry", object{retryAnnotation: "1"}, false},
		{"another malformed one", object{assignmentAnnotation: "malformed/too"}, true},
		{"removed", object{assignmentAnnotation: nil}, false},
		{"set again", object{assignmentAnnotation: "malformed"}, true},
	} {
		if err := annotate(step.annotations); (err != nil) != step.refused {
			t.Errorf("%s: %v", step.name, err)
		}
	}
}
