package cmdutil

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/view"
)

// namesOnALine are few enough for a line of an error, which is cut where it is long.
const namesOnALine = 15

// EachNode does something to nodes, so many at a time. After a failure no other node is begun; those under way are finished. The
// error names those that were not begun.
func EachNode(ctx context.Context, views []view.Node, parallel int, do func(context.Context, view.Node) error) error {
	var (
		mutex sync.Mutex
		next  int
		errs  []error
		group sync.WaitGroup
	)
	take := func() (view.Node, bool) {
		mutex.Lock()
		defer mutex.Unlock()
		if len(errs) > 0 || ctx.Err() != nil || next == len(views) {
			return view.Node{}, false
		}
		next++
		return views[next-1], true
	}
	for range min(parallel, len(views)) {
		group.Go(func() {
			for v, more := take(); more; v, more = take() {
				if err := do(ctx, v); err != nil {
					mutex.Lock()
					errs = append(errs, err)
					mutex.Unlock()
				}
			}
		})
	}
	group.Wait()
	if len(errs) == 0 {
		errs = append(errs, ctx.Err())
	}
	if next < len(views) {
		var names []string
		for _, v := range views[next:] {
			names = append(names, v.Name)
		}
		for line := range slices.Chunk(names, namesOnALine) {
			errs = append(errs, errors.New("not begun: "+strings.Join(line, ", ")))
		}
	}
	return errors.Join(errs...)
}
