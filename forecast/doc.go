// Package forecast predicts which running pods a change of the kubelet's configuration would kill or restart.
//
// A kubelet that starts admits every pod again, including running ones, and kills what it refuses. [Of] does the same with the facts of
// a node: twice, for the configuration that runs and for the one that is to run. What only the second one refuses is the change's doing.
//
// It promises:
//
//   - It is pure: no clock, disk, process or API. The same facts give the same forecast.
//   - It does not guess. What does not follow from the facts is [Forecast.Unknown] with its reason, and a loss that
//     depends on what the facts do not
//     can know beforehand, as the order of pods that were created in the same second, is not certain.
//   - Its reasons are those of the kubelet, if the kubelet has one.
//
// It predicts the result of the change, not always its time: a kubelet that hears of its own Node too late, from a
// slow API server, admits pods to the room that there was, and refuses them at its next start.
//
// What it knows of the kubelet was read in Kubernetes 1.36.3 and is compared with a real kubelet's verdicts in test/e2e.
package forecast
