// Recording rules: what many people ask for, and what would be dear to ask for over weeks.
{
  local config = $._config,
  local by = if config.clusterLabel == '' then '' else 'by (%s) ' % config.clusterLabel,
  local nodes(status) =
    'kube_node_status_condition{%scondition="KubeletConfigOk",status="%s"}' % [if config.kubeStateMetricsSelector == '' then '' else config.kubeStateMetricsSelector + ',', status],

  prometheusRules+:: {
    groups+: [{
      name: 'kubelet-supervisor.rules',
      rules: [
        { record: 'cluster:kubelet_supervisor_nodes:count', expr: 'count %s(%s)' % [by, nodes('true')] },
        { record: 'cluster:kubelet_supervisor_nodes_not_ok:count', expr: 'sum %s(%s) + sum %s(%s)' % [by, nodes('false'), by, nodes('unknown')] },
        { record: 'cluster:kubelet_supervisor_unhealthy_seconds:increase1h', expr: 'sum %s(increase(kubelet_supervisor_kubelet_unhealthy_seconds_total[1h]))' % by },
        { record: 'cluster:kubelet_supervisor_rollbacks:increase1h', expr: 'sum %s(increase(kubelet_supervisor_rollbacks_total[1h]))' % by },
      ],
    }],
  },
}
