//go:build e2e && conformance

package e2e

import (
	"encoding/json"
	"net/http"
	"strings"
)

// A reference is an assignment as people write it; the zero value is none.
type reference struct {
	Namespace, Name, Key, UID, ResourceVersion string

	Empty bool // configSource is there, without a subfield
}

// A carrier is where an assignment is written: the annotation of today or the field of the original API.
type carrier struct {
	name      string
	apiServer string // a version of the API server on which it works
	// set writes the assignment, or returns the API server's refusal.
	set func(*node, reference) error
	// express gives the state as this carrier can express it, or says why it cannot.
	express func(configState) (state configState, unable string)
	// byAssignment: to assign a ConfigMap is to let the node read it, by the node authorizer of the time.
	byAssignment bool
}

var carriers = []carrier{
	{name: "annotation", apiServer: newest, set: setAnnotation, express: expressInText},
	{name: "field", apiServer: keepsTheAPI, set: setConfigSource, byAssignment: true,
		express: func(state configState) (configState, string) { return state, "" }},
}

func expressInText(state configState) (configState, string) {
	switch {
	case state.reference.Empty:
		state.name += " (empty text)"
		state.refused = sourcePath + "namespace: Required value: namespace must be set"
	case state.reference.UID != "":
		// Well-formed, but no ConfigMap has this uid.
		state.name += " (a pin)"
		state.refused, state.error, state.unlike = "", "DownloadError", uidPins
	case state.reference.ResourceVersion != "":
		return state, "the annotation has no place for a resourceVersion"
	}
	return state, ""
}

// observed is how the Node names what it speaks of.
func (r reference) observed() string {
	if r == (reference{}) || r.Empty {
		return ""
	}
	text := r.Namespace + "/" + r.Name + "/" + r.Key
	if r.UID != "" {
		text += "@" + r.UID
	}
	return text
}

func setAnnotation(n *node, r reference) error {
	var value any
	if r != (reference{}) {
		value = r.observed()
	}
	_, err := n.request(http.MethodPatch, nodePath, object{"metadata": object{"annotations": object{assignmentAnnotation: value}}}, nil)
	return refusal(err)
}

func setConfigSource(n *node, r reference) error {
	var source any
	if r.Empty {
		source = object{"configMap": nil}
	} else if r != (reference{}) {
		source = object{"configMap": object{"namespace": orNone(r.Namespace), "name": orNone(r.Name), "kubeletConfigKey": orNone(r.Key),
			"uid": orNone(r.UID), "resourceVersion": orNone(r.ResourceVersion)}}
	}
	_, err := n.request(http.MethodPatch, nodePath, object{"spec": object{"configSource": source}}, nil)
	return refusal(err)
}

// orNone is null, which a merge patch removes, for what is empty.
func orNone(value string) any {
	if value == "" {
		return nil
	}
	return value
}

// A refused request, with the API server's message.
type refused string

func (r refused) Error() string { return string(r) }

// refusal finds the message in an answer of the API server; another error is returned as it is.
func refusal(err error) error {
	if err == nil {
		return nil
	}
	_, body, _ := strings.Cut(err.Error(), ": {")
	var status struct{ Kind, Message string }
	if json.Unmarshal([]byte("{"+body), &status) != nil || status.Kind != "Status" {
		return err
	}
	return refused(status.Message)
}
