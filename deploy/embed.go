// Package deploy holds what is applied to a cluster, and gives it to programs that install it. `kubectl apply -k
// deploy/manifests` installs the same. The names in it that programs and people use are constants here.
package deploy

import "embed"

// Manifests is the folder manifests: YAML files, one kind of thing each, and kustomization.yaml, which lists them. In the
// order of their names each can be applied as it stands: a namespace comes before what is in it. All that they make is
// named here or begins with kubelet-supervisor, and has the label app.kubernetes.io/name: kubelet-supervisor.
//
//go:embed manifests/*.yaml
var Manifests embed.FS

// ControllerManifests is the folder manifests/controller: the KubeletPools' definition, rights, policies and program. It needs what
// Manifests makes, and can be applied in the order of its kustomization.yaml. manifests/external is a kustomization of it.
//
//go:embed manifests/controller/*.yaml manifests/external/*.yaml
var ControllerManifests embed.FS

// AuditPolicy has rules for the API server's audit log, by which it says who assigned what. Others may follow them.
//
//go:embed audit-policy.yaml
var AuditPolicy string

// Names in the manifests that programs and people use.
const (
	// Namespace is for configurations: every node may read its ConfigMaps.
	Namespace = "kubelet-config"
	// AssignVerb, on nodes, is the permission to assign: resourceNames may limit it to some Nodes.
	AssignVerb = "assign-kubelet-config"
	// Policy is the name of the ValidatingAdmissionPolicy for Nodes, and of its binding.
	Policy = "kubelet-supervisor-assignment"
	// ConfigMapPolicy is the name of the one for ConfigMaps in Namespace, and of its binding.
	ConfigMapPolicy = "kubelet-supervisor-configmaps"
	// OperatorRole is a ClusterRole, and a Role in Namespace, for people who assign.
	OperatorRole = "kubelet-supervisor-operator"
	// PipelineRole is a ClusterRole for programs that assign: the operator's without nodes/proxy.
	PipelineRole = "kubelet-supervisor-pipeline"
	// ViewerRole is a ClusterRole, and a Role in Namespace, for people who look.
	ViewerRole = "kubelet-supervisor-viewer"
	// GranterRole is a ClusterRole to be bound in one more namespace, whose ConfigMaps are then assigned and granted one by one.
	GranterRole = "kubelet-supervisor-granter"
	// ControllerNamespace is that of the controller of pools; ControllerName is its account's, its Deployment's and its Lease's.
	ControllerNamespace = "kubelet-supervisor"
	ControllerName      = "kubelet-supervisor-controller"
	// ControllerUser is a controller outside of the cluster. The policies know both it and the account of one in a pod.
	ControllerUser = "kubelet-supervisor:controller"
	// PoolViewerRole is a ClusterRole, and a Role in Namespace, for people who look at pools; PoolOperatorRole is a ClusterRole for those who
	// write them, in addition to that.
	PoolViewerRole   = "kubelet-supervisor-pool-viewer"
	PoolOperatorRole = "kubelet-supervisor-pool-operator"
)

// PoolPolicies are the names of the ValidatingAdmissionPolicies for pools, and of their bindings: who may write pools
// and budgets, what selectors and layers are warned of, who may write their status, what pools are rendered to, and
// that the controller's account has a pod.
func PoolPolicies() []string {
	return []string{"kubelet-supervisor-pools", "kubelet-supervisor-selectors", "kubelet-supervisor-layers", "kubelet-supervisor-pool-status",
		"kubelet-supervisor-budget-status", "kubelet-supervisor-revisions", "kubelet-supervisor-controller-pod"}
}
