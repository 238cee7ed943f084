package controller

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/rollout"
	"github.com/kubelet-supervisor/kubelet-supervisor/internal/bounded"
)

// edit is what one PATCH changes in a Node. It is compared with the answer, because a status code does not say what was stored: admission may have
// changed the object.
type edit struct {
	annotations map[string]string // empty: it is removed
	removeTaint string
	cordon      *bool
}

func editOf(w *rollout.Write) edit {
	e := edit{annotations: map[string]string{}, removeTaint: w.RemoveTaint}
	if w.Source != "" {
		e.annotations[nodev1.ConfigSourceAnnotation] = w.Source
		e.annotations[rollout.MarkAnnotation] = w.Mark.String()
		e.annotations[nodev1.RetryAnnotation] = w.Retry.String()
	}
	if w.Consent != "" {
		e.annotations[nodev1.AllowDisruptionAnnotation] = w.Consent
	}
	switch w.Why {
	case rollout.WhyDrain:
		e.annotations[rollout.DrainAnnotation], e.cordon = w.Drain.String(), new(true)
	case rollout.WhyUndrain:
		e.annotations[rollout.DrainAnnotation] = ""
		if w.Drain.Pool != "" {
			e.annotations[rollout.DrainAnnotation] = w.Drain.String()
		}
		if w.Lifts {
			e.cordon = new(false)
		}
	}
	return e
}

// patch is a merge patch that applies only to this version of the Node.
func (e *edit) patch(of *corev1.Node) ([]byte, error) {
	annotations, spec := map[string]any{}, map[string]any{}
	for key, value := range e.annotations {
		annotations[key] = nil
		if value != "" {
			annotations[key] = value
		}
	}
	if e.removeTaint != "" {
		spec["taints"] = slices.DeleteFunc(append([]corev1.Taint{}, of.Spec.Taints...), func(t corev1.Taint) bool { return t.Key == e.removeTaint })
	}
	if e.cordon != nil {
		spec["unschedulable"] = nil
		if *e.cordon {
			spec["unschedulable"] = true
		}
	}
	patch := map[string]any{"metadata": map[string]any{"uid": of.UID, "resourceVersion": of.ResourceVersion, "annotations": annotations}}
	if len(spec) > 0 {
		patch["spec"] = spec
	}
	return json.Marshal(patch)
}

// missed says which part of the edit is not in the Node that the API server has returned. It is empty if the edit is complete.
func (e *edit) missed(answered *corev1.Node) string {
	var missed []string
	for _, key := range slices.Sorted(maps.Keys(e.annotations)) {
		want := e.annotations[key]
		got, is := answered.Annotations[key]
		switch {
		case got == want && is == (want != ""):
		case want == "":
			missed = append(missed, "keeps the annotation "+key)
		case !is:
			missed = append(missed, "takes the annotation "+key+" away")
		default:
			missed = append(missed, fmt.Sprintf("changes the annotation %s to %s", key, strconv.Quote(bounded.Text(got, quotedLimit))))
		}
	}
	if slices.ContainsFunc(answered.Spec.Taints, func(t corev1.Taint) bool { return e.removeTaint != "" && t.Key == e.removeTaint }) {
		missed = append(missed, "keeps the taint "+e.removeTaint)
	}
	if e.cordon != nil && answered.Spec.Unschedulable != *e.cordon {
		missed = append(missed, map[bool]string{true: "uncordons the node", false: "keeps the node cordoned"}[*e.cordon])
	}
	if len(missed) == 0 {
		return ""
	}
	return "admission " + strings.Join(missed, ", ")
}

// quotedLimit limits quotes of what other programs have written, in bytes.
const quotedLimit = 64

// back is the edit that reverts a Node with only a part of this edit: half of an assignment would look like one of a user, and a cordon without its
// annotation like one of another program. is reports whether there is anything to revert.
func (e *edit) back(before, answered *corev1.Node) (back edit, is bool) {
	back.annotations = map[string]string{}
	for key := range e.annotations {
		if answered.Annotations[key] != before.Annotations[key] {
			back.annotations[key] = before.Annotations[key]
		}
	}
	if e.cordon != nil && answered.Spec.Unschedulable != before.Spec.Unschedulable {
		back.cordon = new(before.Spec.Unschedulable)
	}
	return back, len(back.annotations) > 0 || back.cordon != nil
}
