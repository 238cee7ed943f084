package rollout

import (
	"cmp"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
)

// Budget is a KubeletRolloutBudget, read once for each version. An invalid one allows nothing.
type Budget struct {
	Name       string
	Generation int64
	Status     v1alpha1.KubeletRolloutBudgetStatus

	selector                    labels.Selector
	frozen                      bool
	maxUnavailable, maxUnproven *amount
	topology                    topology
	windows                     windows
	fault                       string
}

// reasonValid is the reason of a Ready budget.
const reasonValid = "Valid"

// topology limits the domains that have nodes with an unproven revision at a time; without a key there is no
// limit.
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
	b := Budget{Name: object.Name, Generation: object.Generation, Status: object.Status, selector: labels.Everything(), frozen: from.Frozen, topology: readTopology(from.Topology)}
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

// reportBudgets returns the status of each budget. Its use is computed from the nodes as they are now, without
// assignments of this turn.
func reportBudgets(now time.Time, budgets []*gate) map[string]v1alpha1.KubeletRolloutBudgetStatus {
	changed := map[string]v1alpha1.KubeletRolloutBudgetStatus{}
	for _, g := range budgets {
		b := g.budget
		status := *b.Status.DeepCopy()
		status.ObservedGeneration = b.Generation
		status.Nodes, status.Unavailable, status.Unproven = int32(g.before.nodes), int32(g.before.unavailable), int32(g.before.unproven)
		ready := metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: reasonValid, ObservedGeneration: b.Generation,
			LastTransitionTime: metav1.NewTime(now)}
		if b.fault != "" {
			ready.Status, ready.Reason, ready.Message = metav1.ConditionFalse, ReasonInvalidSpec, message(b.fault)
		}
		meta.SetStatusCondition(&status.Conditions, ready)
		if !reflect.DeepEqual(status, b.Status) {
			changed[b.Name] = status
		}
	}
	return changed
}
