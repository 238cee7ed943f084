package cmdutil

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/view"
)

// namesOnALine is how many names fit into a line of an error, because long lines are cut.
const namesOnALine = 15

// EachNode calls do for each node, parallel at a time. After a failure it starts no other node, and finishes those
// in progress. The error names the nodes that were not started.
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
