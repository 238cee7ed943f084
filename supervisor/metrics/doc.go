// Package metrics counts what a supervisor does, and shows that and what is so now in Prometheus' text format: in a
// file for node_exporter's textfile collector, and over a unix socket or loopback. It promises that the number of
// series is bounded, that nothing of a configuration's content, of pods or of credentials is in them, that nothing
// waits for a reader, and that what cannot be written or listened to costs nothing but the metrics.
//
// The text is written here, because the small libraries do not write what Prometheus' own linter accepts:
// VictoriaMetrics/metrics v1.44.0 still has empty HELP lines. It is 48 KiB larger in the binary than what is written
// here, and not smaller in memory (docs/evidence/figures.md has them). The large library brings protobuf, 2 MB of
// binary.
package metrics
