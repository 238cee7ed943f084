//go:build linux && crashpoints

package supervisor

import (
	"fmt"

	"github.com/kubelet-supervisor/kubelet-supervisor/store"
)

func crashPoint(when string, what any) {
	if path, is := what.(string); is {
		store.CrashPoint(when, path)
	} else if what != nil {
		store.CrashPoint(when, fmt.Sprintf("%T", what))
	}
}
