package config

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWarnings(t *testing.T) {
	for name, test := range map[string]struct {
		document string
		want     []string
	}{
		"fine":                    {header + "maxPods: 1\nfeatureGates: {Whatever: true}", nil},
		"an unknown field":        {header + "maxPodz: 1", []string{`field "maxPodz" is unknown to v0.37`}},
		"an unknown field below":  {header + "authentication: {x509: {clientCaFile: a}}", []string{`field "authentication.x509.clientCaFile" is unknown to v0.37`}},
		"twice in YAML":           {header + "maxPods: 1\nmaxPods: 2", []string{`field "maxPods" appears twice (line 4)`}},
		"twice in JSON":           {`{"kind":"KubeletConfiguration","maxPods":1,"maxPods":2}`, []string{`field "maxPods" appears twice`}},
		"a long name is cut":      {header + strings.Repeat("x", 100) + ": 1", []string{`field "` + strings.Repeat("x", 61) + `…" is unknown to v0.37`}},
		"does not decode":         {"[", nil},
		"a wrong type":            {header + "maxPods: many\nmaxPodz: 1", nil},
		"a field of many ages":    {header + "dynamicConfigDir: /d", []string{`field "dynamicConfigDir" is unknown to v0.37`}},
		"twelve are told as nine": {header + unknownFields(12), append(unknownWarnings(9), "and 3 more")},
		"ten are told as ten":     {header + unknownFields(10), unknownWarnings(10)},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, Warnings(map[string]string{"k": test.document}, "k")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func unknownFields(count int) string {
	var fields strings.Builder
	for i := range count {
		fmt.Fprintf(&fields, "unknown%02d: 1\n", i)
	}
	return fields.String()
}

func unknownWarnings(count int) (warnings []string) {
	for i := range count {
		warnings = append(warnings, fmt.Sprintf(`field "unknown%02d" is unknown to v0.37`, i))
	}
	return warnings
}
