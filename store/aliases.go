//go:build linux

package store

import (
	"bytes"
	"fmt"

	yamlv2 "go.yaml.in/yaml/v2"
)

// expandedLimit is more than a file of fileLimit bytes can hold without YAML aliases.
const expandedLimit = 4 * fileLimit // bytes

// checkAliases refuses YAML whose aliases make far more of it than there is: the library bounds the nodes that they make, but not
// the length of the strings in them. Nothing that the store writes has an alias.
func checkAliases(content []byte) error {
	if !bytes.ContainsRune(content, '*') {
		return nil
	}
	var tree any
	if err := yamlv2.Unmarshal(content, &tree); err != nil {
		return nil // the decoder returns its own error
	}
	if expanded(tree, expandedLimit) < 0 {
		return fmt.Errorf("becomes larger than %d bytes when its YAML aliases are followed", expandedLimit)
	}
	return nil
}

// expanded returns what is left of the limit, in bytes, after the strings of the node.
func expanded(node any, left int) int {
	switch node := node.(type) {
	case string:
		left -= len(node)
	case []any:
		for _, value := range node {
			left = expanded(value, left)
		}
	case map[any]any:
		for key, value := range node {
			left = expanded(value, expanded(key, left))
		}
	}
	return left
}
