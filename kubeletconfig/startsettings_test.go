package kubeletconfig

import "testing"

func TestStartSettings(t *testing.T) {
	for name, row := range map[string]struct {
		tree map[string]any
		want StartSettings
	}{
		"the defaults":        {map[string]any{}, StartSettings{FailSwapOn: true}},
		"set":                 {map[string]any{"failSwapOn": false, "rotateCertificates": true, "containerRuntimeEndpoint": "unix:///r"}, StartSettings{false, true, "unix:///r"}},
		"true, and said":      {map[string]any{"failSwapOn": true}, StartSettings{FailSwapOn: true}},
		"of another type":     {map[string]any{"failSwapOn": "no", "rotateCertificates": 1}, StartSettings{FailSwapOn: true}},
		"null is the default": {map[string]any{"failSwapOn": nil}, StartSettings{FailSwapOn: true}},
	} {
		if got, known := ToldEffective(row.tree, nil, "", "/none").StartSettings(); !known || got != row.want {
			t.Errorf("%s: %+v, %t", name, got, known)
		}
	}
	if _, known := (Effective{}).StartSettings(); known {
		t.Error("an unknown configuration has settings")
	}
	if got, known := ReadEffective([]string{"--fail-swap-on=false", "--rotate-certificates"}, "").StartSettings(); !known || got.FailSwapOn || !got.RotateCertificates {
		t.Errorf("by flags: %+v, %t", got, known)
	}
}
