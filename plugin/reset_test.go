package plugin

import (
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
)

func assignedNode(name string, config *corev1.ConfigMap) *corev1.Node {
	text := config.Namespace + "/" + config.Name + "/kubelet"
	node := saying(newNode(name), text, "Active", corev1.ConditionTrue, "using current", config, config)
	node.Annotations[nodev1.ConfigSourceAnnotation] = text
	return node
}

// A reset takes away the assignment and what the node was let read, and leaves the other nodes theirs.
func TestReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config := configMapOf("workers", someConfig)
		copied := grantFor("copied", "n1")[1].(*rbacv1.RoleBinding)
		copied.Name = "by-hand" // a person's own, with the label that was copied
		b := newBench(t, append(append(grantFor("workers", "n1", "n2"), grantFor("alone", "n1")...), assignedNode("n1", config), config, copied)...)
		b.answers(t, runsIt(config))
		stdout, stderr := b.do(t, "reset", "n1", "--yes")
		if stdout != "node/n1 reset\n" || b.assigned(t, "n1") != "" {
			t.Errorf("assigned %q, stdout %q", b.assigned(t, "n1"), stdout)
		}
		contains(t, stderr, "n1: runs its own configuration", "n1: may no longer read")
		bindings, err := b.RbacV1().RoleBindings("").List(t.Context(), metav1.ListOptions{})
		if err != nil || len(bindings.Items) != 2 || len(bindings.Items[0].Subjects) != 1 || bindings.Items[1].Subjects[0].Name != "system:node:n2" {
			t.Errorf("left are %v, %v", bindings.Items, err)
		}
		if roles, err := b.RbacV1().Roles("").List(t.Context(), metav1.ListOptions{}); err != nil || len(roles.Items) != 1 {
			t.Errorf("left are %d Roles, %v", len(roles.Items), err)
		}
	})
}

func TestRetry(t *testing.T) {
	config := configMapOf("workers", someConfig)
	rejected := func() *corev1.Node {
		node := assignedNode("n1", config)
		return saying(node, workersText, "Rejected", corev1.ConditionFalse, "using last-known-good (default); it died", nil, nil)
	}
	for _, test := range []struct {
		name  string
		node  *corev1.Node
		reply func(*corev1.Node, string)
		code  int
		want  string
	}{
		{"it runs now", rejected(), runsIt(config), 0, "n1: runs " + workersText},
		{"it says something else", rejected(), func(node *corev1.Node, assignment string) {
			saying(node, assignment, "Rejected", corev1.ConditionFalse, "using last-known-good (default); it died again", nil, nil)
		}, 1, "it died again"},
		{"it does not hear", rejected(), nil, 1, "has not heard that it is to try again; it says Rejected: using last-known-good (default); it died"},
		{"nothing was wrong", assignedNode("n1", config), runsIt(config), 0, "n1: runs " + workersText},
		{"nothing is assigned", localNode("n1"), nil, 1, "there is nothing to try again"},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, test.node, config)
				b.answers(t, test.reply)
				code, _, stderr := b.run(t, "retry", "n1", "--yes")
				if code != test.code {
					t.Errorf("exit code %d, want %d\n%s", code, test.code, stderr)
				}
				contains(t, stderr, test.want)
				if got := b.node(t, "n1").Annotations[nodev1.RetryAnnotation]; (got != "") != (test.name != "nothing is assigned") {
					t.Errorf("the retry annotation is %q", got)
				}
			})
		})
	}
}

// Nobody follows the assignment of a node without a supervisor: it is taken away, with what it allowed, and that is all there is to do.
func TestResetWithoutSupervisor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config := configMapOf("workers", someConfig)
		node := newNode("n1")
		node.Annotations = map[string]string{nodev1.ConfigSourceAnnotation: workersText}
		b := newBench(t, append(grantFor("workers", "n1"), node, config)...)
		b.answers(t, nil)
		_, stderr := b.do(t, "reset", "n1", "--yes")
		contains(t, stderr, "n1: no supervisor has written a status on it within 30s, so no supervisor has followed the assignment", "n1: may no longer read")
		if b.assigned(t, "n1") != "" {
			t.Errorf("assigned %q", b.assigned(t, "n1"))
		}
	})
}

// A retry restarts kubelets, so it asks.
func TestRetryAsks(t *testing.T) {
	config := configMapOf("workers", someConfig)
	for answer, want := range map[string]bool{"y\n": true, "n\n": false, "": false} {
		b := newBench(t, assignedNode("n1", config), assignedNode("n2", config), config)
		b.answers(t, nil)
		b.input.WriteString(answer)
		code, _, stderr := b.run(t, "retry", "-l", "pool=workers", "--wait=false")
		_, asked := b.node(t, "n1").Annotations[nodev1.RetryAnnotation]
		if asked != want || (code == 0) != want {
			t.Errorf("answer %q: exit code %d, asked to try again: %v", answer, code, asked)
		}
		contains(t, stderr, "n1: tries "+workersText+" again", "n2: tries", "Let 2 nodes try again? [y/N]")
	}
}
