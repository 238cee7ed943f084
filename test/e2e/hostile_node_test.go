//go:build e2e

package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// annotationsLimit is what all annotations of an object may have together, in bytes (ValidateAnnotations of apimachinery).
const annotationsLimit = 256 << 10

// Whatever is written on the Node, the kubelet runs on, and what is assigned is followed.
func TestHostileNode(t *testing.T) {
	n := sharedNode(t)
	s := n.startedLocal(t, options{})
	kubelet := s.kubelet(t)
	unharmed := func(t *testing.T, v nodeView, words string) {
		t.Helper()
		wantHarmless(t, s, v, words)
		if now := s.kubelet(t); now.ID != kubelet.ID {
			t.Errorf("the kubelet was restarted: pid %d, then %d", kubelet.ID, now.ID)
		}
	}
	t.Run("an assignment of 200 KiB", func(t *testing.T) {
		for _, text := range []string{strings.Repeat("x", 200<<10), "kube-system/" + strings.Repeat("é", 100<<10) + "/kubelet", strings.Repeat("/", 200<<10), "kube-system/a/kubelet@" + strings.Repeat("\u202e", 60<<10)} {
			n.assign(t, text)
			v := n.awaitNode(t, "the assignment is malformed", func(v nodeView) bool {
				return v.Condition.Reason == "InvalidAssignment" && v.Observed != nil && len(*v.Observed) < 1100 && strings.HasPrefix(text, strings.TrimSuffix(*v.Observed, "…"))
			})
			unharmed(t, v, "annotation "+assignmentAnnotation)
			if len(v.Config.Error) > 4096 {
				t.Errorf("an error of %d bytes", len(v.Config.Error))
			}
		}
	})
	t.Run("annotations without room for ours", func(t *testing.T) {
		n.unassign(t)
		n.awaitReason(t, "", "Local")
		v, err := n.view()
		if err != nil {
			t.Fatal(err)
		}
		room := annotationsLimit - len(assignmentAnnotation)
		for name, value := range v.Node.Annotations {
			room -= len(name) + len(value)
		}
		n.assign(t, strings.Repeat("x", room-1))
		await(t, "state.json says what the Node cannot", func() error {
			if reason := s.record(t).Condition.Reason; reason != "InvalidAssignment" {
				return fmt.Errorf("reason %s", reason)
			}
			return nil
		})
		await(t, "the log says why", func() error {
			if !strings.Contains(s.log(t), "publishing on the Node failed") {
				return fmt.Errorf("it does not")
			}
			return nil
		})
		n.unassign(t)
		v = n.awaitReason(t, "", "Local")
		unharmed(t, v, "")
	})
	t.Run("an endless retry", func(t *testing.T) {
		for _, value := range []string{strings.Repeat("\x7f", 200<<10), strings.Repeat("\x7f", 200<<10) + "y"} {
			n.annotate(t, retryAnnotation, value)
		}
		n.annotate(t, retryAnnotation, nil)
		v := n.awaitReason(t, "", "Local")
		unharmed(t, v, "")
	})
}

// Local files are the administrator's. A spoilt one is reported, and what runs goes on.
func TestHostileLocalFiles(t *testing.T) {
	n := sharedNode(t)
	p := n.makeLocalParts(t)
	s := n.startedLocal(t, p.options())
	kubelet := s.kubelet(t)
	content := func(text string) func(*testing.T, string) {
		return func(t *testing.T, path string) { writeFile(t, path, text) }
	}
	for _, test := range []struct {
		name  string
		spoil func(t *testing.T, path string)
	}{
		{"empty", content("")},
		{"binary", content("\x00\xff\xfe" + strings.Repeat("\x01", 1<<20))},
		{"deep", content(header + "a: " + strings.Repeat("[", 1<<20))},
		{"larger than is read", content(header + strings.Repeat("#", 5<<20))},
		{"a link to nothing", func(t *testing.T, path string) {
			if err := os.Symlink("nothing", path+".link"); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(path+".link", path); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		for place, file := range map[string]string{"the file of --config": p.target, "a drop-in file": filepath.Join(p.dropIns, "50-hostile.conf")} {
			t.Run(place+", "+test.name, func(t *testing.T) {
				test.spoil(t, file)
				v := n.awaitNode(t, "the change is reported", func(v nodeView) bool { return strings.Contains(v.Condition.Message, localPending) })
				wantHarmless(t, s, v, localPending)
				if err := os.Remove(file); err != nil {
					t.Fatal(err)
				}
				writeFile(t, p.target, n.kubeletConfig())
				n.awaitNode(t, "the change is undone", func(v nodeView) bool { return !strings.Contains(v.Condition.Message, localPending) })
				if now := s.kubelet(t); now.ID != kubelet.ID {
					t.Errorf("the kubelet was restarted: pid %d, then %d", kubelet.ID, now.ID)
				}
			})
		}
	}
}

// Thousands of labels, annotations and images change nothing either.
func TestLongFloodedNode(t *testing.T) {
	n := sharedNode(t)
	s := n.startedLocal(t, options{})
	labels, annotations, images := object{}, object{}, []corev1.ContainerImage{}
	for i := range 3_000 {
		labels[fmt.Sprintf("example.com/label-%d", i)] = strings.Repeat("x", 63)
		annotations[fmt.Sprintf("example.com/annotation-%d", i)] = strings.Repeat("x", 40)
		images = append(images, corev1.ContainerImage{Names: []string{fmt.Sprintf("example.com/image-%d@sha256:%s", i, strings.Repeat("0", 64))}, SizeBytes: 1})
	}
	n.must(t, http.MethodPatch, nodePath, object{"metadata": object{"labels": labels, "annotations": annotations}}, nil)
	n.must(t, http.MethodPatch, nodePath+"/status", object{"status": object{"images": images}}, nil)
	config := n.putConfigMap(t, "flooded", map[string]string{"kubelet": n.kubeletConfig(with("maxPods", 41))})
	n.assign(t, config.assignment("kubelet"))
	v := n.awaitReason(t, config.assignment("kubelet"), "Active")
	wantStatus(t, v, config.source("kubelet"), config.source("kubelet"), config.source("kubelet"), "")
	wantHarmless(t, s, v, "")
	for _, deny := range []string{"kubelet", "kubelet2"} { // Node events with all of it, in quick succession
		n.annotate(t, "example.com/more", deny)
	}
	n.unassign(t)
	wantHarmless(t, s, n.awaitReason(t, "", "Local"), "")
}
