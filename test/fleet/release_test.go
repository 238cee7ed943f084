//go:build e2e && release

package fleet

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
	"github.com/kubelet-supervisor/kubelet-supervisor/deploy"
	"github.com/kubelet-supervisor/kubelet-supervisor/test/cluster"
	"github.com/kubelet-supervisor/kubelet-supervisor/test/pages"
)

// This test is of make test-release: nothing in it is of this tree but the page and the test cluster.

const released = "v0.1.0" // which release docs/howto/verify.md writes of

// A stranger's cluster, by the page's commands: rights and definitions, the image loaded into the node's runtime, the controller. Its pods run from
// that image as the Deployment has them, one leads, and a pool is rolled out to a real node whose supervisor is the release's, too.
func TestAStrangersCluster(t *testing.T) {
	page, err := os.ReadFile("../../docs/howto/verify.md")
	if err != nil {
		t.Fatal(err)
	}
	steps := pages.Marked(pages.Section(string(page), "The cluster"), "release")
	if len(steps) != 4 {
		t.Fatalf("the page has %d fences about the cluster, want definitions, image to a registry, image to a node, controller", len(steps))
	}
	s := newStranger(t)
	define, push, load, apply := steps[0], steps[1], steps[2], steps[3]
	s.types(define)
	s.named(push, apply)
	s.types(load)
	s.types(apply)
	if err := s.f.policiesHold(t.Context()); err != nil {
		t.Fatal(err)
	}

	c := s.f.newCrew(t, "strangers", 3, nil)
	c.supervisor = s.unpacked("kubelet-supervisor_" + strings.TrimPrefix(released, "v") + "-1_" + runtime.GOARCH + ".deb")
	r := c.makeReal("")
	s.must("kubectl label node " + cluster.NodeName + " node-role.kubernetes.io/control-plane=") // the Deployment asks for one
	s.run()
	c.roll(quick, func(p *v1alpha1.KubeletPool) { p.Spec.Layers[0].Inline.Raw = []byte(`{"maxPods":61}`) })
	c.awaitReason(v1alpha1.ConditionReady, "Completed", 3*time.Minute)
	r.wantFields(map[string]any{"maxPods": 61})
	if said := s.must("kubectl kubelet status " + cluster.NodeName); !strings.Contains(said, "Active") {
		t.Errorf("the plugin says %s", said)
	}
}

// named is the way by a registry, up to the Deployment that names it: nothing is pulled here, and packaging/image has a test that copies the image to a
// registry. The file is as it was afterwards.
func (s *stranger) named(push, apply []pages.Command) {
	s.t.Helper()
	s.types(push[1:])
	s.types(apply)
	if image := s.deployment().Spec.Template.Spec.Containers[0].Image; !strings.HasPrefix(image, "registry.example/kubelet-supervisor-controller:"+released+"@sha256:") {
		s.t.Errorf("with a registry the image is %s", image)
	}
	s.must("ln -sf '" + s.made + "'/*.yaml .")
}

// stranger has a cluster, and a folder with what was downloaded.
type stranger struct {
	t      *testing.T
	f      *fleet
	made   string // the release
	folder string // links to its files
	type_  func(line string) (string, error)
}

func newStranger(t *testing.T) *stranger {
	t.Helper()
	made := filepath.Join(os.Getenv("KUBELET_SUPERVISOR_TEST_RELEASES"), released)
	files, err := filepath.Glob(filepath.Join(made, "k*"))
	if err != nil || len(files) == 0 || !filepath.IsAbs(made) {
		t.Fatal("KUBELET_SUPERVISOR_TEST_RELEASES is not the folder of test/release/releases.sh: run make test-release")
	}
	s := &stranger{t: t, f: fresh(t), made: made, folder: t.TempDir()}
	for _, file := range files { // the page's sed puts a file in the place of a link
		if err := os.Symlink(file, filepath.Join(s.folder, filepath.Base(file))); err != nil {
			t.Fatal(err)
		}
	}
	plugin := s.unpacked("kubectl-kubelet_" + released + "_linux_" + runtime.GOARCH + ".tar.gz")
	s.type_ = s.f.shellIn(t, s.folder, map[string]string{"kubectl-kubelet": plugin, "ctr": s.ctr()})
	return s
}

// ctr is that of the test cluster's containerd, whose socket and snapshotter are not those of other nodes.
func (s *stranger) ctr() string {
	s.t.Helper()
	file := filepath.Join(s.t.TempDir(), "ctr")
	text := fmt.Sprintf("#!/bin/sh\nnamespace=$1; shift 3\nexec %s --address=%s $namespace images import --local --snapshotter=native \"$@\"\n",
		filepath.Join(filepath.Dir(s.f.kubectl()), "ctr"), filepath.Join(s.f.Folder, "containerd.sock"))
	if err := os.WriteFile(file, []byte(text), 0o700); err != nil {
		s.t.Fatal(err)
	}
	return file
}

func (s *stranger) must(line string) string {
	s.t.Helper()
	output, err := s.type_(line)
	if err != nil {
		s.t.Fatalf("%s: %v\n%s", line, err, output)
	}
	return output
}

func (s *stranger) types(commands []pages.Command) {
	s.t.Helper()
	for _, command := range commands {
		s.t.Logf("%s\n%s", command.Line, s.must(command.Line))
	}
}

// unpacked gives the program of a package or an archive.
func (s *stranger) unpacked(name string) string {
	s.t.Helper()
	program, _, _ := strings.Cut(name, "_")
	to := s.t.TempDir()
	line := `tar --extract --file="$1" --directory="$2"`
	if strings.HasSuffix(name, ".deb") {
		line = `dpkg-deb --extract "$1" "$2"`
	}
	if output, err := exec.CommandContext(s.t.Context(), "bash", "-c", line, "bash", filepath.Join(s.folder, name), to).CombinedOutput(); err != nil {
		s.t.Fatalf("unpacking %s: %v\n%s", name, err, output)
	}
	for _, file := range []string{filepath.Join(to, program), filepath.Join(to, "usr/bin", program)} {
		if _, err := os.Stat(file); err == nil {
			return file
		}
	}
	s.t.Fatalf("%s has no %s", name, program)
	return ""
}

// deployment is what the API server has made of the release's file.
func (s *stranger) deployment() (d appsv1.Deployment) {
	s.t.Helper()
	key := types.NamespacedName{Namespace: deploy.ControllerNamespace, Name: deploy.ControllerName}
	if err := s.f.admin.Get(s.t.Context(), key, &d); err != nil {
		s.t.Fatal(err)
	}
	return d
}

// run has as many pods as the Deployment asks for, and waits until one of them leads.
func (s *stranger) run() {
	s.t.Helper()
	d := s.deployment()
	for i := range int(*d.Spec.Replicas) {
		pod := s.f.run(s.t, d.Spec.Template.Spec, i)
		if is := s.f.container(s.t, pod); is.Image != "docker.io/library/kubelet-supervisor-controller:"+released {
			s.t.Errorf("%s runs the image %s", pod, is.Image)
		}
	}
	s.f.awaitLeader(s.t, "") // nobody else could; its name is that of the host, whose network the pods have
}
