package cmdutil

import (
	"fmt"

	"k8s.io/kubectl/pkg/cmd/util/editor"
)

// runEditor opens a file in $KUBE_EDITOR, $EDITOR or the system's default, as kubectl edit does.
func runEditor(file string) error {
	if err := editor.NewDefaultEditor([]string{"KUBE_EDITOR", "EDITOR"}).Launch(file); err != nil {
		return fmt.Errorf("%w; name another editor with KUBE_EDITOR", err)
	}
	return nil
}
