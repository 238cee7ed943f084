package plugin

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
)

func TestDoctor(t *testing.T) {
	config := configMapOf("workers", someConfig)
	may := func(b *bench) {
		b.answersReview(func(string, string) bool { return true })
		b.enforces()
	}
	spoke := func(reason, words string, ago time.Duration) *corev1.Node {
		node := saying(newNode("n1"), "", reason, corev1.ConditionUnknown, words, nil, nil)
		node.Status.Conditions[1].LastHeartbeatTime = metav1.NewTime(noon.Add(-ago))
		return resaying(node, func(s *nodev1.Status) { s.Since = noon.Add(-ago) })
	}
	waits := func(until time.Time) *corev1.Node {
		return resaying(spoke("Applying", "the edit waits for its turn", 20*time.Minute), func(s *nodev1.Status) { s.Change = &nodev1.Change{Due: until} })
	}
	mayNot := func(b *bench) { b.answersReview(func(string, string) bool { return false }) }
	silent := assignedNode("n1", config)
	silent.Annotations[nodev1.ConfigSourceAnnotation] = "kubelet-config/new/kubelet"
	shadows := resaying(assignedNode("n1", config), func(s *nodev1.Status) {
		s.Shadowed = []nodev1.ShadowedField{{Field: "maxPods", Value: "42", By: "--max-pods", Effective: "42"}}
	})
	broken := localNode("n1")
	broken.Annotations[nodev1.StatusAnnotation] = "{"
	malformed := localNode("n1")
	malformed.Annotations[nodev1.ConfigSourceAnnotation] = "nonsense"
	for _, test := range []struct {
		name    string
		objects []runtime.Object
		bench   func(*bench)
		code    int
		want    []string
	}{
		{"all is well", append(policies(t), assignedNode("n1", config), config), func(b *bench) { may(b); b.configz["maxPods"] = int64(42) }, 0,
			[]string{"ok      the node is Ready", "ok      the supervisor answered", "is well-formed", "key kubelet decodes", "ok      the node may read", "no kubelet flag", "the node says Active", "limits who may assign, and is as install makes it", "refuses a dry run in which the node assigns itself", "limits who may change configurations"}},
		{"nothing is assigned", []runtime.Object{localNode("n1")}, may, 0, []string{"nothing is assigned", "is not installed: everybody who may patch"}},
		{"a flag wins", []runtime.Object{assignedNode("n1", config), config}, may, 0, []string{"note    a kubelet flag or a drop-in file of the node wins over maxPods (110 stays)"}},
		{"the node knows of a flag", []runtime.Object{shadows, config}, func(b *bench) { may(b); b.configz["maxPods"] = int64(42) }, 0, []string{"note    the node says Shadowed: maxPods (42) by --max-pods (42)\n"}},
		{"no supervisor", []runtime.Object{newNode("n1")}, may, 1, []string{"WRONG   no supervisor has met this node", "error: node n1: one thing is wrong"}},
		{"a silent supervisor, and no ConfigMap", []runtime.Object{silent}, may, 1, []string{"WRONG   the supervisor has not answered the assignment", "WRONG   ConfigMap kubelet-config/new does not exist", "2 things are wrong"}},
		{"a malformed assignment", []runtime.Object{malformed}, may, 1, []string{`the assignment "nonsense" is malformed`}},
		{"it may not read", []runtime.Object{assignedNode("n1", config), config}, mayNot, 1, []string{"WRONG   the node may not read ConfigMap kubelet-config/workers; kubectl kubelet assign n1 --config kubelet-config/workers lets it"}},
		{"nobody tells", []runtime.Object{assignedNode("n1", config), config}, func(b *bench) { b.configz = nil }, 0, []string{"unknown whether the node may read"}},
		{"the environment fails", []runtime.Object{spoke("EnvironmentFailing", "the fallback fails as well", time.Second)}, may, 1, []string{"WRONG   the node says EnvironmentFailing: the fallback fails as well"}},
		{"it changes", []runtime.Object{spoke("Applying", "it starts", time.Minute)}, may, 0, []string{"note    the node says Applying: it starts"}},
		{"it has changed for long", []runtime.Object{spoke("Applying", "it starts", 6*time.Minute)}, may, 1, []string{"WRONG   the node has said Applying for 6m"}},
		{"its turn is later", []runtime.Object{waits(noon.Add(30 * time.Minute))}, may, 0, []string{"note    the node says Applying"}},
		{"a status that is broken", []runtime.Object{broken}, may, 1, []string{"WRONG   what the supervisor says cannot be read: annotation kubelet-supervisor.io/status"}},
		{"its turn was long ago", []runtime.Object{waits(noon.Add(-10 * time.Minute))}, may, 1, []string{"WRONG   the node has said Applying"}},
		{"stopped", []runtime.Object{saying(newNode("n1"), "", "Stopped", corev1.ConditionUnknown, "using current (default); the host shuts down", nil, nil)}, may, 1, []string{"WRONG   the supervisor was stopped: using current (default); the host shuts down"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, test.objects...)
				test.bench(b)
				code, stdout, stderr := b.run(t, "doctor", "n1")
				if code != test.code {
					t.Errorf("exit code %d, want %d", code, test.code)
				}
				contains(t, stdout+stderr, test.want...)
			})
		})
	}
}

