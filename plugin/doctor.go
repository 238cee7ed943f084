package plugin

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/cmdutil"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/document"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/view"
)

// doctorOptions are the flags of doctor.
type doctorOptions struct {
	*cmdutil.Factory
	node   string
	all    bool          // examine what all nodes have in common
	answer time.Duration // how long to wait for the supervisor
}

func newDoctor(f *cmdutil.Factory) *cobra.Command {
	o := &doctorOptions{Factory: f}
	command := &cobra.Command{
		Use:   "doctor (NODE | --all)",
		Short: "Check everything between an assignment and the kubelet, and say what to fix",
		Long: `Check everything between an assignment and a node's kubelet: the node, its supervisor, the assignment, the ConfigMap, the node's right to
read it, what the node says, kubelet flags that win over it, and the admission policies. Where there are pools, also whether the node is in one, whether
their controller runs, and their policies. Nothing is changed. Exit code 1 when something is wrong.

The policies are compared with those that install makes, and tried by requests that the API server does not keep: as the node, where you may
impersonate it, else as yourself.

A supervisor updates its status when it starts and when something changes, and not in between. So it counts as running if it answered the
assignment, and updated its status after the kubelet was started.

With --all what all nodes have in common is checked: the namespace ` + cmdutil.ConfigNamespace + `, the policies, the controller of pools. It lists what was written before
a policy or its binding was written last, or while one is missing or is not as install makes it: labels and annotations of nodes, ConfigMaps, pools, budgets, revisions. And it lists nodes whose
assignment neither the record of this plugin nor a pool accounts for: it was made by another tool, or while a policy was not bound. A user who
could assign then could write a record, too, so only the audit log of the API server is proof: ` + auditPage + `.`,
		Example: `  kubectl kubelet doctor n1
  kubectl kubelet doctor --all`,
		Args: func(command *cobra.Command, arguments []string) error {
			if o.all {
				return cobra.NoArgs(command, arguments)
			}
			return cobra.ExactArgs(1)(command, arguments)
		},
		ValidArgsFunction: f.CompleteNodes,
		RunE:              cmdutil.RunE(o),
	}
	command.Flags().BoolVar(&o.all, "all", false, "check what all nodes have in common, and list assignments that nothing accounts for")
	command.Flags().DurationVar(&o.answer, "answer-timeout", 5*time.Second, "how long to wait for the supervisor's answer to the assignment")
	return command
}

// Complete takes the name of the node.
func (o *doctorOptions) Complete(_ *cobra.Command, arguments []string) error {
	if !o.all {
		o.node = arguments[0]
	}
	return nil
}

// Validate has nothing to refuse.
func (o *doctorOptions) Validate() error {
	return nil
}

// Run examines, and returns an error if something is wrong.
func (o *doctorOptions) Run(ctx context.Context) error {
	client, err := o.Connect()
	if err != nil {
		return err
	}
	d := &diagnosis{Factory: o.Factory, findings: findings{to: o.Out}, client: client}
	if o.all {
		if err := d.examineAll(ctx); err != nil {
			return err
		}
		return d.verdict("")
	}
	if d.node, err = view.GetNode(ctx, client, o.node); err != nil {
		return err
	}
	d.awaitAnswer(ctx, o.answer)
	d.examine(ctx)
	return d.verdict("node " + d.node.Name + ": ")
}

// unknownFor is how long a condition may be Unknown: a change in progress takes a minute or two.
const unknownFor = 5 * time.Minute

// A diagnosis follows the chain from the assignment to the kubelet.
type diagnosis struct {
	*cmdutil.Factory
	findings
	client kubernetes.Interface
	node   view.Node
}

func (d *diagnosis) examine(ctx context.Context) {
	if d.node.Ready() {
		d.fine("the node is Ready, its kubelet %s", d.node.Kubelet())
	} else {
		d.wrong("the node is not Ready: its kubelet, or the network, is down; see kubectl describe node %s", d.node.Name)
	}
	d.examineSupervisor(ctx)
	d.examineAssignment(ctx)
	d.examineCondition()
	d.examinePolicies(ctx)
	d.examinePools(ctx)
}

