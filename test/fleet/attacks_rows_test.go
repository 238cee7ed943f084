//go:build e2e

package fleet

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
)

func mapCalled(name string) string { return `{"metadata":{` + name + `},"data":{"kubelet":"a"}}` }

func appliedMap(name string) string {
	return `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"` + name + `"},"data":{"kubelet":"b"}}`
}

const (
	ownedByNobody = `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Node","name":"gone","uid":"1"}]}}`
	finalized     = `{"metadata":{"finalizers":["example.com/attack"]}}`
)

// attacksOnConfigMaps are by those who may write ConfigMaps of kubelet-config by RBAC, without the verb.
func attacksOnConfigMaps() []attack {
	const who = "writer of ConfigMaps"
	return []attack{
		{46, who, merge(assignedMap, `{"binaryData":{"a":"YQ=="}}`), "policy"},
		{47, who, merge(assignedMap, `{"immutable":true}`), "policy"},
		{48, who, merge(assignedMap, ownedByNobody), "policy"},
		{50, who, remove(configMaps), "policy"},
		{52, who, post(configMaps, mapCalled(`"generateName":"attacks-"`)), "policy"},
		{53, who, apply(configMaps+"/attacks-new", appliedMap("attacks-new")), "policy"},
		{54, who, apply(assignedMap, appliedMap("attacks-config")), "policy"},
		{55, who, post(configMaps, mapCalled(`"name":"kube-root-ca.crt"`)), "policy"},
		{56, who, merge(assignedMap, labelled("example.com/team", "a")), "yes"},
		{57, who, merge(assignedMap, finalized), "policy"},
		{58, who, merge(assignedMap, labelled("kubelet-supervisor.io/pool", "attacks-pool")), "policy"},
		{59, who, merge(assignedMap, labelled("kubelet-supervisor.io/purpose", "configuration")), "yes"}, // L4: labels are free
	}
}

// attacksOnPools are by those who may write pools or revisions by RBAC, without the verb.
func attacksOnPools() []attack {
	const pooler, reviser = "writer of pools", "writer of revisions"
	create := `{"apiVersion":"kubelet-supervisor.io/v1alpha1","kind":"KubeletPool","metadata":{"name":"attacks-more"},"spec":{"selector":{"matchLabels":{"a":"b"}},"layers":[{"name":"a","inline":{"maxPods":9}}]}}`
	return []attack{
		{64, "operator of n1", post(allPools, create), "policy"},
		{66, pooler, apply(thePool, `{"apiVersion":"kubelet-supervisor.io/v1alpha1","kind":"KubeletPool","metadata":{"name":"attacks-pool"},"spec":{"priority":9}}`), "policy"},
		{67, pooler, merge(thePool+"/status", `{"status":{"observedGeneration":77}}`), "policy"},
		{69, pooler, merge(thePool, `{"status":{"observedGeneration":77}}`), "yes"}, // the API server drops it
		{71, pooler, remove(allPools), "policy"},
		{72, pooler, merge(thePool, ownedByNobody), "policy"},
		{73, pooler, merge(thePool, finalized), "policy"},
		{74, pooler, merge(thePool, `{"metadata":{"annotations":{"kubernetes.io/change-cause":"CHG-1234 approved by the CISO"}}}`), "policy"}, // L3; or "yes", where history does not show it
		{78, reviser, post(revisions, revisionOf("attacks-evil", "attacks-pool")), "policy"},
		{79, reviser, post(revisions, revisionOf("attacks-evil", "")), "yes"}, // nobody takes it for a revision
		{80, reviser, merge(revisions+"/attacks-unlabelled", labelled("kubelet-supervisor.io/pool", "attacks-pool")), "policy|422"},
		{81, reviser, post(revisions, revisionOf("attacks-pool-0123456789", "")), "yes"}, // the controller replaces it
		{83, "operator", variantsByChance, "policy"},
	}
}

// variantsByChance makes ConfigMaps by generateName until one would have ten hex digits at its end; the API server chooses the last five.
func variantsByChance(a *attacks, who *person) (code int, answer string) {
	rendered := regexp.MustCompile(`"pool-w-[0-9a-f]{10}"`)
	for range 1000 {
		code, answer = a.request(who.config, "POST", configMaps, "application/json", mapCalled(`"generateName":"pool-w-01234"`))
		if code >= 300 {
			return code, answer
		}
		var made struct{ Metadata struct{ Name string } }
		if err := json.Unmarshal([]byte(answer), &made); err != nil || rendered.MatchString(fmt.Sprintf("%q", made.Metadata.Name)) {
			return code, fmt.Sprintf("made %s (%v)", made.Metadata.Name, err)
		}
	}
	return 0, "no name of 1,000 ended in ten hex digits"
}

