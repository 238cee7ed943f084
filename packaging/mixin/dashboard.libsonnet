// One dashboard, of plain objects: nodes first, what changes cost next, pools last.
{
  local config = $._config,

  local target(expr, legend) = { expr: expr, legendFormat: legend, refId: 'A', datasource: { type: 'prometheus', uid: '${datasource}' } },
  local panel(kind, title, description, unit, targets, width) = {
    type: kind,
    title: title,
    description: description,
    datasource: { type: 'prometheus', uid: '${datasource}' },
    fieldConfig: { defaults: { unit: unit, min: 0 }, overrides: [] },
    targets: [targets[i] { refId: std.char(65 + i) } for i in std.range(0, std.length(targets) - 1)],
    gridPos: { w: width, h: 8 },
  },
  local series(title, description, unit, targets, width=8) = panel('timeseries', title, description, unit, targets, width) { options: { legend: { displayMode: 'list', placement: 'bottom' }, tooltip: { mode: 'multi' } } },
  local stacked(title, description, unit, targets, width=8) = series(title, description, unit, targets, width) + { fieldConfig+: { defaults+: { custom: { stacking: { mode: 'normal' }, fillOpacity: 30 } } } },
  local number(title, description, unit, targets) = panel('stat', title, description, unit, targets, 6) { gridPos+: { h: 4 }, fieldConfig+: { defaults+: { decimals: 0 } } }, // increase() extrapolates: 2.02 rollbacks
  local instance = '{{%s}}' % config.instanceLabel,

  local rows = [
    [
      number('Supervised nodes', 'Nodes with the condition KubeletConfigOk, by kube-state-metrics.', 'short', [target('cluster:kubelet_supervisor_nodes:count', '')]),
      number('Nodes that are not OK', 'False or Unknown.', 'short', [target('cluster:kubelet_supervisor_nodes_not_ok:count', '')]),
      number('Held changes', 'They would kill running pods, and wait.', 'short', [target('sum(kubelet_supervisor_held)', '')]),
      number('Rollbacks in an hour', 'Trials that failed.', 'short', [target('cluster:kubelet_supervisor_rollbacks:increase1h', '')]),
    ],
    [
      stacked('Nodes by reason', 'The reason of the condition, as each supervisor tells it.', 'short', [target('sum by (reason) (kubelet_supervisor_condition)', '{{reason}}')]),
      series('Changes', 'Restarts for a change, promotions, rollbacks and rejections in five minutes.', 'short', [
        target('sum(increase(kubelet_supervisor_kubelet_starts_total{why="change"}[5m]))', 'starts for a change'),
        target('sum(increase(kubelet_supervisor_promotions_total[5m]))', 'promotions'),
        target('sum(increase(kubelet_supervisor_rollbacks_total[5m]))', 'rollbacks'),
        target('sum(increase(kubelet_supervisor_rejections_total[5m]))', 'rejections'),
      ]),
      series('What pre-flight said', 'Of the kubelet, before anything is restarted.', 'short', [target('sum by (outcome) (increase(kubelet_supervisor_preflights_total[5m]))', '{{outcome}}')]),
    ],
    [
      series('Phases of a change', 'The mean of each phase.', 's', [
        target('sum by (phase) (rate(kubelet_supervisor_change_duration_seconds_sum[30m])) / sum by (phase) (rate(kubelet_supervisor_change_duration_seconds_count[30m]))', '{{phase}}'),
      ]),
      series('Without a healthy kubelet', 'Seconds of each node in an hour, the ten longest.', 's', [target('topk(10, increase(kubelet_supervisor_kubelet_unhealthy_seconds_total[1h]))', instance)]),
      series('Ends of kubelets', 'Those that nobody asked for.', 'short', [target('sum by (cause) (increase(kubelet_supervisor_kubelet_exits_total{asked="false"}[5m]))', '{{cause}}')]),
    ],
    [
      series('Trial progress', 'Health that was seen, of what is asked for.', 'percentunit', [target('kubelet_supervisor_trial_healthy_seconds / (kubelet_supervisor_trial_required_seconds > 0)', instance)]),
      series('Held nodes', 'A change waits for pods.', 'short', [target('kubelet_supervisor_held > 0', instance)]),
      series('Shadowed fields', 'Flags or drop-in files override them.', 'short', [target('kubelet_supervisor_shadowed_fields > 0', instance)]),
    ],
    [
      stacked('Members of pools', 'By class, as the leader tells it.', 'short', [target('max by (pool, class) (kubelet_supervisor_pool_nodes) > 0', '{{pool}} {{class}}')]),
      series('Open wave', '0: there is nothing to roll out.', 'short', [target('max by (pool) (kubelet_supervisor_pool_wave)', '{{pool}}')]),
      series('Stopped and held pools', '', 'short', [target('max by (pool) (kubelet_supervisor_pool_stopped)', '{{pool}} stopped'), target('max by (pool) (kubelet_supervisor_pool_held)', '{{pool}} held')]),
    ],
    [
      series('PATCHes of Nodes', 'By the status of the answer.', 'reqps', [target('sum by (code) (rate(kubelet_supervisor_pool_patches_total[5m]))', '{{code}}')]),
      series('Time of a decision', 'The 99th percentile.', 's', [target('histogram_quantile(0.99, sum by (le) (rate(kubelet_supervisor_pool_decide_seconds_bucket[5m])))', 'p99')]),
      series('Requests of supervisors', 'To the API server, by the status of the answer.', 'reqps', [target('sum by (code) (rate(kubelet_supervisor_api_requests_total[5m]))', '{{code}}')]),
    ],
  ],

  // Grafana wants a place for each: rows one below the other, panels from left to right.
  local height(row) = std.foldl(function(most, p) std.max(most, p.gridPos.h), row, 0),
  local placed = std.foldl(
    function(all, row) {
      y: all.y + height(row),
      panels: all.panels + std.foldl(
        function(line, p) { x: line.x + p.gridPos.w, panels: line.panels + [p { gridPos+: { x: line.x, y: all.y } }] }, row, { x: 0, panels: [] }
      ).panels,
    }, rows, { y: 0, panels: [] }
  ).panels,

  grafanaDashboards+:: {
    'kubelet-supervisor.json': {
      uid: config.dashboard,
      title: 'Kubelet configuration',
      tags: ['kubernetes', 'kubelet'],
      schemaVersion: 39,
      version: 1,
      editable: true,
      timezone: '',
      refresh: '1m',
      time: { from: 'now-6h', to: 'now' },
      templating: { list: [{ name: 'datasource', type: 'datasource', query: 'prometheus', label: 'Data source', hide: 0 }] },
      annotations: { list: [] },
      panels: [placed[i] { id: i + 1 } for i in std.range(0, std.length(placed) - 1)],
    },
  },
}
