//go:build linux

// The agent runs, inside a virtual machine, the lines of shell that a test asks for by a port of the machine's, and answers with what they
// said. It says the boot id first, so that the test sees a reboot. `agent pause` is for a machine that is to be snapshotted.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// portName is what QEMU was told to call the port.
const portName = "agent"

// A request is one line of JSON, and so is the answer.
type request struct {
	ID      int    `json:"id"`
	Command string `json:"command"`
	Input   string `json:"input"`
}

type answer struct {
	ID     int    `json:"id,omitempty"`
	Boot   string `json:"boot,omitempty"`   // in the first line, which answers nothing
	Paused bool   `json:"paused,omitempty"` // in the only line of pause
	Code   int    `json:"code"`
	Output []byte `json:"output,omitempty"` // in base64, as encoding/json does it
}

func main() {
	does := serve
	if len(os.Args) == 2 && os.Args[1] == "pause" {
		does = pause
	}
	if err := does(); err != nil {
		fmt.Fprintln(os.Stderr, "agent:", err)
		os.Exit(1)
	}
}

func serve() error {
	port, err := open()
	if err != nil {
		return err
	}
	defer port.Close()
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return err
	}
	var turn sync.Mutex
	say := func(a answer) error {
		line, err := json.Marshal(a)
		if err != nil {
			return err
		}
		turn.Lock()
		defer turn.Unlock()
		_, err = port.Write(append(line, '\n'))
		return err
	}
	// A line that another boot did not end is ended.
	if _, err := io.WriteString(port, "\n"); err != nil {
		return err
	}
	if err := say(answer{Boot: strings.TrimSpace(string(boot))}); err != nil {
		return err
	}
	reader := bufio.NewReader(port)
	for {
		line, err := reader.ReadBytes('\n')
		if errors.Is(err, io.EOF) { // nobody is connected outside
			time.Sleep(100 * time.Millisecond)
			continue
		}
		if err != nil {
			return err
		}
		var asked request
		if json.Unmarshal(line, &asked) != nil {
			continue // the end of a line that was meant for another boot
		}
		go func() { _ = say(run(asked)) }() // lives as long as what was asked; its end is the machine's at the latest
	}
}

func run(asked request) answer {
	command := exec.Command("/bin/sh", "-c", asked.Command)
	command.Env = []string{"PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8", "SYSTEMD_PAGER=", "SYSTEMD_COLORS=0",
		"DEBIAN_FRONTEND=noninteractive"}
	command.Stdin = strings.NewReader(asked.Input)
	// What it leaves running in the background does not hold the answer up.
	command.WaitDelay = time.Second
	output, err := command.CombinedOutput()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		return answer{ID: asked.ID, Code: exit.ExitCode(), Output: output}
	case err != nil && !errors.Is(err, exec.ErrWaitDelay):
		return answer{ID: asked.ID, Code: -1, Output: []byte(err.Error())}
	}
	return answer{ID: asked.ID, Output: output}
}

// open gives the port, which the kernel names by a number.
func open() (*os.File, error) {
	names, err := filepath.Glob("/sys/class/virtio-ports/*/name")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if content, err := os.ReadFile(name); err == nil && strings.TrimSpace(string(content)) == portName {
			return os.OpenFile(filepath.Join("/dev", filepath.Base(filepath.Dir(name))), os.O_RDWR, 0)
		}
	}
	return nil, fmt.Errorf("none of the ports %q is named %q", names, portName)
}
