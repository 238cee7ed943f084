// Package store keeps what the supervisor must not forget: which source is assigned, which is last known good, the
// payloads of both, and the documents about trials and verdicts.
//
//	STATE_DIR/meta/assigned, meta/last-known-good          empty = local, else a SerializedNodeConfigSource in YAML
//	STATE_DIR/meta/NAME                                    the supervisor's own documents, kubelet-supervisor.io/v1
//	STATE_DIR/checkpoints/UID/RESOURCEVERSION/KEY          the payload of one ConfigMap version, a file per key
//	STATE_DIR/checkpoints/UID/RESOURCEVERSION.sha256       what `sha256sum RESOURCEVERSION/*` prints, written last
//
// It promises:
//   - One process at a time: STATE_DIR is locked from Open to Close, and the lock is not inherited by children.
//   - What a Save has returned nil for survives a power cut. What was cut off in the middle reads as the old or as the
//     new state, never as a mixture. A checkpoint whose .sha256 is missing does not exist.
//   - What cannot be trusted (links, files of another user, bytes that do not decode or do not match their checksum)
//     is renamed to NAME.corrupt-TIME and reported, so that it is met once and can be looked at; the caller goes on
//     without it. Upstream's kubelet exited instead, for ever (kubernetes#71518).
//   - Nothing grows without bound: files, payloads and what Collect leaves behind have limits.
//
// The layout below STATE_DIR is that of Kubernetes 1.11 to 1.23 (pkg/kubelet/kubeletconfig/checkpoint/store), with the
// .sha256 files, the documents, collection and syncing of folders added.
package store
