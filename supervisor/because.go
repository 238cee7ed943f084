//go:build linux

package supervisor

import "github.com/kubelet-supervisor/kubelet-supervisor/decide"

// wordOf is the word of an event in the log, in the field because. The log has it for people; the name of a Go type may change.
func wordOf(event decide.Event) string {
	switch event.(type) {
	case decide.Booted:
		return "Booted"
	case decide.Assigned:
		return "Assigned"
	case decide.Cleared:
		return "Cleared"
	case decide.SyncFailed:
		return "SyncFailed"
	case decide.NodeGone:
		return "NodeGone"
	case decide.Retry:
		return "Retry"
	case decide.Saved:
		return "Saved"
	case decide.Proved:
		return "Proved"
	case decide.Foreseen:
		return "Foreseen"
	case decide.Asked:
		return "Asked"
	case decide.ObstaclesSeen:
		return "ObstaclesSeen"
	case decide.Consented:
		return "Consented"
	case decide.PodsLost:
		return "PodsLost"
	case decide.Reported:
		return "Reported"
	case decide.ParkEnded:
		return "ParkEnded"
	case decide.Unparked:
		return "Unparked"
	case decide.Merged:
		return "Merged"
	case decide.Blamed:
		return "Blamed"
	case decide.Started:
		return "Started"
	case decide.Healthy:
		return "Healthy"
	case decide.Unhealthy:
		return "Unhealthy"
	case decide.NotInUse:
		return "NotInUse"
	case decide.PortSeen:
		return "PortSeen"
	case decide.Hung:
		return "Hung"
	case decide.ChildExited:
		return "ChildExited"
	case decide.LeaseSeen:
		return "LeaseSeen"
	case decide.ConditionsSeen:
		return "ConditionsSeen"
	case decide.LocalChanged:
		return "LocalChanged"
	case decide.UnitSeen:
		return "UnitSeen"
	case decide.FilesSetAside:
		return "FilesSetAside"
	case decide.LimitsWrittenBack:
		return "LimitsWrittenBack"
	case decide.ClusterSeen:
		return "ClusterSeen"
	case decide.Ticked:
		return "Ticked"
	case decide.HostStopping:
		return "HostStopping"
	case decide.StopAsked:
		return "StopAsked"
	}
	return ""
}
