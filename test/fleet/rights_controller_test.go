//go:build e2e

package fleet

import (
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubelet-supervisor/kubelet-supervisor/deploy"
	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/rollout"
)

// host places a replica of the controller on the second node, as the scheduler would.
func (r *rights) host() {
	r.t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: deploy.ControllerNamespace, Name: "rights-replica"}}
	pod.Spec = corev1.PodSpec{NodeName: r.node(2), ServiceAccountName: deploy.ControllerName, TerminationGracePeriodSeconds: new(int64(0)),
		SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: new(true), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
		Containers: []corev1.Container{{Name: "controller", Image: "kubelet-supervisor-controller", SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: new(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}}}}}
	r.place(pod)
	r.replica = &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: pod.Name, UID: pod.UID}
}

// replicaPerson is the controller in its pod: its account, with a token that is bound to the pod.
func (r *rights) replicaPerson() *person {
	r.t.Helper()
	as, err := r.asAccount(&person{r.f.admin, r.f.AdminConfig()}, r.replica)
	if err != nil {
		r.t.Fatal(err)
	}
	return as
}

// asAccount requests a token of the controller's account, bound to a pod or to nothing.
func (r *rights) asAccount(who *person, pod *authenticationv1.BoundObjectReference) (*person, error) {
	asked := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{BoundObjectRef: pod}}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: deploy.ControllerNamespace, Name: deploy.ControllerName}}
	if err := who.SubResource("token").Create(r.t.Context(), account, asked); err != nil {
		return nil, err
	}
	as := rest.AnonymousClientConfig(who.config)
	as.BearerToken = asked.Status.Token
	return r.personOf(as)
}

// asUser impersonates a user.
func (r *rights) asUser(who *person, user string) (*person, error) {
	as := rest.CopyConfig(who.config)
	as.Impersonate.UserName = user
	return r.personOf(as)
}

// asClaimant impersonates the controller's account in its pod.
func (r *rights) asClaimant(who *person) (*person, error) {
	as := rest.CopyConfig(who.config)
	as.Impersonate = rest.ImpersonationConfig{UserName: controllerAccount, Extra: map[string][]string{"authentication.kubernetes.io/pod-name": {r.replica.Name}}}
	return r.personOf(as)
}

// personOf makes a client. Its mapper is an administrator's: with it nothing else is asked than what is tried.
func (r *rights) personOf(config *rest.Config) (*person, error) {
	as, err := client.New(config, client.Options{Scheme: r.f.admin.Scheme(), Mapper: r.f.admin.RESTMapper()})
	return &person{as, config}, err
}

// actsAsController marks a node as what somebody has made himself, to show that it is the controller.
func (r *rights) actsAsController(become func(*person) (*person, error)) act {
	n1 := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: r.node(1)}}
	mark := r.merge(n1, `{"metadata":{"annotations":{"`+rollout.MarkAnnotation+`":"p - 1"}}}`)
	return func(who *person) error {
		as, err := become(who)
		if err != nil {
			return err
		}
		return mark(as)
	}
}

func (r *rights) actsOnIdentities() map[string]act {
	return map[string]act{
		"use a token of the controller's pod":             r.actsAsController(func(who *person) (*person, error) { return r.asAccount(who, r.replica) }),
		"use a token of its account alone":                r.actsAsController(func(who *person) (*person, error) { return r.asAccount(who, nil) }),
		"impersonate its account":                         r.actsAsController(func(who *person) (*person, error) { return r.asUser(who, controllerAccount) }),
		"impersonate its account with the claim of a pod": r.actsAsController(r.asClaimant),
		"impersonate its user":                            r.actsAsController(func(who *person) (*person, error) { return r.asUser(who, controllerUser) }),
	}
}
