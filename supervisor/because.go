//go:build linux

package supervisor

import "github.com/kubelet-supervisor/kubelet-supervisor/supervisor/core"

// wordOf returns the name of an event for the field because of the log. The log has it for people; the name of a Go type may change.
func wordOf(event core.Event) string {
	switch event.(type) {
	case core.Booted:
		return "Booted"
	case core.Assigned:
		return "Assigned"
	case core.Cleared:
		return "Cleared"
	case core.SyncFailed:
		return "SyncFailed"
	case core.NodeGone:
		return "NodeGone"
	case core.Retry:
		return "Retry"
	case core.Saved:
		return "Saved"
	case core.Proved:
		return "Proved"
	case core.Foreseen:
		return "Foreseen"
	case core.Asked:
		return "Asked"
	case core.ObstaclesSeen:
		return "ObstaclesSeen"
	case core.Consented:
		return "Consented"
	case core.PodsLost:
		return "PodsLost"
	case core.Reported:
		return "Reported"
	case core.ParkEnded:
		return "ParkEnded"
	case core.Unparked:
		return "Unparked"
	case core.Merged:
		return "Merged"
	case core.Blamed:
		return "Blamed"
	case core.Started:
		return "Started"
	case core.Healthy:
		return "Healthy"
	case core.Unhealthy:
		return "Unhealthy"
	case core.NotInUse:
		return "NotInUse"
	case core.PortSeen:
		return "PortSeen"
	case core.Hung:
		return "Hung"
	case core.ChildExited:
		return "ChildExited"
	case core.LeaseSeen:
		return "LeaseSeen"
	case core.ConditionsSeen:
		return "ConditionsSeen"
	case core.LocalChanged:
		return "LocalChanged"
	case core.UnitSeen:
		return "UnitSeen"
	case core.FilesSetAside:
		return "FilesSetAside"
	case core.LimitsWrittenBack:
		return "LimitsWrittenBack"
	case core.ClusterSeen:
		return "ClusterSeen"
	case core.Ticked:
		return "Ticked"
	case core.HostStopping:
		return "HostStopping"
	case core.StopAsked:
		return "StopAsked"
	}
	return ""
}
