package plugin

import (
	"strings"
	"testing"
	"testing/synctest"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/cmdutil"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/document"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/view"
)

const workersText = "kubelet-config/workers/kubelet"

func (b *bench) assigned(t *testing.T, name string) string {
	t.Helper()
	return b.node(t, name).Annotations[nodev1.ConfigSourceAnnotation]
}

func runsIt(config *corev1.ConfigMap) func(*corev1.Node, string) {
	return func(node *corev1.Node, assignment string) {
		if assignment == "" {
			saying(node, "", "Local", corev1.ConditionTrue, "using current (default)", nil, nil)
			return
		}
		saying(node, assignment, "InTrial", corev1.ConditionTrue, "using current", config, nil)
	}
}

func TestAssign(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config := configMapOf("workers", someConfig)
		b := newBench(t, localNode("n1"), localNode("n2"), localNode("n3"), config)
		b.answers(t, runsIt(config))
		stdout, stderr := b.do(t, "assign", "n1", "n2", "--config", "workers", "--yes")
		if want := "node/n1 assigned\nnode/n2 assigned\n"; stdout != want {
			t.Errorf("stdout is %q, want %q", stdout, want)
		}
		contains(t, stderr, "n1, n2, with "+workersText, "maxPods: 110 → 42", "disrupts-pods: below", "not known while the node runs its own configuration",
			"n1: runs "+workersText, "n2: runs "+workersText)
		if strings.Contains(stderr, "syncFrequency") {
			t.Errorf("what does not change is told:\n%s", stderr)
		}
		for name, want := range map[string]string{"n1": workersText, "n2": workersText, "n3": ""} {
			if got := b.assigned(t, name); got != want {
				t.Errorf("%s is assigned %q, want %q", name, got, want)
			}
		}
	})
}

func TestAssignAsks(t *testing.T) {
	for answer, want := range map[string]string{"y\n": workersText, "yes\n": workersText, "n\n": "", "\n": "", "": "", "sure\n": ""} {
		t.Run(answer, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				config := configMapOf("workers", someConfig)
				b := newBench(t, localNode("n1"), config)
				b.answers(t, runsIt(config))
				b.input.WriteString(answer)
				code, _, stderr := b.run(t, "assign", "n1", "--config", "workers")
				contains(t, stderr, "Assign "+workersText+" to node n1? [y/N]")
				if got := b.assigned(t, "n1"); got != want || (code == 0) != (want != "") {
					t.Errorf("assigned %q, exit code %d; want %q", got, code, want)
				}
			})
		})
	}
}

// After a failure no other node is begun, and the command ends with the node's words.
func TestAssignStopsAtTheFirstFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config := configMapOf("workers", someConfig)
		b := newBench(t, localNode("n1"), localNode("n2"), localNode("n3"), config)
		b.answers(t, func(node *corev1.Node, assignment string) {
			if runsIt(config)(node, assignment); node.Name == "n2" {
				saying(node, assignment, "Refused", corev1.ConditionFalse, "using last-known-good (default); maxPods must not be so;\x1b correct it", nil, nil)
			}
		})
		code, stdout, stderr := b.run(t, "assign", "-l", "pool=workers", "--config", "workers", "-y")
		if code != 1 || stdout != "node/n1 assigned\nnode/n2 assigned\n" || b.assigned(t, "n3") != "" {
			t.Errorf("exit code %d, n3 assigned %q, stdout %s", code, b.assigned(t, "n3"), stdout)
		}
		contains(t, stderr, "error: node n2: Refused: using last-known-good (default); maxPods must not be so; correct it", "not begun: n3")
	})
}

func TestAssignWaits(t *testing.T) {
	config := configMapOf("workers", someConfig)
	for _, test := range []struct {
		name      string
		node      *corev1.Node
		reply     func(*corev1.Node, string)
		arguments []string
		want      string // in stderr
		code      int
	}{
		{"a node without a supervisor", newNode("n1"), nil, nil, "has no supervisor: none has written a status on it within 30s; run its kubelet under kubelet-supervisor", 1},
		{"a shorter patience", newNode("n1"), nil, []string{"--answer-timeout=2s"}, "within 2s", 1},
		{"a supervisor that does not answer", localNode("n1"), nil, nil, "not within 5m0s; last seen: waits for the node's supervisor; what was asked of it stands; kubectl kubelet doctor n1", 1},
		{"until it is good", localNode("n1"), runsIt(config), []string{"--until=good", "--timeout=3s"}, "not within 3s; last seen: runs it on trial", 1},
		{"until it is good, and it is", localNode("n1"), func(node *corev1.Node, assignment string) {
			saying(node, assignment, "Active", corev1.ConditionTrue, "", config, config)
		}, []string{"--until=good"}, "n1: passed its trial", 0},
		{"the ConfigMap cannot be had", localNode("n1"), func(node *corev1.Node, assignment string) {
			saying(node, assignment, "SyncFailed", corev1.ConditionFalse, "using current (default); denied", nil, nil)
		}, nil, "SyncFailed: using current (default); denied (the node tries again automatically)", 1},
		{"not at all", localNode("n1"), nil, []string{"--wait=false"}, "maxPods", 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, test.node.DeepCopy(), config)
				b.answers(t, test.reply)
				code, _, stderr := b.run(t, append([]string{"assign", "n1", "--config=workers", "-y"}, test.arguments...)...)
				if code != test.code || b.assigned(t, "n1") != workersText {
					t.Errorf("exit code %d, assigned %q; want %d\n%s", code, b.assigned(t, "n1"), test.code, stderr)
				}
				contains(t, stderr, test.want)
			})
		})
	}
}

