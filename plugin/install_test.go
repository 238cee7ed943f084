package plugin

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/kubelet-supervisor/kubelet-supervisor/deploy"
)

// What is installed is what packaging has, each after its namespace.
func TestInstallDryRun(t *testing.T) {
	stdout, _ := newBench(t).do(t, "install", "--dry-run=client")
	golden(t, "install.txt", stdout)
}

// With the controller come the kind, the policies and roles, and at the end the program.
func TestInstallController(t *testing.T) {
	b := newBench(t)
	stdout, _ := b.do(t, "install", "--controller", "--image=registry.example/c:v1", "--dry-run=client")
	golden(t, "install-controller.txt", stdout)
	all := stdout
	stdout, _ = b.do(t, "install", "--controller", "--image=none", "--dry-run=client")
	if !strings.HasPrefix(all, stdout) || strings.Contains(stdout, "deployment") || !strings.Contains(stdout, "customresourcedefinition") {
		t.Errorf("without the program it installs\n%s", stdout)
	}
	stdout, _ = b.do(t, "install", "--controller", "--image=registry.example/c:v1", "--dry-run=client", "-o", "yaml")
	if strings.Count(stdout, "image: registry.example/c:v1\n") != 1 || strings.Contains(stdout, "image: kubelet-supervisor-controller") {
		t.Errorf("the image is not in\n%s", stdout)
	}
	for _, arguments := range [][]string{{"--controller"}, {"--image=registry.example/c:v1"}, {"--controller", "--image=a b"},
		{"--controller-node-selector=a=b"}, {"--controller", "--image=none", "--controller-node-selector=a=b"},
		{"--controller=external", "--image=a"}, {"--controller=external", "--controller-node-selector=a=b"}} {
		code, stdout, stderr := b.run(t, append([]string{"install", "--dry-run=client"}, arguments...)...)
		if code != 1 || stdout != "" {
			t.Errorf("%v: exit code %d, %s", arguments, code, stdout)
		}
		contains(t, stderr, "--image")
	}
	code, _, stderr := b.run(t, "install", "--dry-run=client", "--controller=elsewhere")
	if code != 1 {
		t.Errorf("exit code %d", code)
	}
	contains(t, stderr, "--controller=elsewhere is unknown")
}

// A controller outside of the cluster has a user of its own, and the ServiceAccount has no rights then. kubectl apply -k makes the same.
func TestInstallControllerOutside(t *testing.T) {
	stdout, _ := newBench(t).do(t, "install", "--controller=external", "--dry-run=client", "-o", "yaml")
	if strings.Contains(stdout, "kind: Deployment") || strings.Contains(stdout, "kind: PodDisruptionBudget") {
		t.Errorf("it installs the program:\n%s", stdout)
	}
	if got := strings.Count(stdout, "subjects:\n- apiGroup: rbac.authorization.k8s.io\n  kind: User\n  name: "+deploy.ControllerUser+"\n"); got != 4 {
		t.Errorf("%d bindings are for the user", got)
	}
	objects, err := installOptions{controller: external}.controllerManifests()
	if err != nil {
		t.Fatal(err)
	}
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), "../deploy/manifests/external")
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]map[string]any{}
	for _, resource := range built.Resources() {
		text, err := resource.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		var object unstructured.Unstructured
		if err := object.UnmarshalJSON(text); err != nil {
			t.Fatal(err)
		}
		byName[object.GetKind()+" "+object.GetNamespace()+" "+object.GetName()] = object.Object
	}
	for _, object := range objects {
		name := object.GetKind() + " " + object.GetNamespace() + " " + object.GetName()
		if !equality.Semantic.DeepEqual(byName[name], object.Object) {
			t.Errorf("kustomize makes another %s: %v", name, cmp.Diff(byName[name], object.Object))
		}
		delete(byName, name)
	}
	for name := range byName {
		t.Errorf("kustomize makes %s, too", name)
	}
}

