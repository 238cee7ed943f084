//go:build e2e

package fleet

import (
	"fmt"
	"strings"
)

// annotated is a patch with one annotation of ours; null is none.
func annotated(key, value string) string {
	if value != "null" {
		value = fmt.Sprintf("%q", value)
	}
	return `{"metadata":{"annotations":{"kubelet-supervisor.io/` + key + `":` + value + `}}}`
}

func labelled(key, value string) string {
	return fmt.Sprintf(`{"metadata":{"labels":{%q:%q}}}`, key, value)
}

// nodeCalled is a Node to be made, with more of its metadata.
func nodeCalled(name, more string) string {
	return `{"apiVersion":"v1","kind":"Node","metadata":{` + name + more + `}}`
}

// assignment is an annotation that assigns, as JSON in metadata.
const (
	evil       = "kubelet-config/evil/kubelet"
	evilIsIt   = `"annotations":{"kubelet-supervisor.io/config-source":"` + evil + `"}`
	sourceAt   = "/metadata/annotations/kubelet-supervisor.io~1config-source"
	gone       = `"name":"attacks-9"`
	applyNode  = `{"apiVersion":"v1","kind":"Node","metadata":{"name":"attacks-1",` + evilIsIt + `}}`
	notThere   = nodes + "/attacks-9"
	assignEvil = `{"metadata":{` + evilIsIt + `}}`
)

// attacksOfNodes are by a node whose credentials were stolen.
func attacksOfNodes() []attack {
	return []attack{
		{3, "node n1", jsonOps(n1, `[{"op":"add","path":"`+sourceAt+`","value":"`+evil+`"}]`), "policy"},
		{4, "node n1", apply(n1, applyNode), "policy"},
		{5, "node n1", apply(n1+"/status", applyNode), "policy"},
		{6, "node n1", put(n1, assignEvil), "policy"},
		{8, "node n1", merge(n1, annotated("allow-disruption", "abc")), "policy"},
		{11, "node n1", merge(n1, annotated("retry", "again")), "policy"},
		{13, "node n1", merge(n2+"/status", annotated("config-status", "{}")), "Node"},
		{15, "node that is not there", post(nodes, nodeCalled(gone, ","+evilIsIt)), "policy"},
		{16, "node that is not there", post(nodes, `{"apiVersion":"v1","kind":"Node","metadata":{`+gone+`},"spec":{"configSource":{"configMap":{"namespace":"kubelet-config","name":"evil","kubeletConfigKey":"kubelet"}}}}`), "403"},
		{17, "node that is not there", apply(notThere, nodeCalled(gone, ","+evilIsIt)), "403"},
		{18, "node that is not there", post(nodes, nodeCalled(`"generateName":"attacks-"`, ","+evilIsIt)), "403"},
		{19, "node that is not there", post(nodes, nodeCalled(gone, "")), "yes"},
		{20, "node n1", merge(n1, `{"metadata":{"annotations":{"Kubelet-Supervisor.io/config-source":"`+evil+`"}}}`), "yes"}, // another key, which nothing reads
		{21, "node n1", merge(n1, `{"metadata":{"annotations":{"kubelet-supervis\u043er.io/config-source":"`+evil+`"}}}`), "422"},
		{22, "node n1", post(configMaps, `{"metadata":{"name":"evil"},"data":{"kubelet":"a"}}`), "RBAC"},
		{23, "node n1", read(configMaps), "yes"}, // secrets do not belong there
		{24, "node n1", read(revisions), "RBAC"},
		{26, "node n1", merge(n1, labelled("node-restriction.kubernetes.io/pool", "debug")), "Node"},
		{30, "node without its group", merge(n1, assignEvil), "policy"},
		{137, "node n1", merge(assignedMap, `{"data":{"kubelet":"b"}}`), "RBAC"},
		{156, "node n1", read(n2), "403"},
		{157, "node n1", read(nodes), "403"},
		{158, "node n1", read(nodes + "?fieldSelector=metadata.name%3Dattacks-1"), "yes"},
		{159, "node n1", read("/api/v1/pods?fieldSelector=spec.nodeName%3Dattacks-2"), "403"},
		{160, "node n1", read("/apis/coordination.k8s.io/v1/namespaces/kubelet-supervisor/leases/kubelet-supervisor-controller"), "403"},
		{161, "node n1", post("/api/v1/namespaces/default/events", `{"metadata":{"generateName":"attacks-"},"involvedObject":{"kind":"Node","name":"attacks-2"},"reason":"Spoofed","type":"Warning"}`), "yes"}, // as in all of Kubernetes
		{164, "node n1", merge(n1, annotated("config-source", "null")), "policy"},
		{165, "node n1", jsonOps(n1, `[{"op":"remove","path":"`+sourceAt+`"}]`), "policy"},
		{166, "node n1", strategic(n1, `{"metadata":{"annotations":{"$patch":"replace","a":"b"}}}`), "policy"},
		{167, "node n1", jsonOps(n1, `[{"op":"move","from":"`+sourceAt+`","path":"/metadata/annotations/a"}]`), "policy"},
	}
}

