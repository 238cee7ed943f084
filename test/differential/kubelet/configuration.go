package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strconv"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"
	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"
	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/apis/config"
	"k8s.io/kubernetes/pkg/kubelet/apis/config/scheme"
	"k8s.io/kubernetes/pkg/kubelet/apis/config/validation"
	"k8s.io/kubernetes/pkg/kubelet/eviction"
	evictionapi "k8s.io/kubernetes/pkg/kubelet/eviction/api"
	"k8s.io/utils/cpuset"
)

// A configuration is one that a kubelet accepts, with its defaults.
type configuration struct {
	kubeletconfig.KubeletConfiguration
	text       json.RawMessage // in the names of v1beta1
	kube       v1.ResourceList // reserved
	system     v1.ResourceList
	cpus       cpuset.CPUSet
	hard       []evictionapi.Threshold
	thresholds []evictionapi.Threshold // soft ones, too
}

var kubeletScheme, codecs, errScheme = scheme.NewSchemeAndCodecs(serializer.EnableStrict)

func newConfiguration(text []byte) (*configuration, error) {
	if errScheme != nil {
		return nil, errScheme
	}
	var err error
	c := &configuration{}
	if _, _, err := codecs.UniversalDecoder().Decode(text, nil, &c.KubeletConfiguration); err != nil {
		return nil, err
	}
	if err := c.setGates(); err != nil {
		return nil, err
	}
	if err := validation.ValidateKubeletConfiguration(&c.KubeletConfiguration, utilfeature.DefaultFeatureGate); err != nil {
		return nil, err
	}
	var outside kubeletv1beta1.KubeletConfiguration
	if err := kubeletScheme.Convert(&c.KubeletConfiguration, &outside, nil); err != nil {
		return nil, err
	}
	if c.text, err = json.Marshal(outside); err != nil {
		return nil, err
	}
	if c.kube, err = quantities(c.KubeReserved); err != nil {
		return nil, err
	}
	if c.system, err = quantities(c.SystemReserved); err != nil {
		return nil, err
	}
	if c.cpus, err = cpuset.Parse(c.ReservedSystemCPUs); err != nil {
		return nil, err
	}
	if !c.cpus.IsEmpty() {
		delete(c.kube, v1.ResourceCPU)
		c.system[v1.ResourceCPU] = resource.MustParse(strconv.Itoa(c.cpus.Size()))
	}
	if c.hard, err = eviction.ParseThresholdConfig(nil, c.EvictionHard, nil, nil, nil); err != nil {
		return nil, err
	}
	c.thresholds, err = eviction.ParseThresholdConfig(c.EnforceNodeAllocatable, c.EvictionHard, c.EvictionSoft, c.EvictionSoftGracePeriod, c.EvictionMinimumReclaim)
	return c, err
}

// Gates are those of the process. One configuration after the other has it, so what one has set is made as it was.
var (
	defaultGates = utilfeature.DefaultMutableFeatureGate.DeepCopy()
	setBefore    = map[string]bool{}
)

func (c *configuration) setGates() error {
	gates := map[string]bool{}
	for name := range setBefore {
		gates[name] = defaultGates.Enabled(featuregate.Feature(name))
	}
	for name, on := range c.FeatureGates {
		gates[name] = on
	}
	setBefore = maps.Clone(c.FeatureGates)
	return utilfeature.DefaultMutableFeatureGate.SetFromMap(gates)
}

func quantities(texts map[string]string) (v1.ResourceList, error) {
	list := v1.ResourceList{}
	for name, text := range texts {
		q, err := resource.ParseQuantity(text)
		if err != nil || q.Sign() < 0 {
			return nil, fmt.Errorf("%s: %q is no reservation", name, text)
		}
		list[v1.ResourceName(name)] = q
	}
	return list, nil
}

// reservation is what pods do not get, as the container manager computes it.
func (c *configuration) reservation(capacity v1.ResourceList) v1.ResourceList {
	all := v1.ResourceList{}
	for name := range capacity {
		sum := resource.NewQuantity(0, resource.DecimalSI)
		sum.Add(c.system[name])
		sum.Add(c.kube[name])
		for _, t := range c.hard {
			of := map[evictionapi.Signal]v1.ResourceName{evictionapi.SignalMemoryAvailable: v1.ResourceMemory, evictionapi.SignalNodeFsAvailable: v1.ResourceEphemeralStorage}
			if of[t.Signal] == name {
				quantity := capacity[name]
				sum.Add(*evictionapi.GetThresholdQuantity(t.Value, &quantity))
			}
		}
		if !sum.IsZero() {
			all[name] = *sum
		}
	}
	return all
}

// refuses tells why the kubelet would end: more is reserved than there is.
func (c *configuration) refuses(capacity v1.ResourceList) error {
	for name, reserved := range c.reservation(capacity) {
		have := capacity[name]
		if have.Cmp(reserved) < 0 {
			return fmt.Errorf("%s: %s is reserved, and there is %s", name, reserved.String(), have.String())
		}
	}
	return nil
}

// setAsideForeign does what a supervisor does before each start.
func (c *configuration) setAsideForeign(folder string) {
	for name, policy := range map[string]string{cpuState: c.CPUManagerPolicy, memoryState: c.MemoryManagerPolicy} {
		var wrote struct{ PolicyName string }
		if json.Unmarshal([]byte(content(folder, name)), &wrote) == nil && wrote.PolicyName != policy {
			_ = os.Remove(filepath.Join(folder, name))
		}
	}
}
