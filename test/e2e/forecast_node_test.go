//go:build e2e

package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/kubelet-supervisor/kubelet-supervisor/forecast"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/host"
	"github.com/kubelet-supervisor/kubelet-supervisor/test/cluster"
)

const podsFolder = "/api/v1/namespaces/default/pods"

// A bareKubelet runs without a supervisor: what it does to pods at a restart is its own doing.
type bareKubelet struct {
	*node
	config  string // --config names it
	program *cluster.Program
	log     int64 // where what the running one wrote begins
}

func (n *node) bareKubelet(t *testing.T) *bareKubelet {
	t.Helper()
	k := &bareKubelet{node: n, config: filepath.Join(n.Folder, "forecast.yaml")}
	t.Cleanup(func() { k.stop(t) })
	return k
}

// start starts it with a configuration and waits until it is healthy.
func (k *bareKubelet) start(t *testing.T, config string) {
	t.Helper()
	if err := os.WriteFile(k.config, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	words := k.KubeletArguments()
	words[slices.Index(words, "--config="+k.KubeletConfigFile())] = "--config=" + k.config
	log := filepath.Join(k.Folder, "log", "forecast-kubelet.log")
	if info, err := os.Stat(log); err == nil {
		k.log = info.Size()
	}
	var err error
	if k.program, err = k.Launch(log, words...); err != nil {
		t.Fatal(err)
	}
	await(t, "the kubelet is healthy", func() error {
		select {
		case <-k.program.Done:
			return fatal{errors.New("it ended" + k.program.LastWords())}
		default:
			return k.Healthz(t.Context())
		}
	})
}

func (k *bareKubelet) stop(t *testing.T) {
	t.Helper()
	if k.program == nil {
		return
	}
	if err := k.program.Stop(30 * time.Second); err != nil {
		t.Error(err)
	}
	k.program = nil
}

// said is what the kubelet that runs has written.
func (k *bareKubelet) said(t *testing.T) string {
	t.Helper()
	text, err := k.program.LogFrom(k.log)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// effective is what the kubelet tells of its configuration.
func (k *bareKubelet) effective(t *testing.T) object {
	t.Helper()
	var config object
	await(t, "configz answers", func() (err error) {
		config, err = k.Configz(t.Context())
		return err
	})
	return config
}

// changed is an effective configuration with the fields in which two files differ.
func changed(t *testing.T, effective object, from, to string) object {
	t.Helper()
	var before, after object
	if err := errors.Join(yaml.Unmarshal([]byte(from), &before), yaml.Unmarshal([]byte(to), &after)); err != nil {
		t.Fatal(err)
	}
	then := maps.Clone(effective)
	for field, value := range after {
		if !reflect.DeepEqual(before[field], value) {
			then[field] = value
		}
	}
	for field := range before {
		if _, stays := after[field]; !stays {
			t.Fatalf("field %s goes, and its default is not known here", field)
		}
	}
	return then
}

func decoded(t *testing.T, config object) *forecast.Configuration {
	t.Helper()
	text, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	c, err := forecast.DecodeConfiguration(text)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// forecast makes the forecast from what there is now. It waits until the Node shows the configuration that runs.
func (k *bareKubelet) forecast(t *testing.T, now, then *forecast.Configuration) (f forecast.Forecast, took time.Duration) {
	t.Helper()
	await(t, "the forecast is made of a Node that is up to date", func() error {
		facts := forecast.Facts{Now: now, Then: then, Node: &corev1.Node{}, Pods: k.pods(t)}
		k.must(t, http.MethodGet, nodePath, nil, facts.Node)
		var err error
		facts.Host, err = host.Look(t.Context(), host.Kubelet{RootDir: filepath.Join(k.Folder, "kubelet"), RuntimeEndpoint: now.ContainerRuntimeEndpoint,
			CgroupRoot: now.CgroupRoot, CgroupDriver: now.CgroupDriver})
		if err == nil {
			facts.Sandboxes, err = host.Sandboxes(t.Context(), now.ContainerRuntimeEndpoint)
		}
		facts.Manifests = map[string][]forecast.Manifest{}
		for _, folder := range []string{now.StaticPodFolder(), then.StaticPodFolder()} {
			if err == nil {
				facts.Manifests[folder], err = host.Manifests(folder)
			}
		}
		if err != nil {
			return fatal{err}
		}
		begin := time.Now()
		f = forecast.Of(facts)
		took = time.Since(begin)
		for _, u := range f.Doubts {
			if strings.HasPrefix(u.What, "the Node's allocatable") {
				return fmt.Errorf("%s: %s", u.What, u.Why)
			}
		}
		return nil
	})
	return f, took
}

// pods are read as a supervisor reads them.
func (k *bareKubelet) pods(t *testing.T) []corev1.Pod {
	t.Helper()
	var text json.RawMessage
	k.must(t, http.MethodGet, "/api/v1/pods?fieldSelector=spec.nodeName="+cluster.NodeName, nil, &text)
	pods, err := forecast.ReadPods(strings.NewReader(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	return pods
}

// A podSeen is what a pod was or is, by the API.
type podSeen struct {
	Phase, Reason, Containers string
}

func (k *bareKubelet) seen(t *testing.T) map[string]podSeen {
	t.Helper()
	var list corev1.PodList
	k.must(t, http.MethodGet, podsFolder, nil, &list)
	all := map[string]podSeen{}
	for _, pod := range list.Items {
		s := podSeen{Phase: string(pod.Status.Phase), Reason: pod.Status.Reason}
		for _, c := range pod.Status.ContainerStatuses {
			s.Containers += fmt.Sprintf("%s %s %d;", c.Name, c.ContainerID, c.RestartCount)
		}
		all[pod.Name] = s
	}
	return all
}

// What a kubelet writes of pods that it ends.
var (
	denied    = regexp.MustCompile(`"Pod admission denied".* pod="default/([^"]+)".* reason="([^"]+)"`)
	preempted = regexp.MustCompile(`"Preempting pod to free up resources" pod="default/([^"]+)"`)
	killed    = regexp.MustCompile(`"Killing container with a grace period" pod="default/([^"]+)"`)
)

// verdicts are what the kubelet that runs has done to pods that ran before: by name, with the word it had for it, "" where it had none. They
// are complete when the API shows the end of all that it writes of, and nothing has changed for a while.
func (k *bareKubelet) verdicts(t *testing.T, before map[string]podSeen) map[string]string {
	t.Helper()
	const quiet = 6 * time.Second
	var now map[string]podSeen
	since := time.Now()
	await(t, "the kubelet has done to pods what it does", func() error {
		last := now
		now = k.seen(t)
		err := k.unfinished(t, before, now)
		if err == nil && !reflect.DeepEqual(now, last) {
			err = fmt.Errorf("pods change: %v", now)
		}
		if err != nil {
			since = time.Now()
		} else if time.Since(since) < quiet {
			err = errors.New("there may be more")
		}
		return err
	})
	words := map[string]string{}
	text := k.said(t)
	for _, match := range preempted.FindAllStringSubmatch(text, -1) {
		words[match[1]] = "Preempting"
	}
	for _, match := range denied.FindAllStringSubmatch(text, -1) {
		words[match[1]] = match[2]
	}
	lost := map[string]string{}
	for name, was := range before {
		if seen, is := now[name]; !is || seen != was {
			lost[name] = words[name]
			if lost[name] == "" {
				lost[name] = seen.Reason
			}
		}
	}
	return lost
}

// unfinished tells what the kubelet has still to do.
func (k *bareKubelet) unfinished(t *testing.T, before, now map[string]podSeen) error {
	t.Helper()
	text := k.said(t)
	if !strings.Contains(text, `"SyncLoop ADD" source="api"`) {
		return errors.New("it has not heard of the API's pods")
	}
	for _, match := range denied.FindAllStringSubmatch(text, -1) {
		if s := now[match[1]]; s.Phase == string(corev1.PodRunning) {
			return fmt.Errorf("pod %s is refused and still runs", match[1])
		}
	}
	for _, match := range killed.FindAllStringSubmatch(text, -1) {
		if now[match[1]] == before[match[1]] {
			return fmt.Errorf("pod %s is killed, and the API does not show it", match[1])
		}
	}
	return nil
}
