// Package plugintest is what tests of the plugin and of its sub-packages share.
package plugintest

import (
	"os"
	"strings"
	"testing"
)

// Contains checks that a text has all parts, in this order.
func Contains(t *testing.T, text string, parts ...string) {
	t.Helper()
	rest := text
	for _, part := range parts {
		_, after, found := strings.Cut(rest, part)
		if !found {
			t.Fatalf("%q is missing, or not in this order, in\n%s", part, text)
		}
		rest = after
	}
}

// Golden compares with a file of testdata; UPDATE_GOLDEN=1 writes it.
func Golden(t *testing.T, file, got string) {
	t.Helper()
	file = "testdata/" + file
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil || string(want) != got {
		t.Errorf("%s (%v):\n%s\ngot:\n%s", file, err, want, got)
	}
}

// LayersText is a configuration of layers.
func LayersText(layers ...string) string {
	return "apiVersion: kubelet-supervisor.io/v1alpha1\nkind: KubeletConfigurationLayers\nlayers:\n" + strings.Join(layers, "\n") + "\n"
}

// WriteFile makes a file.
func WriteFile(t *testing.T, name, content string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
