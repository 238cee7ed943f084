//go:build linux

package main

import (
	"fmt"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
)

// The ConfigMaps of the story.
const (
	good   = "my-node-config"
	bad    = "my-bad-config"
	deadly = "my-deadly-config"
)

// flagQPS is what the kubelet's own flag says, against every file.
const flagQPS = 33

// localLines are what the configurations have other lines for; see cluster.KubeletConfig.
const localLines = "maxPods: 20\neventRecordQPS: 7\n"

var configurations = map[string]string{
	good:   "maxPods: 42\neventRecordQPS: 11\n",
	bad:    "maxPods: -1\n",
	deadly: "maxPods: 42\nsystemReserved: {memory: 1Ti}\n",
}

var permissions = []string{
	"kubectl create role kubelet-config -n kube-system --verb=get,list,watch --resource=configmaps" +
		" --resource-name=" + good + " --resource-name=" + bad + " --resource-name=" + deadly,
	"kubectl create rolebinding kubelet-config -n kube-system --role=kubelet-config --group=system:nodes",
}

func source(name string) string { return "kube-system/" + name + "/kubelet" }

func create(name string) string {
	return fmt.Sprintf("kubectl create configmap %s -n kube-system --from-file=kubelet=%s.yaml", name, name)
}

func assign(name string) string {
	return "kubectl annotate node n1 --overwrite " + nodev1.ConfigSourceAnnotation + "=" + source(name)
}

// A step of the story: words, then commands, then what has to be seen.
type step struct {
	title, words string // no title: it goes on with the step before
	commands     []string

	expected    string // in words, what node says; "": nothing is expected of the Node
	node        want
	sameKubelet bool   // is not restarted
	field       string // of configz, with its value; "": it is not read
	value       float64
}

func story() []step {
	refused, killed := "failed to validate config, see Kubelet log for details", "failed to run config, see Kubelet log for details"
	return []step{{
		title:    "1. Nothing is assigned: the kubelet runs as the administrator wrote it",
		words:    "What `kubectl get node n1 -o yaml` shows of it, annotations and condition:",
		expected: "the first kubelet runs, with its local configuration", node: want{condition: "True Local"},
		field: "maxPods", value: 20,
	}, {
		title:    "2. A configuration is assigned",
		words:    good + ".yaml is the node's own file, but for maxPods: 42 and eventRecordQPS: 11.",
		commands: []string{create(good), assign(good)},
		expected: "a good configuration is active, in trial", node: want{condition: "True InTrial", assigned: good, active: good},
		field: "maxPods", value: 42,
	}, {
		title:    "3. It proves itself",
		words:    "It has to be healthy for 5 s (--trial-period, 10m by default), the kubelet's Lease renewed.",
		expected: "it is lastKnownGood", node: want{condition: "True Active", assigned: good, active: good, lastKnownGood: good},
	}, {
		title:    "4. The kubelet's own flags win",
		words:    fmt.Sprintf("The kubelet was given --event-qps=%d; the configuration has another value:", flagQPS),
		commands: []string{"kubectl get configmap " + good + " -n kube-system -o yaml | grep 'eventRecordQPS: 11'"},
		field:    "eventRecordQPS", value: flagQPS,
	}, {
		title:    "5. A bad value is refused, and nothing restarts",
		words:    bad + ".yaml has maxPods: -1. The node's own kubelet is asked first:",
		commands: []string{create(bad), assign(bad)},
		expected: "a bad value is refused, in the kubelet's own words",
		node: want{condition: "False Refused", assigned: bad, active: good, lastKnownGood: good, failure: refused,
			message: "maxPods (--max-pods) -1 must not be a negative number"},
		sameKubelet: true,
	}, {
		title:    "6. A deadly value is rolled back by itself",
		words:    deadly + ".yaml reserves 1Ti of memory. That is valid, and kills the kubelet when it starts:",
		commands: []string{create(deadly), assign(deadly)},
		expected: "a deadly value is rolled back, exit code and last error told",
		node: want{condition: "False RolledBack", assigned: deadly, active: good, lastKnownGood: good, failure: killed,
			message: "exit code 1: Failed to start ContainerManager"},
		field: "maxPods", value: 42,
	}, {
		words:    "It is to blame once the kubelet has been healthy without it for 10 s:",
		expected: "the deadly value is rejected until content, kubelet or flags change",
		node: want{condition: "False Rejected", assigned: deadly, active: good, lastKnownGood: good, failure: killed,
			message: "exit code 1: Failed to start ContainerManager"},
		sameKubelet: true,
	}, {
		title:    "7. The ConfigMap is edited in place, and the kubelet follows",
		words:    "First the good one is assigned again. It runs already, so nothing restarts:",
		commands: []string{assign(good)},
		expected: "the good one, assigned again, is active", node: want{condition: "True Active", assigned: good, active: good, lastKnownGood: good},
		sameKubelet: true,
	}, {
		words:    "Now the edit:",
		commands: []string{"kubectl get configmap " + good + " -n kube-system -o yaml | sed 's/maxPods: 42/maxPods: 43/' | kubectl replace -f -"},
		expected: "the edit is active and in trial; lastKnownGood is what was before",
		node:     want{condition: "True InTrial", assigned: good, active: good, lastKnownGood: good, edited: true},
		field:    "maxPods", value: 43,
	}, {
		title:    "8. Back to local",
		commands: []string{"kubectl annotate node n1 " + nodev1.ConfigSourceAnnotation + "-"},
		expected: "the assignment removed, local runs and the status is empty", node: want{condition: "True Local"},
		field: "maxPods", value: 20,
	}}
}