// What one sees of a healthy node, and of one where much is wrong.
func TestDoctorInFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config := configMapOf("workers", someConfig)
		b := newBench(t, append(policies(t), assignedNode("n1", config), newNode("n2"), config)...)
		b.enforces()
		b.answersReview(func(string, string) bool { return true })
		b.configz["maxPods"] = int64(42)
		stdout, _ := b.do(t, "doctor", "n1")
		golden(t, "doctor.txt", stdout)
		_, stdout, stderr := b.run(t, "doctor", "n2")
		golden(t, "doctor-alone.txt", stdout+stderr)
	})
}

// A supervisor speaks when it starts: a kubelet that was started long after its last words may run without it.
func TestDoctorSilence(t *testing.T) {
	started := func(component, reason string, after time.Duration) *corev1.Event {
		return &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: component + reason}, InvolvedObject: corev1.ObjectReference{Kind: "Node", Name: "n1"},
			Source: corev1.EventSource{Component: component}, Reason: reason, LastTimestamp: metav1.NewTime(noon.Add(-5*time.Minute + after))} // the supervisor spoke 5 m ago
	}
	ready := func(after time.Duration) *corev1.Node {
		node := localNode("n1")
		node.Status.Conditions[0].LastTransitionTime = metav1.NewTime(noon.Add(-5*time.Minute + after))
		return node
	}
	for _, test := range []struct {
		name    string
		objects []runtime.Object
		want    string // "": nothing is noted
	}{
		{"it speaks last", []runtime.Object{localNode("n1")}, ""},
		{"it spoke as the kubelet was started", []runtime.Object{ready(2 * time.Minute), started("kubelet", "Starting", 2*time.Minute)}, ""},
		{"the kubelet was started later", []runtime.Object{localNode("n1"), started("kubelet", "Starting", 4*time.Minute)}, "the kubelet was started 60s ago, and the supervisor has said nothing since"},
		{"another program was", []runtime.Object{localNode("n1"), started("kube-proxy", "Starting", 4*time.Minute)}, ""},
		{"the kubelet did something else", []runtime.Object{localNode("n1"), started("kubelet", "NodeReady", 4*time.Minute)}, ""},
		{"the node became Ready later", []runtime.Object{ready(4 * time.Minute)}, "the node became Ready 60s ago, and the supervisor has said nothing since"},
	} {
		t.Run(test.name, func(t *testing.T) {
			stdout, _ := newBench(t, test.objects...).do(t, "doctor", "n1")
			if test.want != "" {
				contains(t, stdout, "note    "+test.want)
			} else if strings.Contains(stdout, "nothing since") {
				t.Errorf("got\n%s", stdout)
			}
		})
	}
}

// What was assigned a moment ago is waited for.
func TestDoctorAwaitsTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config := configMapOf("workers", someConfig)
		node := localNode("n1")
		node.Annotations[nodev1.ConfigSourceAnnotation] = workersText
		b := newBench(t, node, config)
		b.answersReview(func(string, string) bool { return true })
		time.AfterFunc(3*time.Second, func() {
			_ = b.Tracker().Update(corev1.SchemeGroupVersion.WithResource("nodes"), assignedNode("n1", config), "")
		})
		stdout, _ := b.do(t, "doctor", "n1")
		contains(t, stdout, "ok      the supervisor answered the assignment")
	})
}

func TestDescribe(t *testing.T) {
	config, old := configMapOf("workers", someConfig), configMapOf("old", someConfig)
	node := saying(newNode("n1"), workersText, "Refused", corev1.ConditionFalse,
		`using last-known-good (UID: "u"); kubelet-config/workers/kubelet is refused: maxPods`+"\x1b"+`; correct the configuration`, old, old)
	node.Annotations[nodev1.ConfigSourceAnnotation] = workersText
	event := func(reason, component string, minute int) *corev1.Event {
		return &corev1.Event{
			ObjectMeta:     metav1.ObjectMeta{Namespace: "default", Name: reason},
			InvolvedObject: corev1.ObjectReference{Kind: "Node", Name: "n1"}, Source: corev1.EventSource{Component: component},
			Type: "Warning", Reason: reason, Message: "message of " + reason, LastTimestamp: metav1.NewTime(noon.Add(-time.Duration(minute) * time.Minute)),
		}
	}
	b := newBench(t, node, config, event("KubeletConfigRefused", "kubelet-supervisor", 1), event("Starting", "kubelet", 2))
	stdout, _ := b.do(t, "describe", "n1")
	golden(t, "describe.txt", stdout)
	stdout, _ = newBench(t, newNode("n1")).do(t, "describe", "n1")
	contains(t, stdout, "Assignment:", "nothing, so local", "Supervisor:", "none has met this node")
}

func TestDiff(t *testing.T) {
	config := configMapOf("workers", someConfig)
	b := newBench(t, assignedNode("n1", config), localNode("n2"), config)
	code, stdout, stderr := b.run(t, "diff", "n1")
	golden(t, "diff.txt", stdout)
	if code != 1 || stderr != "" {
		t.Errorf("with differences: exit code %d and %q, want 1 and nothing", code, stderr)
	}
	code, _, stderr = b.run(t, "diff", "n2")
	if code != 2 {
		t.Errorf("nothing assigned: exit code %d, want 2", code)
	}
	contains(t, stderr, "its own configuration is known to the node alone; name another with --config")
	if code, stdout, _ = b.run(t, "diff", "n2", "--config=workers"); code != 1 || stdout == "" {
		t.Errorf("with --config: exit code %d, and %q", code, stdout)
	}
	b.configz["maxPods"] = int64(42)
	if stdout, _ = b.do(t, "diff", "n2", "--config=workers"); !strings.Contains(stdout, "Nothing changes") {
		t.Errorf("without differences: %q", stdout)
	}
}
