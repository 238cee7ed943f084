//go:build e2e

package fleet

import (
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/rollout"
	"github.com/kubelet-supervisor/kubelet-supervisor/packaging"
)

// host places a replica of the controller on the second node, as the scheduler would.
func (r *rights) host() {
	r.t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: packaging.ControllerNamespace, Name: "rights-replica"}}
	pod.Spec = corev1.PodSpec{NodeName: r.node(2), ServiceAccountName: packaging.ControllerName, TerminationGracePeriodSeconds: new(int64(0)),
		SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: new(true), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
		Containers: []corev1.Container{{Name: "controller", Image: "kubelet-supervisor-controller", SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: new(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}}}}}
	r.place(pod)
	r.replica = &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: pod.Name, UID: pod.UID}
}

// takeIdentity asks for a token of the controller's account, bound to its replica as a node has to, and else impersonates the account. It
// marks a node to show that it is the account.
func (r *rights) takeIdentity(who *person) error {
	asked := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{BoundObjectRef: r.replica}}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: packaging.ControllerNamespace, Name: packaging.ControllerName}}
	as := rest.CopyConfig(who.config)
	if err := who.SubResource("token").Create(r.t.Context(), account, asked); err == nil {
		as = rest.AnonymousClientConfig(who.config)
		as.BearerToken = asked.Status.Token
	} else {
		as.Impersonate.UserName = controllerUser
	}
	// The mapper is an administrator's: with it nothing else is asked than what is tried.
	controller, err := client.New(as, client.Options{Scheme: r.f.admin.Scheme(), Mapper: r.f.admin.RESTMapper()})
	if err != nil {
		return err
	}
	n1 := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: r.node(1)}}
	return r.merge(n1, `{"metadata":{"annotations":{"`+rollout.MarkAnnotation+`":"p - 1"}}}`)(&person{controller, as})
}
