package plugin

import (
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// completeNodes gives a shell the names of nodes; nothing when the API server does not answer.
func (s *session) completeNodes(command *cobra.Command, arguments []string, begun string) ([]string, cobra.ShellCompDirective) {
	client, err := s.connect()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	list, err := client.CoreV1().Nodes().List(command.Context(), metav1.ListOptions{})
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	given := map[string]bool{}
	for _, name := range arguments {
		given[name] = true
	}
	var names []string
	for _, node := range list.Items {
		if strings.HasPrefix(node.Name, begun) && !given[node.Name] {
			names = append(names, node.Name)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
