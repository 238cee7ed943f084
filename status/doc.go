// Package status publishes on the Node what runs on it: the annotations and the condition that people and tools read, the
// field status.config where the API server keeps it, and events.
//
// It promises:
//   - One PATCH of nodes/NAME/status per change of what is offered, none while nothing changes.
//   - The newest report wins, and is tried until the Node is seen to carry it; never more than one request at a time.
//   - Foreign conditions, annotations and fields are not touched.
//   - Events are best effort: kept while the API server is away, up to a bound, and given up when it refuses them.
//
// What to say is the caller's; this package only knows how to say it.
package status
