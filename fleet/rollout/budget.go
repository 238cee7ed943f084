package rollout

import (
	"cmp"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/api/v1alpha1"
)

// Budget is a KubeletRolloutBudget, read once for each version of it. What cannot be read of it allows nothing.
type Budget struct {
	Name string

	selector                    labels.Selector
	frozen                      bool
	maxUnavailable, maxUnproven *amount
	topology                    topology
	windows                     windows
	fault                       string
}

// topology keeps what is not proven to few domains at a time; no key is no such limit.
type topology struct {
	key string
	max int
}

func readTopology(from *v1alpha1.Topology) topology {
	if from == nil {
		return topology{}
	}
	return topology{from.Key, int(max(1, from.MaxDomains))}
}

// ReadBudget reads a KubeletRolloutBudget.
func ReadBudget(object *v1alpha1.KubeletRolloutBudget, zones Zones) Budget {
	from := &object.Spec
	b := Budget{Name: object.Name, selector: labels.Everything(), frozen: from.Frozen, topology: readTopology(from.Topology)}
	fault := func(where string, err error) {
		if err != nil {
			b.fault = cmp.Or(b.fault, where+err.Error())
		}
	}
	selector, err := readSelector(&from.Selector)
	if err == nil {
		b.selector = selector.matches
	}
	fault("spec.selector: ", err)
	if from.MaxUnavailable != nil {
		a, err := readAmount(from.MaxUnavailable, amount{})
		b.maxUnavailable = &a
		fault("spec.maxUnavailable: ", err)
	}
	if from.MaxUnproven != nil {
		a, err := readAmount(from.MaxUnproven, amount{})
		b.maxUnproven = &a
		fault("spec.maxUnproven: ", err)
	}
	b.windows, err = readWindows("spec.windows", from.Windows, zones)
	fault("", err)
	return b
}
