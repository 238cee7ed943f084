package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	typing "github.com/kubelet-supervisor/kubelet-supervisor/test/pages"
)

// auditLog has one request of each kind that docs/howto/audit.md searches for, as an API server notes it.
const auditLog = `
{"auditID":"1","stage":"RequestReceived","requestReceivedTimestamp":"T1","verb":"patch","user":{"username":"alice"},"objectRef":{"resource":"nodes","name":"n1"},"requestURI":"/api/v1/nodes/n1"}
{"auditID":"1","stage":"ResponseComplete","requestReceivedTimestamp":"T1","verb":"patch","user":{"username":"alice"},"objectRef":{"resource":"nodes","name":"n1"},"requestObject":{"metadata":{"annotations":{"kubelet-supervisor.io/config-source":"kubelet-config/a/kubelet"}}},"responseStatus":{"code":200}}
{"auditID":"2","stage":"ResponseComplete","requestReceivedTimestamp":"T2","verb":"patch","user":{"username":"alice"},"impersonatedUser":{"username":"bob"},"objectRef":{"resource":"nodes","name":"n1"},"requestObject":{"metadata":{"annotations":{"kubelet-supervisor.io/config-source":"kubelet-config/b/kubelet"}}},"responseStatus":{"code":403}}
{"auditID":"3","stage":"ResponseComplete","requestReceivedTimestamp":"T3","verb":"patch","user":{"username":"carol"},"objectRef":{"resource":"nodes","name":"n2"},"requestObject":[{"op":"remove","path":"/metadata/annotations/kubelet-supervisor.io~1config-source"}],"responseStatus":{"code":200}}
{"auditID":"4","stage":"ResponseComplete","requestReceivedTimestamp":"T4","verb":"patch","user":{"username":"system:node:n1"},"objectRef":{"resource":"nodes","subresource":"status","name":"n1"},"responseStatus":{"code":200}}
{"auditID":"5","stage":"RequestReceived","requestReceivedTimestamp":"T5","verb":"patch","user":{"username":"dave"},"objectRef":{"resource":"nodes","name":"n3"},"requestURI":"/api/v1/nodes/n3?fieldManager=dave"}
{"auditID":"6","stage":"ResponseComplete","requestReceivedTimestamp":"T6","verb":"patch","user":{"username":"alice"},"objectRef":{"resource":"nodes","name":"n1"},"requestObject":{"metadata":{"annotations":{"kubelet-supervisor.io/config-source":null}}},"responseStatus":{"code":200}}
{"auditID":"7","stage":"ResponseComplete","requestReceivedTimestamp":"T7","verb":"update","user":{"username":"alice"},"objectRef":{"resource":"nodes","name":"n4"},"requestObject":{"spec":{"configSource":{"configMap":{"name":"a"}}}},"responseStatus":{"code":200}}
{"auditID":"13","stage":"RequestReceived","requestReceivedTimestamp":"T8","verb":"patch","user":{"username":"erin"},"objectRef":{"resource":"nodes","name":"n1"},"requestURI":"/api/v1/nodes/n1"}
{"auditID":"13","stage":"ResponseComplete","requestReceivedTimestamp":"T8","verb":"patch","user":{"username":"erin"},"objectRef":{"resource":"nodes","name":"n1"},"responseStatus":{"code":403}}
{"auditID":"15","stage":"ResponseComplete","requestReceivedTimestamp":"T10","verb":"patch","user":{"username":"frank"},"objectRef":{"resource":"nodes","name":"n1"},"requestObject":{"metadata":{"annotations":null}},"responseStatus":{"code":200}}
{"auditID":"16","stage":"ResponseComplete","requestReceivedTimestamp":"T11","verb":"patch","user":{"username":"frank"},"objectRef":{"resource":"nodes","name":"n1"},"requestObject":[{"op":"remove","path":"/metadata/annotations"}],"responseStatus":{"code":200}}
{"auditID":"17","stage":"ResponseComplete","requestReceivedTimestamp":"T12","verb":"patch","user":{"username":"frank"},"objectRef":{"resource":"nodes","name":"n1"},"requestObject":{"metadata":{"labels":{"a":"b"}}},"responseStatus":{"code":200}}
{"auditID":"14","stage":"ResponseComplete","requestReceivedTimestamp":"T9","verb":"get","user":{"username":"erin"},"objectRef":{"resource":"nodes","name":"n1"},"responseStatus":{"code":403}}
{"auditID":"8","stage":"ResponseComplete","verb":"patch","user":{"username":"alice"},"objectRef":{"resource":"configmaps","namespace":"kubelet-config","name":"a"},"requestObject":{"data":{}},"responseStatus":{"code":200}}
{"auditID":"9","stage":"ResponseComplete","verb":"patch","user":{"username":"alice"},"objectRef":{"resource":"kubeletpools","apiGroup":"kubelet-supervisor.io","name":"w"},"requestObject":{"spec":{}},"responseStatus":{"code":200}}
{"auditID":"10","stage":"ResponseComplete","verb":"patch","user":{"username":"alice"},"objectRef":{"resource":"kubeletpools","apiGroup":"kubelet-supervisor.io","subresource":"status","name":"w"},"requestObject":{"status":{}},"responseStatus":{"code":200}}
{"auditID":"11","stage":"ResponseComplete","verb":"delete","user":{"username":"alice"},"objectRef":{"resource":"validatingadmissionpolicybindings","apiGroup":"admissionregistration.k8s.io","name":"b"},"responseStatus":{"code":200}}
{"auditID":"12","stage":"ResponseComplete","verb":"create","user":{"username":"alice"},"objectRef":{"resource":"serviceaccounts","namespace":"kubelet-supervisor","subresource":"token","name":"c"},"responseStatus":{"code":201}}
`

