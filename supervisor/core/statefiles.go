package core

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
)

// The kubelet's CPU and memory managers keep a state file each, and a kubelet whose policy differs from the file's exits over it,
// at every start (rule 17). Such a file is set aside before the kubelet is started: recorded, then renamed, then started. It is never
// put back, because with other pods than it was written for it would kill them; the kubelet makes a new one.

// StateFiles is the care for state files before a start. Its zero value is that they were not looked at yet.
type StateFiles struct {
	Of       *Version                  // what will be started; nil = local
	InTheWay []kubeletconfig.StateFile // what has to be set aside for it
	Done     bool                      // they were cared for: the start does not look at them again
}

// Aside is a state file that is, or is about to be, set aside.
type Aside struct {
	kubeletconfig.StateFile
	BootID  string `json:"bootID,omitempty"`
	Content string `json:"content,omitempty"` // of the configuration that it was in the way of; empty = local
}

// learnInTheWay records the files that have to be set aside so that want can start.
func (host *Host) learnInTheWay(bootID string, files []kubeletconfig.StateFile, want *Version) {
	host.StateFiles = StateFiles{Of: want, InTheWay: files}
	for _, file := range files {
		aside := Aside{StateFile: file, BootID: bootID}
		if want != nil {
			aside.Content = want.Content
		}
		host.Asides = newest(without(host.Asides, func(a Aside) bool { return a.StateFile == file }), aside)
	}
}

// learnSetAside ends the care for state files before a start. A file that cannot be set aside does not keep the kubelet from being
// started: it says itself what it thinks of the file.
func learnSetAside(s *State, e FilesSetAside) {
	files := s.StateFiles.InTheWay
	s.Doing, s.StateFiles.InTheWay, s.StateFiles.Done = nil, nil, true
	if e.Err != nil {
		s.Exit, s.ExitCode = "a state file of another policy cannot be set aside: "+e.Err.Error(), noExitCode
		return
	}
	for _, file := range files {
		s.event(corev1.EventTypeNormal, "KubeletStateFileSetAside", describeStateFile(file))
	}
}

func describeStateFile(f kubeletconfig.StateFile) string {
	if f.Policy == "" {
		return fmt.Sprintf("%s, which the kubelet refused, is set aside; the kubelet makes a new one", f.Name)
	}
	return fmt.Sprintf("%s of policy %s is set aside; the kubelet makes a new one", f.Name, f.Policy)
}

// blamesStateFile reports whether the state file explains an exit, so that a start without the file may fix it: once for each configuration
// until it was healthy for a while, and not counted as a failure of the configuration.
func (host *Host) blamesStateFile(e ChildExited, gone Child, content string) bool {
	return e.StateFile != "" && !slices.Contains(host.WithoutStateFile, stateFileKey(e.StateFile, gone, content))
}

func stateFileKey(file string, gone Child, content string) string {
	return strings.Join([]string{file, content, gone.Kubelet.Binary, gone.Kubelet.Arguments, gone.Kubelet.Local}, " ")
}

// retryWithoutStateFile has the file set aside before the next start, which comes at once.
func retryWithoutStateFile(s *State, e ChildExited, gone Child, content string) {
	s.WithoutStateFile = newest(s.WithoutStateFile, stateFileKey(e.StateFile, gone, content))
	s.Exit, s.ExitCode = e.Words, e.Code
	s.learnInTheWay(s.BootID, []kubeletconfig.StateFile{{Name: e.StateFile}}, gone.Version)
}