// attacksByOperators are by those who have the verb, or the rights of one who has.
func attacksByOperators() []attack {
	const ci = "pipeline"
	rows := []attack{
		{95, "controller", read("/api/v1/namespaces/kube-system/secrets"), "RBAC"},
		{96, "controller", post("/api/v1/namespaces/kubelet-supervisor/pods", privilegedPod), "RBAC"},
		{98, "controller", read(n1 + "/proxy/configz"), "RBAC"},
		{100, "controller", merge(n1, annotated("config-status", "{}")), "policy"},
		{101, "controller", merge(assignedMap, `{"data":{"kubelet":"b"}}`), "RBAC"},
		{102, "controller", merge(systemMap, `{"data":{"kubelet":"b"}}`), "RBAC"},
		{103, "controller", withToken("kubelet-supervisor", "attacks", read(n1)), "RBAC"},
		{104, "controller", remove(assignedMap), "yes"}, // it deletes only what it has made: fleet/rollout.Collect
		{105, "controller", merge(n2, assignEvil), "yes"},
		{150, ci, read(n1 + "/proxy/configz"), "RBAC"},
		{151, ci, merge(thePool, `{"spec":{"priority":7}}`), "RBAC"},
		{152, ci, merge(n1+"/status", assignEvil), "RBAC"},
		{153, ci, read("/api/v1/namespaces/attacks-ci/secrets"), "RBAC"},
		{154, ci, read(inConfig + "/rolebindings"), "RBAC"},
		{155, ci, merge(n1, labelled("kubelet-supervisor.io/pool-of", "a")), "yes"}, // it assigns anyway
		{163, "viewer", read(n1 + "/proxy/configz"), "RBAC"},
	}
	for i, value := range []string{"kubelet-config/../supervisor/kubelet", "Kubelet-Config/a/kubelet", "kubelet-config/a/kubelet\n", "kubelet-config/a/kubelet@a\nb",
		"kubelet-config\uff0fa\uff0fkubelet", "kubelet-config/a/" + strings.Repeat("a", 200<<10)} {
		text, _ := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{"kubelet-supervisor.io/config-source": value}}})
		rows = append(rows, attack{107 + i, "operator", merge(n1, string(text)), "422"})
	}
	rows = append(rows, attack{113, "operator", merge(n1, annotated("config-source", "default/a/kubelet")), "yes"}) // the node refuses it
	for i, who := range []string{"operator", "pool operator", ci, "namespace administrator", "controller"} {
		rows = append(rows, attack{84 + 2*i, who, merge(policies, `{"spec":{"failurePolicy":"Ignore"}}`), "RBAC"}, attack{85 + 2*i, who, remove(bindings), "RBAC"})
	}
	return rows
}

// privilegedPod is root on its node.
const privilegedPod = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"attacks"},"spec":{"hostPID":true,"serviceAccountName":"attacks","automountServiceAccountToken":false,` +
	`"containers":[{"name":"a","image":"a","securityContext":{"privileged":true}}],"volumes":[{"name":"host","hostPath":{"path":"/"}}]}}`

// attacksInNamespaces are by those who have edit or admin somewhere.
func attacksInNamespaces() []attack {
	const admin, everywhere = "namespace administrator", "editor everywhere"
	revision := post(revisions, revisionOf("attacks-evil", ""))
	assign := merge(n1, assignEvil)
	asController := as(controllerAccount, nil, assign)
	loose := withToken("kubelet-supervisor", "kubelet-supervisor-controller", assign)
	role := func(rule string) deed {
		return post(inConfig+"/roles", `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","metadata":{"name":"attacks"},"rules":[`+rule+`]}`)
	}
	return []attack{
		{61, "editor of the controller", post("/api/v1/namespaces/kubelet-supervisor/pods", privilegedPod), "PodSecurity"},
		{119, "editor", read(revisions), "yes"}, // view has it
		{120, "editor", revision, "RBAC"},
		{124, admin, revision, "RBAC"},
		{128, everywhere, revision, "RBAC"},
		{129, "administrator everywhere", post(configMaps, mapCalled(`"name":"evil"`)), "policy"},
		{130, "administrator everywhere", merge(assignedMap, `{"data":{"kubelet":"b"}}`), "policy"},
		{131, "administrator everywhere", remove(assignedMap), "policy"},
		{132, "administrator everywhere", revision, "RBAC"},
		{134, "administrator who joined", post(configMaps, mapCalled(`"name":"evil"`)), "policy"},
		{135, admin, role(`{"apiGroups":["apps"],"resources":["controllerrevisions"],"verbs":["*"]}`), "403"},
		{136, admin, role(`{"apiGroups":[""],"resources":["configmaps"],"verbs":["*"]}`), "403"},   // what would let system:nodes write them
		{138, admin, remove(inConfig + "/rolebindings/kubelet-supervisor-node"), "yes"},            // no node reads configurations then; all run on
		{139, admin, post("/api/v1/namespaces/kubelet-config/pods", privilegedPod), "PodSecurity"}, // L2
		{140, admin, remove("/api/v1/namespaces/kubelet-config"), "RBAC"},
		{141, admin, merge("/api/v1/namespaces/kubelet-config", labelled("a", "b")), "RBAC"},
		{142, admin, merge("/api/v1/namespaces/kubelet-config", labelled("kubernetes.io/metadata.name", "a")), "RBAC"},
		{143, everywhere, asController, "policy"}, // M5: no pod is claimed
		{144, everywhere, loose, "policy"},        // M5: the token is bound to no pod
		{145, "editor", asController, "RBAC"},
		{146, "editor", loose, "RBAC"},
		{147, "editor of the pipeline", as(pipelineUser, nil, assign), "yes"}, // as docs/howto/ci.md says
		{148, "viewer of the pipeline", withToken("attacks-ci", "pipeline", assign), "RBAC"},
		{149, "impersonator of users", as("anybody", []string{"system:masters"}, assign), "RBAC"},
	}
}