// The commands of the page find what it says that they find: assignments, attempts among them, and what the API server could not write down.
func TestTheAuditPageFindsAssignments(t *testing.T) {
	jq := newJQ(t)
	text := pages(t)["docs/howto/audit.md"]
	found := typing.Marked(text, "audit")
	if len(found) != 2 {
		t.Fatalf("the page has %d fences of commands", len(found))
	}
	for i, want := range []string{
		"T1\talice\t-\tn1\tkubelet-config/a/kubelet\t200\n" +
			"T2\talice\tbob\tn1\tkubelet-config/b/kubelet\t403\n" +
			"T3\tcarol\t-\tn2\t" + `[{"op":"remove","path":"/metadata/annotations/kubelet-supervisor.io~1config-source"}]` + "\t200\n" +
			"T6\talice\t-\tn1\tnull\t200\n" +
			"T7\talice\t-\tn4\t" + `{"configMap":{"name":"a"}}` + "\t200\n" +
			"T8\terin\t-\tn1\t?\t403\n" +
			"T10\tfrank\t-\tn1\tnull\t200\n" +
			"T11\tfrank\t-\tn1\t" + `[{"op":"remove","path":"/metadata/annotations"}]` + "\t200\n",
		"T5\tdave\t-\tn3\t/api/v1/nodes/n3?fieldManager=dave\n",
	} {
		if got := jq.run(found[i][0].Line + "\n" + found[i][0].Answer); got != want {
			t.Errorf("%s\nfinds\n%s\nnot\n%s", found[i][0].Line, got, want)
		}
	}
	want := map[string]string{"configmaps": "8", "kubeletpools": "9", "admissionregistration": "11", "token": "12"}
	for _, filter := range regexp.MustCompile("(?m)^\\| who .* \\| `(\\.objectRef.*)` \\|$").FindAllStringSubmatch(text, -1) {
		for what, id := range want {
			if strings.Contains(filter[1], what) {
				if got := jq.run("jq -r 'select(" + filter[1] + ") | .auditID' audit.log"); got != id+"\n" {
					t.Errorf("%s finds %q, not %s", filter[1], got, id)
				}
				delete(want, what)
			}
		}
	}
	for what := range want {
		t.Errorf("the table searches for no %s", what)
	}
}

// jq runs commands beside the log.
type jq struct {
	*testing.T
	folder string
}

func newJQ(t *testing.T) *jq {
	t.Helper()
	if _, err := exec.LookPath("jq"); err != nil {
		t.Skip("NOT TESTED: the commands of docs/howto/audit.md need jq, and it is not installed: test/parts/debian.sh jq")
	}
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "audit.log"), []byte(auditLog), 0o600); err != nil {
		t.Fatal(err)
	}
	return &jq{t, folder}
}

func (j *jq) run(script string) string {
	j.Helper()
	command := exec.CommandContext(j.Context(), "sh", "-c", script)
	command.Dir = j.folder
	output, err := command.CombinedOutput()
	if err != nil {
		j.Fatalf("%s: %v\n%s", script, err, output)
	}
	return string(output)
}
