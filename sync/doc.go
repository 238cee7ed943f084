// Package sync turns what the Node asks for into a configuration that can be used: it follows the Node and the ConfigMap
// that the Node is assigned, and tells every change as one Update. It knows nothing of processes, disks or the kubelet.
//
// It promises:
//   - No informers and no caches: one LIST and one watch for the Node, one LIST and one watch for the assigned ConfigMap,
//     each by metadata.name. Where listing or watching is forbidden but reading is not (a Role with only get), it polls.
//   - An assignment that is malformed or not allowed is refused before anything is downloaded.
//   - It never gives up. Failures are retried with exponential backoff and jitter, told once, and so is their healing.
//   - An API server that is away changes nothing: what was resolved stays resolved until the API server says otherwise.
//
// The package shares its name with the standard library's sync, which it does not import; importers call it configsync.
package sync
