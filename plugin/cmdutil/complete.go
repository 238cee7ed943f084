package cmdutil

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/document"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/view"
)

// completeTime limits how long a shell waits for completions.
const completeTime = 3 * time.Second

// A completion returns the words that can follow. It is not from k8s.io/kubectl/pkg/util/completion, because that
// package links all of kubectl get.
type completion = func(command *cobra.Command, arguments []string, begun string) ([]string, cobra.ShellCompDirective)

// CompleteNodes returns the names of nodes, or nothing if the API server does not answer.
func (f *Factory) CompleteNodes(command *cobra.Command, arguments []string, begun string) ([]string, cobra.ShellCompDirective) {
	given := map[string]bool{}
	for _, name := range arguments {
		given[name] = true
	}
	var names []string
	for _, node := range f.nodesToComplete(command) {
		if strings.HasPrefix(node.Name, begun) && !given[node.Name] {
			names = append(names, node.Name)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// CompletePools returns the names of pools.
func (f *Factory) CompletePools(command *cobra.Command, arguments []string, begun string) ([]string, cobra.ShellCompDirective) {
	var names []string
	f.complete(command, func(ctx context.Context, client kubernetes.Interface) {
		pools, _ := f.ListPools(ctx, client)
		for _, p := range pools {
			if strings.HasPrefix(p.Name, begun) && len(arguments) == 0 {
				names = append(names, p.Name)
			}
		}
	})
	return names, cobra.ShellCompDirectiveNoFileComp
}

// completeSelector returns the labels of nodes as KEY=VALUE, for the last part of a selector.
func (f *Factory) completeSelector(command *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
	before := begun[:strings.LastIndexByte(begun, ',')+1]
	found := map[string]bool{}
	for _, node := range f.nodesToComplete(command) {
		for key, value := range node.Labels {
			if word := before + key + "=" + value; strings.HasPrefix(word, begun) {
				found[word] = true
			}
		}
	}
	return document.SortedKeys(found), cobra.ShellCompDirectiveNoFileComp
}

// completeConfigs returns the pushed configurations as NAMESPACE/NAME.
func (f *Factory) completeConfigs(command *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
	var names []string
	f.complete(command, func(ctx context.Context, client kubernetes.Interface) {
		list, err := client.CoreV1().ConfigMaps(f.Namespace()).List(ctx, metav1.ListOptions{LabelSelector: document.PurposeLabel + "=" + document.PurposeConfiguration})
		if err != nil {
			return
		}
		for _, c := range list.Items {
			if name := c.Namespace + "/" + c.Name; strings.HasPrefix(name, begun) {
				names = append(names, name)
			}
		}
	})
	return names, cobra.ShellCompDirectiveNoFileComp
}

func (f *Factory) nodesToComplete(command *cobra.Command) (nodes []corev1.Node) {
	f.complete(command, func(ctx context.Context, client kubernetes.Interface) {
		nodes, _, _ = view.ListNodes(ctx, client, metav1.ListOptions{})
	})
	return nodes
}

func (f *Factory) complete(command *cobra.Command, ask func(ctx context.Context, client kubernetes.Interface)) {
	client, err := f.Connect()
	if err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(command.Context(), completeTime)
	defer cancel()
	ask(ctx, client)
}

// CompleteFlags registers the completion of flag values for every command that has such a flag.
func (f *Factory) CompleteFlags(root *cobra.Command) {
	formats := []string{"json", "yaml", "name", "jsonpath=", "go-template="}
	ways := map[string]completion{
		"selector": f.completeSelector,
		"config":   f.completeConfigs,
		"edit":     f.CompleteNodes,
		"against":  f.CompleteNodes,
		"dry-run":  cobra.FixedCompletions([]string{"none", "client", "server"}, cobra.ShellCompDirectiveNoFileComp),
		"until":    cobra.FixedCompletions([]string{"active", "good"}, cobra.ShellCompDirectiveNoFileComp),
		"output":   cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp),
	}
	var visit func(command *cobra.Command)
	visit = func(command *cobra.Command) {
		for name, way := range ways {
			if command.Flags().Lookup(name) != nil {
				_ = command.RegisterFlagCompletionFunc(name, way) // fails for a flag that the command does not have
			}
		}
		for _, below := range command.Commands() {
			visit(below)
		}
	}
	visit(root)
}
