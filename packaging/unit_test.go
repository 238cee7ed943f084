package packaging_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const controllerUnit = "kubelet-supervisor-controller.service"

// worstExposure, in tenths, is what systemd-analyze may find at most. A service with the network and without a list of addresses has 1.1 at the
// least with systemd 252; there is room for what later versions look at. Until 4.9 it is "OK".
const worstExposure = "15"

// The controller needs the network and nothing of its host, and systemd sees to that.
func TestTheControllersUnitIsHardened(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("controller", controllerUnit))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"DynamicUser=yes", "CapabilityBoundingSet=", "NoNewPrivileges=yes", "PrivateDevices=yes", "PrivateUsers=yes", "ProtectProc=invisible",
		"ProtectSystem=strict", "RestrictNamespaces=yes", "SystemCallArchitectures=native", "SystemCallErrorNumber=EPERM", "SystemCallFilter=@system-service",
		"SystemCallFilter=~@privileged @resources", "UMask=0077"} {
		if !strings.Contains(string(text), "\n"+line+"\n") {
			t.Errorf("it does not say %s", line)
		}
	}
}

// systemd's own judgement, where there is a systemd that judges a file.
func TestTheExposureOfTheControllersUnit(t *testing.T) {
	program, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("NOT RUN: systemd-analyze is not installed, so nobody looks at the unit's exposure")
	}
	if help, err := exec.CommandContext(t.Context(), program, "--help").CombinedOutput(); err != nil || !strings.Contains(string(help), "--offline") {
		t.Skipf("NOT RUN: this systemd-analyze, before 250, judges no file (%v)", err)
	}
	text, err := os.ReadFile(filepath.Join("controller", controllerUnit))
	if err != nil {
		t.Fatal(err)
	}
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	unit := filepath.Join(t.TempDir(), controllerUnit) // the program of the real one is not installed here
	if err := os.WriteFile(unit, []byte(strings.Replace(string(text), "/usr/libexec/kubelet-supervisor-controller", own, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	output, err := exec.CommandContext(t.Context(), program, "security", "--offline=true", "--no-pager", "--threshold="+worstExposure, unit).CombinedOutput()
	if err != nil {
		t.Errorf("%v: it is more exposed than %s tenths\n%s", err, worstExposure, output)
	}
	if strings.Contains(string(output), "Unknown key") {
		t.Errorf("systemd does not know all of it:\n%s", output)
	}
}