// attacksByLabels are by those who may patch nodes, or nodes/status.
func attacksByLabels() []attack {
	return []attack{
		{33, "patcher", post(nodes, nodeCalled(gone, ","+evilIsIt)), "policy"}, // he may delete the one that is there
		{34, "patcher", post(nodes, nodeCalled(`"generateName":"attacks-"`, ","+evilIsIt)), "policy"},
		{37, "status patcher", strategic(n1+"/status", assignEvil), "policy"},
		{38, "status patcher", jsonOps(n1+"/status", `[{"op":"add","path":"`+sourceAt+`","value":"`+evil+`"}]`), "policy"},
		{39, "status patcher", put(n1+"/status", assignEvil), "policy"},
		{40, "status patcher", merge(n1+"/status", annotated("config-status", "{}")), "policy"},
		{168, "status patcher", put(n1+"/status", annotated("config-source", "null")), "policy"},
		{169, "patcher", put(n1, annotated("config-source", "null")), "policy"},
		{178, "patcher", post(n1+"/binding", `{"apiVersion":"v1","kind":"Binding","metadata":{"name":"attacks-1"},"target":{"name":"a"}}`), "403"},
		{179, "administrator of the rest", merge("/api/v1beta1/nodes/attacks-1", assignEvil), "404"},
	}
}

// attacksByPatches are of ways to write a patch.
func attacksByPatches() []attack {
	return []attack{
		{172, "patcher", apply(n1, `{"apiVersion":"v1","kind":"Node","metadata":{"name":"attacks-1","annotations":{"a":"b"}}}`), "yes"}, // it never owned what it leaves out
		{173, "patcher", takeAndDrop, "yes"},
		{174, "patcher", merge(n1, `{"metadata":{"annotations":{"a":"b"},`+evilIsIt+`}}`), "policy"},
		{175, "patcher", merge(n1, `{"metadata":{"annotations":{"kubelet-supervisor.io/config-sourc\u0065":"`+evil+`"}}}`), "policy"},
		{176, "patcher", merge(n1, strings.Replace(assignEvil, "metadata", "Metadata", 1)), "yes"}, // the API server ignores it
		{177, "patcher", apply(n1, "apiVersion: v1\nkind: Node\nmetadata:\n  name: attacks-1\n  annotations: {kubelet-supervisor.io/config-source: "+evil+"}\n"), "policy"},
	}
}

// takeAndDrop applies what the Node has already, and then without it, which removes what nobody else owns. It is no dry run.
func takeAndDrop(a *attacks, who *person) (code int, answer string) {
	path := n1 + "?fieldManager=attacks-drop"
	same := `{"apiVersion":"v1","kind":"Node","metadata":{"name":"attacks-1","annotations":{"kubelet-supervisor.io/config-source":"kubelet-config/attacks-config/kubelet"}}}`
	if code, answer = a.really(who.config, "PATCH", path, applyPatch, same); code >= 300 {
		return code, answer
	}
	if code, answer = a.really(who.config, "PATCH", path, applyPatch, `{"apiVersion":"v1","kind":"Node","metadata":{"name":"attacks-1"}}`); code >= 300 {
		return code, answer
	}
	if !strings.Contains(answer, "kubelet-config/attacks-config/kubelet") {
		return 0, "the assignment is gone: " + answer
	}
	return code, answer
}
