package plugin

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/api/v1alpha1"
	"github.com/kubelet-supervisor/kubelet-supervisor/internal/bounded"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/view"
)

// printable has streams that print nothing else.
func (s *session) printable() {
	s.Out, s.ErrOut = view.ToPeople(s.Out), view.ToPeople(s.ErrOut)
}

// writeWhole writes what programs read, whole and valid: what does not show is escaped where the format has a way. In templates it becomes
// spaces.
func (s *session) writeWhole(format string, print func(io.Writer) error) error {
	var text bytes.Buffer
	if err := print(&text); err != nil {
		return err
	}
	to := s.Out
	if limited, is := to.(*bounded.Writer); is {
		to = limited.Whole()
	}
	_, err := io.WriteString(to, view.EscapeWhole(format, text.String()))
	return err
}

// poolClient asks for KubeletPools.
func (s *session) poolClient() (dynamic.ResourceInterface, error) {
	client, err := s.connectDynamic()
	if err != nil {
		return nil, err
	}
	return client.Resource(v1alpha1.GroupVersion().WithResource("kubeletpools")), nil
}

// listPools lists all of them, none where the API server does not know the kind. Who may not list what is not there is told Forbidden, so
// that discovery has to tell.
func (s *session) listPools(ctx context.Context, client kubernetes.Interface) ([]view.Pool, error) {
	api, err := s.poolClient()
	if err != nil {
		return nil, err
	}
	list, err := api.List(ctx, metav1.ListOptions{})
	if apierrors.IsForbidden(err) {
		if _, missing := client.Discovery().ServerResourcesForGroupVersion(v1alpha1.GroupVersion().String()); apierrors.IsNotFound(missing) {
			return nil, nil
		}
	}
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("listing pools: %w", err)
	}
	var pools []view.Pool
	for i := range list.Items {
		p, err := view.PoolOf(&list.Items[i])
		if err != nil {
			return nil, err
		}
		pools = append(pools, p)
	}
	slices.SortFunc(pools, func(a, b view.Pool) int { return cmp.Compare(a.Name, b.Name) })
	return pools, nil
}