func TestAssignRefuses(t *testing.T) {
	broken := configMapOf("broken", "maxPods: [")
	two := configMapOf("two", someConfig)
	two.Data = map[string]string{"a": someConfig, "b": someConfig}
	for _, test := range []struct {
		name      string
		arguments []string
		want      string
	}{
		{"no configuration", []string{"n1"}, "name a configuration with --config"},
		{"no node", []string{"--config=workers"}, "name nodes, or select them with -l"},
		{"a node that is not there", []string{"nobody", "--config=workers"}, `there is no node "nobody"`},
		{"a ConfigMap that is not there", []string{"n1", "--config=nothing"}, "ConfigMap kubelet-config/nothing does not exist"},
		{"a key that is not there", []string{"n1", "--config=kubelet-config/workers/other"}, `key "other" is missing`},
		{"a key that nobody named", []string{"n1", "--config=two"}, "has the keys a, b; name the one"},
		{"what does not decode", []string{"n1", "--config=broken"}, "ConfigMap kubelet-config/broken is not assigned: key \"kubelet\" does not decode"},
		{"another uid", []string{"n1", "--config=workers@0000"}, "has the uid uid-of-workers, and 0000 is asked for"},
		{"to wait for what is none", []string{"n1", "--config=workers", "--until=soon"}, "--until=soon is not known"},
		{"nobody at a time", []string{"n1", "--config=workers", "--parallel=0"}, "--parallel is at least 1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newBench(t, localNode("n1"), configMapOf("workers", someConfig), broken, two)
			code, _, stderr := b.run(t, append([]string{"assign", "--yes"}, test.arguments...)...)
			if code != 1 || b.assigned(t, "n1") != "" {
				t.Errorf("exit code %d, assigned %q", code, b.assigned(t, "n1"))
			}
			contains(t, stderr, "error: ", test.want)
		})
	}
}

// A kubelet that cannot be asked is compared by the ConfigMap that it runs, and else not at all.
func TestAssignWithoutConfigz(t *testing.T) {
	old, config := configMapOf("old", document.Header+"maxPods: 30\n"), configMapOf("workers", someConfig)
	runs := saying(newNode("n1"), "kubelet-config/old/kubelet", "Active", corev1.ConditionTrue, "", old, old)
	runs.Annotations[nodev1.ConfigSourceAnnotation] = "kubelet-config/old/kubelet"
	b := newBench(t, runs, localNode("n2"), old, config)
	b.answers(t, nil)
	b.configz = nil
	_, stderr := b.do(t, "assign", "n1", "n2", "--config=workers", "--dry-run=client")
	contains(t, stderr, "n1, with", "maxPods: 30 → 42", "without flags and drop-in files of the node", "n2, with", "What would change is not known: its kubelet cannot be asked what it runs with: nodes/proxy is forbidden")
	if got := b.assigned(t, "n1"); got != "kubelet-config/old/kubelet" {
		t.Errorf("the dry run assigned %q", got)
	}
}

// A field that a flag sets stays: it shows by what runs now.
func TestAssignShadowed(t *testing.T) {
	old, config := configMapOf("old", document.Header+"maxPods: 30\n"), configMapOf("workers", someConfig)
	runs := saying(newNode("n1"), "kubelet-config/old/kubelet", "Active", corev1.ConditionTrue, "", old, old)
	b := newBench(t, runs, old, config)
	b.configz["maxPods"] = int64(20)
	_, stderr := b.do(t, "assign", "n1", "--config=workers", "--dry-run=client")
	contains(t, stderr, "maxPods: 20 → 42", "stays 20: --max-pods or a drop-in file of the node wins")
}

// A ConfigMap that was edited since is not what the kubelet runs, and tells nothing of flags.
func TestAssignOverEdited(t *testing.T) {
	old, config := configMapOf("old", document.Header+"maxPods: 30\n"), configMapOf("workers", someConfig)
	runs := saying(newNode("n1"), "kubelet-config/old/kubelet", "Active", corev1.ConditionTrue, "", old, old)
	edited := old.DeepCopy()
	edited.ResourceVersion = "8"
	b := newBench(t, runs, edited, config)
	b.configz["maxPods"] = int64(20)
	_, stderr := b.do(t, "assign", "n1", "--config=workers", "--dry-run=client")
	contains(t, stderr, "maxPods: 20 → 42", "disrupts-pods", "not known while the node runs a version of kubelet-config/old/kubelet that cannot be read")
}

