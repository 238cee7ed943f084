//go:build linux

// Command cluster brings up a cluster of package cluster to play with: "up NAME" until Ctrl-C, "down NAME" for what a killed
// one left. KUBELET_SUPERVISOR_PARTS names the parts (make parts).
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/cluster"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "cluster:", err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	if len(arguments) != 2 {
		return errors.New("usage: cluster up NAME | cluster down NAME")
	}
	switch arguments[0] {
	case "up":
		return up(arguments[1])
	case "down":
		return cluster.Clean(arguments[1])
	default:
		return fmt.Errorf("%q: say up or down", arguments[0])
	}
}

func up(name string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	c, err := cluster.Up(ctx, cluster.Options{Name: name, APIServer: os.Getenv("APISERVER"), Log: os.Stdout})
	if err != nil {
		return err
	}
	fmt.Printf("kubectl:  %s\n", strings.Join(c.KubectlArguments(), " "))
	fmt.Printf("kubelet:  %s\n", strings.Join(c.Command(c.KubeletArguments()[0], c.KubeletArguments()[1:]...).Args, " "))
	fmt.Println("Ctrl-C takes it down.")
	<-ctx.Done()
	return c.Down()
}
