//go:build linux

package supervisor

import (
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	corev1 "k8s.io/api/core/v1"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/core"
)

// A messageID is the MESSAGE_ID of lines in the journal: a fixed 128-bit id for each kind of decision (docs/reference/contract.md). None is
// used again for another kind.
type messageID string

const (
	kubeletStarting  messageID = "f0862c4759ca4b15961201f52e295c59"
	kubeletStopping  messageID = "2b2a985d6459489aa61d3e68eb137814"
	kubeletHealthy   messageID = "5326173bad354e00a85985c0dce7a46e"
	kubeletExited    messageID = "063732de9d2c41439eb6d69e5ee35f62"
	kubeletHung      messageID = "6fee95a9e3754e4384053899b0fc3ee0"
	preflightDone    messageID = "77b58678657b461d9ba97f96bd5ccfc4"
	configChanged    messageID = "b113641e76574d4fbdd9182ef34eec31"
	configPromoted   messageID = "430193645f7a4fbb8e500779eeade78a"
	configRefused    messageID = "2269c39e92b44e2084c7afaa89837938"
	configHeld       messageID = "ea77ea4ac5534d54ac73e6cdc1fc8f61"
	podsLost         messageID = "3c4f5de9da884782820fa445d46b06d8"
	configRolledBack messageID = "d37d19d3c25840618d3fbe9540a606e5"
	configRejected   messageID = "0afe993c2ba04fefa3bae2fbca76e398"
	stateFileAside   messageID = "90b5ac0c7ed3438fb2121a47a50e3d88"
	limitsWritten    messageID = "5a0c0e5d1f6f4a0fb0a0e3f7c2a94d61"
	limitsChanged    messageID = "c1f2b7a86d0e4c41a8d8f0a6b4d39e17"
	assignmentLost   messageID = "90bd1d7aba7e4be8b6ccad4eacddfebf"
	syncFailed       messageID = "4d0fa7427e1340c18b4eb388a30fb233"
	stateUnwritable  messageID = "0d9c87370b0943638e3a372aa5e681cb"
	hostStopping     messageID = "8baf2a4ce64b452cb9b28514c183c5d2"
	reloadTaken      messageID = "1df48e929fed49f89af345e050358972"
	reloadDone       messageID = "873bd530c8aa4642acdae01aa59dfac6"
	reloadRefused    messageID = "3b0392ef2dce4c3e8c4b39f352463498"
	leaving          messageID = "c062da5f0e914723833dc3e46ef783d1"
	phaseEnded       messageID = "ff802d02ae87416ea90dd11f024c123b"
)

// eventMessages are those of the Node's events, by their reason.
var eventMessages = map[string]messageID{
	"KubeletConfigChanged":     configChanged,
	"KubeletConfigPromoted":    configPromoted,
	"KubeletConfigRefused":     configRefused,
	"KubeletConfigHeld":        configHeld,
	"KubeletConfigPodsLost":    podsLost,
	"KubeletConfigRolledBack":  configRolledBack,
	"KubeletConfigRejected":    configRejected,
	"KubeletStateFileSetAside": stateFileAside,
	"KubeletLimitsWrittenBack": limitsWritten,
	"KubeletLimitsChanged":     limitsChanged,
	"AssignmentLost":           assignmentLost,
}

// about is what every line of a decision is about, in fields.
type about struct {
	message messageID
	phase   string
	version *core.Version
	node    string
	ended   *core.EndedPhase // of a change, by what the line is about
}

// MarshalLogObject gives the fields their names (docs/reference/contract.md).
func (a about) MarshalLogObject(to zapcore.ObjectEncoder) error {
	to.AddString("messageID", string(a.message))
	if a.ended == nil {
		to.AddString("phase", a.phase)
	} else {
		to.AddString("phase", string(a.ended.Phase))
		to.AddInt64("durationUsec", a.ended.Took.Microseconds())
		to.AddString("changeTo", sourceName(a.ended.To))
	}
	to.AddString("configSource", sourceName(a.version)) // NAMESPACE/NAME/KEY; local
	if a.version != nil {
		to.AddString("configUID", string(a.version.Source.UID))
	}
	if a.node != "" {
		to.AddString("node", a.node)
	}
	return nil
}

func sourceName(v *core.Version) string {
	if v == nil {
		return nodev1.Local
	}
	return nodev1.FieldText(&v.Source)
}

func levelOf(e core.NodeEvent) zapcore.Level {
	if e.Type == corev1.EventTypeWarning {
		return zap.WarnLevel
	}
	return zap.InfoLevel
}