// Where the Node has the field, or the API server keeps it, it is set; an annotation would be changed where it is, for it wins.
func TestCarrier(t *testing.T) {
	wanted := nodev1.Assignment{Namespace: "kubelet-config", Name: "workers", Key: "kubelet"}
	field := localNode("n1")
	field.Spec.ConfigSource = &corev1.NodeConfigSource{ConfigMap: &corev1.ConfigMapNodeConfigSource{Namespace: "a", Name: "b", KubeletConfigKey: "c"}}
	both := field.DeepCopy()
	both.Annotations[nodev1.ConfigSourceAnnotation] = "a/b/c"
	pinned := wanted
	pinned.UID = "1"
	for _, test := range []struct {
		name   string
		node   *corev1.Node
		keeps  bool
		wanted nodev1.Assignment
		want   nodev1.Carrier
	}{
		{"the API server drops the field", localNode("n1"), false, wanted, nodev1.CarrierAnnotation},
		{"the API server keeps the field", localNode("n1"), true, wanted, nodev1.CarrierField},
		{"the Node has the field", field, false, wanted, nodev1.CarrierField},
		{"the Node has both", both, true, wanted, nodev1.CarrierAnnotation},
		{"a uid", field, true, pinned, nodev1.CarrierAnnotation},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newBench(t, test.node)
			b.PrependReactor("patch", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
				node := test.node.DeepCopy()
				if test.keeps {
					node.Spec.ConfigSource = &corev1.NodeConfigSource{}
				}
				return true, node, nil
			})
			w := newWriter(t.Context(), b.factory, b, cmdutil.DryRunNone)
			if got := w.carrierFor(t.Context(), view.NodeOf(test.node), test.wanted); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func (b *bench) answersReview(allowed func(namespace, name string) bool) {
	b.PrependReactor("create", "subjectaccessreviews", func(action clienttesting.Action) (bool, runtime.Object, error) {
		review := action.(clienttesting.CreateAction).GetObject().(*authorizationv1.SubjectAccessReview)
		review.Status.Allowed = allowed(review.Spec.ResourceAttributes.Namespace, review.Spec.ResourceAttributes.Name)
		return true, review, nil
	})
}

// A node is let read what it is assigned, unless it may already.
func TestGrant(t *testing.T) {
	for _, test := range []struct {
		name, namespace string
		before          []runtime.Object
		review          func(b *bench)
		want            string // the subjects
	}{
		{"it may not", "kube-system", nil, func(b *bench) { b.answersReview(func(string, string) bool { return false }) }, "system:node:n1"},
		{"it may", "kube-system", nil, func(b *bench) { b.answersReview(func(string, string) bool { return true }) }, ""},
		{"others may", "kube-system", grantFor("workers", "n2"), func(*bench) {}, "system:node:n2 system:node:n1"},
		{"granted before", "kube-system", grantFor("workers", "n1"), func(*bench) {}, "system:node:n1"},
		{"nobody tells, in the namespace of install", cmdutil.ConfigNamespace, nil, func(*bench) {}, ""},
		{"nobody tells, elsewhere", "kube-system", nil, func(*bench) {}, "system:node:n1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				config := configMapOf("workers", someConfig)
				config.Namespace = test.namespace
				b := newBench(t, append(test.before, localNode("n1"), config)...)
				b.answers(t, runsIt(config))
				test.review(b)
				b.do(t, "assign", "n1", "--yes", "--config="+test.namespace+"/workers")
				bindings, err := b.RbacV1().RoleBindings("").List(t.Context(), metav1.ListOptions{})
				if err != nil {
					t.Fatal(err)
				}
				var subjects []string
				for _, binding := range bindings.Items {
					for _, subject := range binding.Subjects {
						subjects = append(subjects, subject.Name)
					}
				}
				if got := strings.Join(subjects, " "); got != test.want {
					t.Errorf("granted to %q, want %q", got, test.want)
				}
				roles, err := b.RbacV1().Roles("").List(t.Context(), metav1.ListOptions{})
				if err != nil || (len(roles.Items) > 0) != (test.want != "") {
					t.Fatalf("%d Roles, %v", len(roles.Items), err)
				}
				if test.want != "" && test.before == nil {
					rule := roles.Items[0].Rules[0]
					if strings.Join(rule.ResourceNames, ",") != "workers" || strings.Join(rule.Verbs, ",") != "get,list,watch" {
						t.Errorf("the Role grants %+v", rule)
					}
				}
			})
		})
	}
}
