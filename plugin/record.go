package plugin

import (
	"context"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/yaml"
)

// The record of what people assigned to a node with this plugin is a ConfigMap per node in configNamespace, where nodes read and
// do not write. On the Node itself it would be the node's own word: a node's identity may set its Node's annotations.
const (
	recordKey     = "assignments"
	recordEntries = 20 // the newest are kept
)

// An entry is one assignment, made with this plugin.
type entry struct {
	Revision   int         `json:"revision"`
	Time       metav1.Time `json:"time"`
	Assignment string      `json:"assignment"` // as the annotation has it; local
	UID        string      `json:"uid,omitempty"`
	By         string      `json:"by,omitempty"` // as the API server knew them
}

func recordName(node string) string { return "assignments." + node }

// readRecord gives the entries of a node, oldest first; none where there is no record.
func readRecord(ctx context.Context, client kubernetes.Interface, node string) ([]entry, error) {
	found, err := client.CoreV1().ConfigMaps(configNamespace).Get(ctx, recordName(node), metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading the record of node %s: %w", node, err)
	}
	return entriesOf(found)
}

func entriesOf(record *corev1.ConfigMap) ([]entry, error) {
	var entries []entry
	if err := yaml.Unmarshal([]byte(record.Data[recordKey]), &entries); err != nil {
		return nil, fmt.Errorf("ConfigMap %s/%s is no record of assignments: %w; delete it to begin anew", record.Namespace, record.Name, err)
	}
	return entries, nil
}

// remember adds entries to a node's record. before is what stood on the Node: it is only recorded when it was nothing, for who
// wrote something else is not known.
func (s *session) remember(ctx context.Context, client kubernetes.Interface, before nodeView, assigned goal) error {
	by := whoAmI(ctx, client)
	records := client.CoreV1().ConfigMaps(configNamespace)
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		record, err := records.Get(ctx, recordName(before.Name), metav1.GetOptions{})
		absent := apierrors.IsNotFound(err)
		if err != nil && !absent {
			return err
		}
		if absent {
			record = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
				Namespace: configNamespace, Name: recordName(before.Name), Labels: map[string]string{purposeLabel: purposeRecord},
			}}
		}
		entries, err := entriesOf(record)
		if err != nil {
			return err
		}
		now := metav1.NewTime(s.now().UTC().Truncate(time.Second))
		if len(entries) == 0 && before.carrier == carrierNone {
			entries = append(entries, entry{Revision: 1, Time: now, Assignment: localText})
		}
		next := entry{Revision: 1, Time: now, Assignment: assigned.wanted.String(), UID: assigned.uid, By: by}
		if last := len(entries); last > 0 {
			next.Revision = entries[last-1].Revision + 1
			if entries[last-1].Assignment == next.Assignment && entries[last-1].UID == next.UID {
				return nil
			}
		}
		entries = append(entries, next)
		text, err := yaml.Marshal(entries[max(0, len(entries)-recordEntries):])
		if err != nil {
			return err
		}
		record.Data = map[string]string{recordKey: string(text)}
		if absent {
			_, err = records.Create(ctx, record, metav1.CreateOptions{FieldManager: fieldManager})
			return err
		}
		_, err = records.Update(ctx, record, metav1.UpdateOptions{FieldManager: fieldManager})
		return err
	})
}

// whoAmI asks the API server, "" where it does not say (before Kubernetes 1.28).
func whoAmI(ctx context.Context, client kubernetes.Interface) string {
	answer, err := client.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return ""
	}
	return answer.Status.UserInfo.Username
}
