// What a Prometheus needs to watch kubelet configurations: alerts, recording rules and a dashboard for Grafana.
// `(import 'mixin.libsonnet') { _config+:: { … } }` changes what config.libsonnet has.
(import 'config.libsonnet') + (import 'alerts.libsonnet') + (import 'rules.libsonnet') + (import 'dashboard.libsonnet')