// Before Kubernetes 1.30 each policy that is missing is named once, with what it would have limited.
func TestInstallNamesWhatItLeavesOut(t *testing.T) {
	objects, err := installOptions{controller: inCluster, image: noImage}.objects()
	if err != nil {
		t.Fatal(err)
	}
	said := map[string]bool{}
	for _, object := range objects {
		why := notInstalled(object)
		switch object.GetKind() {
		case "ValidatingAdmissionPolicy":
			contains(t, why, "Kubernetes 1.30 and later have", "so "+object.GetName()+" is not installed: ")
			limits := withoutPolicy[object.GetName()]
			if limits == "" || said[limits] {
				t.Errorf("%s: %s", object.GetName(), why)
			}
			said[limits] = true
		case "ValidatingAdmissionPolicyBinding":
			if why != "" {
				t.Errorf("a binding is named, too: %s", why)
			}
		default:
			contains(t, why, "has no "+object.GetKind()+" of "+object.GetAPIVersion())
		}
	}
	if len(said) != len(withoutPolicy) {
		t.Errorf("%d policies are named, and there are %d", len(said), len(withoutPolicy))
	}
}

// The controller runs where its hosts were named, and nowhere else.
func TestInstallPlacesTheController(t *testing.T) {
	b := newBench(t)
	const hosts = "--controller-node-selector="
	for flag, want := range map[string]string{
		"":                        "- key: node-role.kubernetes.io/control-plane\n                operator: Exists\n",
		hosts + "a=b,c in (d, e)": "- key: a\n                operator: In\n                values:\n                - b\n              - key: c\n                operator: In\n                values:\n                - d\n                - e\n",
		hosts + "a,!b,c!=d":       "- key: a\n                operator: Exists\n              - key: b\n                operator: DoesNotExist\n              - key: c\n                operator: NotIn\n                values:\n                - d\n",
	} {
		arguments := []string{"install", "--controller", "--image=registry.example/c:v1", "--dry-run=client", "-o", "yaml"}
		if flag != "" {
			arguments = append(arguments, flag)
		}
		stdout, _ := b.do(t, arguments...)
		want = "nodeAffinity:\n          requiredDuringSchedulingIgnoredDuringExecution:\n            nodeSelectorTerms:\n            - matchExpressions:\n              " + want + "        podAntiAffinity:"
		if !strings.Contains(stdout, want) || strings.Contains(stdout, "preference:") {
			t.Errorf("%s: it does not have\n%s\nin\n%s", flag, want, stdout[strings.Index(stdout, "affinity:"):])
		}
	}
	for flag, want := range map[string]string{"a b": "--controller-node-selector: ", " ": "takes every node, and each of them would be root on all nodes"} {
		code, stdout, stderr := b.run(t, "install", "--controller", "--image=registry.example/c:v1", "--dry-run=client", hosts+flag)
		if code != 1 || stdout != "" {
			t.Errorf("%q: exit code %d, %s", flag, code, stdout)
		}
		contains(t, stderr, want)
	}
}

// Where no node is a control plane it is asked who may host the controller, and nothing is installed.
func TestInstallAsksWhoHostsTheController(t *testing.T) {
	worker, plane := newNode("n1"), newNode("n2")
	plane.Labels[controlPlanes] = ""
	for name, row := range map[string]struct {
		nodes  []runtime.Object
		hosts  string
		refuse bool
		want   string
	}{
		"a control plane":  {[]runtime.Object{worker, plane}, "", false, ""},
		"none":             {[]runtime.Object{worker}, "", true, "A node that hosts the controller is root on all nodes, so name those that may with --controller-node-selector=KEY=VALUE"},
		"named":            {[]runtime.Object{worker}, "pool=workers", false, ""},
		"named, not there": {[]runtime.Object{worker}, "pool=others", false, "No node has pool=others, so the controller waits for one that has."},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, row.nodes...)
			var errs lockedBuffer
			b.factory.ErrOut = &errs
			err := installOptions{controller: inCluster, image: "c", hosts: row.hosts}.examineHosts(t.Context(), b.factory)
			said := errs.buffer.String()
			if err != nil {
				said += err.Error()
			}
			if (err != nil) != row.refuse || (said == "") != (row.want == "") {
				t.Errorf("refused: %v, said: %s", err, said)
			}
			contains(t, said, row.want)
		})
	}
}

