// The alerts. Those of the first group cost nothing: kube-state-metrics has each condition of each Node already.
// An alert is not named as an event is, so that a search finds the one that is meant.
{
  local config = $._config,
  local condition(status) =
    'kube_node_status_condition{%scondition="KubeletConfigOk",status="%s"}' % [if config.kubeStateMetricsSelector == '' then '' else config.kubeStateMetricsSelector + ',', status],
  local by = if config.clusterLabel == '' then '' else 'by (%s) ' % config.clusterLabel,
  local byPool = 'by (%spool)' % (if config.clusterLabel == '' then '' else config.clusterLabel + ', '),
  local node = '{{ $labels.%s }}' % config.instanceLabel,

  local alert(name, severity, expr, duration, summary) = {
    alert: name,
    expr: expr,
    [if duration != '' then 'for']: duration,
    labels: { severity: severity },
    annotations: { summary: summary, runbook_url: config.runbook + std.asciiLower(name) },
  },

  prometheusAlerts+:: {
    groups+: [
      {
        name: 'kubelet-config',  // kube-state-metrics alone
        rules: [
          alert('KubeletConfigNotOk', 'warning', condition('false') + ' == 1', '15m', '{{ $labels.node }} does not run the kubelet configuration that it is assigned, or it waits'),
          alert('KubeletConfigUnknown', 'warning', condition('unknown') + ' == 1', '15m', '{{ $labels.node }}: nobody knows whether it runs its kubelet configuration'),
          alert(
            'KubeletConfigManyNodesNotOk',
            'critical',
            'count %(by)s(%(false)s == 1) / count %(by)s(%(true)s) > %(share)g and count %(by)s(%(false)s == 1) >= %(least)d' %
            { by: by, 'false': condition('false'), 'true': condition('true'), share: config.manyNodes, least: config.manyNodesAtLeast },
            '5m',
            'more than %g %% of the supervised nodes do not run their kubelet configuration' % (100 * config.manyNodes),
          ),
        ],
      },
      {
        name: 'kubelet-supervisor',  // --metrics-file or --metrics-address
        rules: [
          alert('KubeletNotHealthy', 'critical', 'kubelet_supervisor_kubelet_healthy == 0', '5m', node + ': the kubelet is not healthy'),
          alert('KubeletEndsByItself', 'warning', 'increase(kubelet_supervisor_kubelet_starts_total{why="exit"}[15m]) > 3', '5m', node + ': the kubelet ends by itself again and again'),
          alert('KubeletSupervisorGone', 'warning', 'time() - node_textfile_mtime_seconds{%s} > 300' % config.textfileSelector, '5m', node + ': the supervisor no longer writes its metrics'),
          alert('KubeletSupervisorOffline', 'warning', 'time() - kubelet_supervisor_last_contact_timestamp_seconds > 900 and kubelet_supervisor_last_contact_timestamp_seconds > 0', '5m', node + ': the API server has not answered the supervisor for a quarter of an hour'),
          alert('KubeletConfigTrialFailed', 'warning', 'increase(kubelet_supervisor_rollbacks_total[1h]) > 0', '', node + ' rolled a kubelet configuration back: {{ $labels.cause }}'),
          alert('KubeletRestartKilledPods', 'warning', 'increase(kubelet_supervisor_pods_lost_total[1h]) > 0', '', node + ': pods that ran before a restart of the kubelet did not run after it: {{ $labels.reason }}'),
          alert('KubeletConfigWaits', 'info', 'kubelet_supervisor_held == 1', '1h', node + ': a change waits, because it would kill running pods'),
          alert('KubeletConfigShadowed', 'info', 'kubelet_supervisor_shadowed_fields > 0', '1h', node + ': flags or drop-in files override {{ $value }} fields of the configuration'),
          alert('KubeletLocalFilesChanged', 'info', 'kubelet_supervisor_local_change_pending == 1', '1d', node + ': its own files have changed, and its kubelet was not restarted for it'),
        ],
      },
      {
        name: 'kubelet-pool',  // the controller; only its leader tells of pools
        rules: [
          alert('KubeletPoolStopped', 'warning', 'max %s (kubelet_supervisor_pool_stopped) > 0' % byPool, '', 'KubeletPool {{ $labels.pool }} has stopped its rollout'),
          alert('KubeletPoolNodesFailed', 'warning', 'max %s (kubelet_supervisor_pool_nodes{class="failed"}) > 0' % byPool, '15m', '{{ $value }} nodes of KubeletPool {{ $labels.pool }} refuse or rolled back what others run'),
          alert('KubeletPoolNodesBlocked', 'warning', 'max %s (kubelet_supervisor_pool_nodes{class="blocked"}) > 0' % byPool, '15m', '{{ $value }} nodes of KubeletPool {{ $labels.pool }} cannot do what they are assigned, or do not answer'),
          alert('KubeletPoolInDoubt', 'warning', 'max %s (kubelet_supervisor_pool_held) > 0' % byPool, '15m', 'KubeletPool {{ $labels.pool }} assigns nothing new, because of doubt'),
          alert('KubeletPoolNodesLate', 'info', 'max %s (kubelet_supervisor_pool_nodes{class="late"}) > 0' % byPool, '1d', '{{ $value }} nodes of KubeletPool {{ $labels.pool }} do not come to what the others run'),
          alert('KubeletPoolManualNodes', 'info', 'max %s (kubelet_supervisor_pool_nodes{class="manual"}) > 0' % byPool, '1d', '{{ $value }} nodes of KubeletPool {{ $labels.pool }} are assigned by hand'),
          alert('KubeletPoolControllerGone', 'warning', 'max %(by)s(last_over_time(kubelet_supervisor_pool_decide_seconds_count[1d])) unless max %(by)s(kubelet_supervisor_pool_decide_seconds_count)' % { by: by }, '10m', 'the controller of KubeletPools was there in the last day, and tells nothing any more'),
          // Every controller-runtime has the first name; the second one tells whose it is, and a replica has it whether it leads or not.
          alert('KubeletPoolNoLeader', 'warning', 'max %s(leader_election_master_status and on (job, instance) kubelet_supervisor_pool_decide_seconds_count) == 0' % by, '5m', 'controllers of KubeletPools run, and none of them leads'),
          alert('KubeletPoolPatchesFail', 'warning', 'sum %s(rate(kubelet_supervisor_pool_patches_total{code!~"200|409"}[15m])) > 0' % by, '15m', 'the API server refuses or does not answer PATCHes of Nodes'),
        ],
      },
    ],
  },
}
