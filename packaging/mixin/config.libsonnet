{
  _config:: {
    // Which series are ours, where others have the same names.
    kubeStateMetricsSelector: '',
    // The file that --metrics-file names, as node_exporter tells of it.
    textfileSelector: 'file=~".*kubelet_supervisor[.]prom"',
    // The label that tells nodes apart in the series of the supervisor: of node_exporter, or of an agent on the node.
    instanceLabel: 'instance',
    // The label of several clusters in one Prometheus, such as 'cluster'. Empty for one cluster.
    clusterLabel: '',
    // How many nodes that are not OK are many: this share, and at least this number.
    manyNodes: 0.05,
    manyNodesAtLeast: 2,
    // Where the pages stand. The anchor is the alert's name in lower case.
    runbook: 'https://github.com/kubelet-supervisor/kubelet-supervisor/blob/main/docs/operate/alerts.md#',
    dashboard: 'kubelet-supervisor',
  },
}
