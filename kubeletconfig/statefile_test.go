package kubeletconfig

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestForeignStateFiles(t *testing.T) {
	cpu := func(policy string) StateFile { return StateFile{Name: "cpu_manager_state", Policy: policy} }
	memory := func(policy string) StateFile { return StateFile{Name: "memory_manager_state", Policy: policy} }
	for name, test := range map[string]struct {
		cpu, memory string // the files; empty = there is none
		flags       []string
		file, local string // the file and a drop-in over it
		want        []StateFile
	}{
		"nothing there":                     {},
		"the defaults, and what they wrote": {cpu: `{"policyName":"none","defaultCpuSet":""}`, memory: `{"policyName":"None"}`},
		"none to static":                    {cpu: `{"policyName":"none"}`, file: "cpuManagerPolicy: static\n", want: []StateFile{cpu("none")}},
		"static to none":                    {cpu: `{"policyName":"static"}`, want: []StateFile{cpu("static")}},
		"None to Static":                    {memory: `{"policyName":"None"}`, file: "memoryManagerPolicy: Static\n", want: []StateFile{memory("None")}},
		"both":                              {cpu: `{"policyName":"static"}`, memory: `{"policyName":"Static"}`, want: []StateFile{cpu("static"), memory("Static")}},
		"as the drop-in says":               {cpu: `{"policyName":"static"}`, file: "cpuManagerPolicy: none\n", local: "cpuManagerPolicy: static\n"},
		"as the flag says":                  {cpu: `{"policyName":"none"}`, flags: []string{"--cpu_manager_policy", "none"}, file: "cpuManagerPolicy: static\n"},
		"as the memory flag says":           {memory: `{"policyName":"Static"}`, flags: []string{"--memory-manager-policy=Static"}},
		"of 1.37: the data count":           {cpu: `{"policyName":"none","data":"{\"policyName\":\"static\",\"x\":1}","checksum":1}`, want: []StateFile{cpu("static")}},
		"data that are something else":      {cpu: `{"policyName":"static","data":"no JSON"}`, want: []StateFile{cpu("static")}},
		"a file that cannot be read":        {cpu: `{"policyName":"static"}`, file: "\t: no YAML\n"},
		"a drop-in that cannot be read":     {cpu: `{"policyName":"static"}`, local: "\t: no YAML\n"},
		"no JSON: the kubelet judges":       {cpu: `{"policyName":`},
		"no policy: the kubelet judges":     {cpu: `{}`},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			write := func(name, content string) string {
				path := filepath.Join(folder, name)
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
				return path
			}
			for file, content := range map[string]string{"root/cpu_manager_state": test.cpu, "root/memory_manager_state": test.memory} {
				if content != "" {
					write(file, content)
				}
			}
			const head = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
			write("drop-ins/10.conf", head+test.local)
			arguments := append([]string{"--root-dir=" + filepath.Join(folder, "root"), "--config-dir=" + filepath.Join(folder, "drop-ins")}, test.flags...)
			if got := ForeignStateFiles(arguments, ReadEffective(arguments, write("kubelet.yaml", head+test.file))); !slices.Equal(got, test.want) {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

func TestBlamedStateFile(t *testing.T) {
	for words, want := range map[string]string{
		`Failed to start ContainerManager err="start cpu manager error: could not restore state from checkpoint: configured policy \"static\" differs from state checkpoint policy \"none\", please drain this node and delete the CPU manager checkpoint file \"/var/lib/kubelet/cpu_manager_state\" before restarting Kubelet"`: "cpu_manager_state",
		`Failed to start ContainerManager err="start cpu manager error: not all reserved cpus: \"0-1\" are present in defaultCpuSet: \"0\""`:                                                                                                                                                                                      "cpu_manager_state",
		`Failed to start ContainerManager err="start cpu manager error: some of strictly reserved cpus: \"0\" are present in defaultCpuSet: \"0-3\""`:                                                                                                                                                                             "cpu_manager_state",
		`Failed to start ContainerManager err="start cpu manager error: current set of available CPUs \"0-3\" doesn't match with CPUs in state \"0-1\""`:                                                                                                                                                                          "cpu_manager_state",
		`Failed to start ContainerManager err="start memory manager error: [memorymanager] the expected machine state is different from the real one"`:                                                                                                                                                                            "memory_manager_state",
		`Failed to start ContainerManager err="start memory manager error: could not restore state from checkpoint: [memorymanager] configured policy \"Static\" differs from state checkpoint policy"`:                                                                                                                           "memory_manager_state",
		`Failed to start ContainerManager err="start memory manager error: the total amount \"150Mi\" of type \"memory\" is not equal to the value \"160Mi\" determined by Node Allocatable feature"`:                                                                                                                             "",
		`Failed to start ContainerManager err="start cpu manager error: policy error"`:                                                                                                                                                                                                                                            "",
		`Failed to start ContainerManager err="Unit kubepods.slice already exists"`:                                                                                                                                                                                                                                               "",
		`exit code 1`: "",
	} {
		if got := BlamedStateFile([]byte("I1122 Starting\n" + words + "\nI1122 the end\n")); got != want {
			t.Errorf("%s: got %q, want %q", words, got, want)
		}
	}
}