func (d *diagnosis) examineAssignment(ctx context.Context) {
	wanted, ok := d.node.Current()
	switch {
	case !ok:
		d.wrong("the assignment %q is malformed; kubectl kubelet assign %s --config NAMESPACE/NAME, or reset", d.node.Says.Assignment, d.node.Name)
		return
	case wanted.IsLocal():
		d.fine("nothing is assigned: the kubelet runs its own configuration")
		return
	}
	d.fine("the assignment %s is well-formed, by %s", wanted, d.node.Says.Carrier)
	configMap, wanted, err := view.GetConfigMap(ctx, d.client, wanted)
	if err != nil {
		if apierrors.IsForbidden(err) {
			d.unknown("%v", err)
		} else {
			d.wrong("%v", err)
		}
		d.examinePermission(ctx, wanted)
		return
	}
	written, err := document.Read(document.Payload(configMap), wanted.Key)
	if err != nil {
		d.wrong("ConfigMap %s/%s: %v", wanted.Namespace, wanted.Name, err)
	} else {
		d.fine("ConfigMap %s/%s is there, and key %s decodes", wanted.Namespace, wanted.Name, wanted.Key)
		for _, warning := range written.Warnings {
			d.note("%s", warning)
		}
	}
	d.examinePermission(ctx, wanted)
	if err == nil {
		d.examineShadows(ctx, written)
	}
}

func (d *diagnosis) examinePermission(ctx context.Context, r nodev1.Assignment) {
	allowed, known, err := canRead(ctx, d.client, d.node.Name, r)
	switch {
	case err != nil:
		d.unknown("%v", err)
	case !known:
		d.unknown("whether the node may read ConfigMap %s/%s: you may not ask (create subjectaccessreviews)", r.Namespace, r.Name)
	case allowed:
		d.fine("the node may read ConfigMap %s/%s", r.Namespace, r.Name)
	default:
		d.wrong("the node may not read ConfigMap %s/%s; kubectl kubelet assign %s --config %s lets it", r.Namespace, r.Name, d.node.Name, document.ShortReference(r))
	}
}

// examineShadows names the fields that a flag or a drop-in file overrides. This is only known for the running
// configuration.
func (d *diagnosis) examineShadows(ctx context.Context, written document.Document) {
	compared, err := compareOne(ctx, d.Factory, d.client, d.node, written)
	if err != nil {
		d.unknown("which fields kubelet flags and drop-in files set: %v", err)
		return
	}
	var fields []string
	for _, c := range compared.Changes() {
		if c.Kept {
			fields = append(fields, fmt.Sprintf("%s (%s stays)", document.FieldName(c.Path), document.Show(c.Path, c.From)))
		}
	}
	switch {
	case compared.Active == nil:
		d.unknown("which fields kubelet flags and drop-in files set: not while the node runs %s", activeText(d.node))
	case len(fields) > 0:
		d.note("a kubelet flag or a drop-in file of the node wins over %s", strings.Join(fields, ", "))
	case d.node.Shadowed() != "": // the node knows its flags, so its own report takes precedence over configz
		d.note("the node says %s", d.node.Shadowed())
	default:
		d.fine("no kubelet flag or drop-in file wins over it")
	}
}

func (d *diagnosis) examineCondition() {
	v := d.node
	switch {
	case !v.Says.Supervised:
	case v.Says.Problem != nil:
		d.wrong("what the supervisor says cannot be read: %v", v.Says.Problem)
	case v.Wellness() == corev1.ConditionTrue:
		d.fine("the node says %s", v.ReasonAndMessage())
	case v.Wellness() == corev1.ConditionFalse, v.Reason() == nodev1.ReasonEnvironmentFailing:
		d.wrong("the node says %s", v.ReasonAndMessage())
	case v.Reason() != nodev1.ReasonStopped && !waitsItsTurn(v, d.Now()) && longer(v, d.Now(), unknownFor): // Stopped was already reported
		d.wrong("the node has said %s for %s: %s", cmp.Or(v.Reason(), "nothing"), view.Age(d.Now(), v.Says.Status.Since), v.Message())
	default:
		d.note("the node says %s", v.ReasonAndMessage())
	}
}

// longer reports whether the reason has not changed for longer than that.
func longer(v view.Node, now time.Time, than time.Duration) bool {
	since := v.Says.Status.Since
	return !since.IsZero() && now.Sub(since) > than
}

// waitsItsTurn reports whether an edit is applied later, because of --edit-spread.
func waitsItsTurn(v view.Node, now time.Time) bool {
	change := v.Says.Status.Change
	return change != nil && now.Before(change.Due.Add(unknownFor))
}