// Who changes whose the rights of the controller are is told before the question, and what stays of a controller in the cluster.
func TestInstallTellsWhoseTheRightsBecome(t *testing.T) {
	bound := func(o installOptions) (there []runtime.Object) {
		objects, err := o.controllerManifests()
		if err != nil {
			t.Fatal(err)
		}
		for _, object := range objects {
			var into runtime.Object
			switch object.GetKind() {
			case "ClusterRoleBinding":
				into = &rbacv1.ClusterRoleBinding{}
			case "RoleBinding":
				into = &rbacv1.RoleBinding{}
			case "Deployment":
				into = &appsv1.Deployment{}
			default:
				continue
			}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, into); err != nil {
				t.Fatal(err)
			}
			there = append(there, into)
		}
		return there
	}
	inside, outside := installOptions{controller: inCluster, image: "c"}, installOptions{controller: external}
	added := bound(inside)
	for _, object := range added {
		if binding, is := object.(*rbacv1.ClusterRoleBinding); is {
			binding.Subjects = append(binding.Subjects, rbacv1.Subject{Kind: "Group", Name: "ours\x1b[2J"})
		}
	}
	const account, user = "ServiceAccount kubelet-supervisor/kubelet-supervisor-controller", "User kubelet-supervisor:controller"
	const stays = "Deployment kubelet-supervisor/kubelet-supervisor-controller stays, and its pods have no rights. Remove it: kubectl delete deployment,"
	lost := func(to, of string) string {
		return "The rights of the controller go to " + to + ". These lose them, so a controller that runs as one of them changes nothing afterwards: " + of + "\n"
	}
	for name, row := range map[string]struct {
		there     []runtime.Object
		controls  string
		want, not []string
	}{
		"to the outside":        {bound(inside), external, []string{lost(user, account), stays}, nil},
		"outside as before":     {bound(outside), external, nil, []string{"The rights", "stays"}},
		"to the inside":         {bound(outside), inCluster, []string{lost(account, user)}, []string{"stays"}},
		"inside as before":      {bound(inside), inCluster, nil, []string{"The rights", "stays"}},
		"new":                   {nil, external, nil, []string{"The rights", "stays"}},
		"somebody was added":    {added, inCluster, []string{lost(account, "Group ours [2J")}, nil},
		"half of it, by a fail": {append(bound(outside)[:1], bound(inside)[1:]...), external, []string{lost(user, account), stays}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			arguments := []string{"install", "--controller=" + row.controls}
			if row.controls == inCluster {
				arguments = append(arguments, "--image=none")
			}
			b := newBench(t, row.there...)
			code, stdout, stderr := b.run(t, arguments...) // and no answer
			if code != 1 || stdout != "" {
				t.Errorf("exit code %d, %s", code, stdout)
			}
			contains(t, stderr, append(row.want, "Install these? [y/N]")...)
			for _, text := range row.not {
				if strings.Contains(stderr, text) {
					t.Errorf("it says %s in\n%s", text, stderr)
				}
			}
			if len(row.want) > 0 && strings.Index(stderr, row.want[0]) > strings.Index(stderr, "Install these?") {
				t.Errorf("it asks before it says so:\n%s", stderr)
			}
			for _, action := range b.Actions() {
				if action.GetVerb() != "get" {
					t.Errorf("without an answer it does %s %s", action.GetVerb(), action.GetResource().Resource)
				}
			}
		})
	}
}
