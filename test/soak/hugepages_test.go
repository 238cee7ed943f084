//go:build linux

package main

import "testing"

// The pod with huge pages may end only where a kubelet may have been started, while they were away, by something else than a change.
func TestWhenTheHugePodMayEnd(t *testing.T) {
	taking := step{part: pages, harm: taken}
	for name, test := range map[string]struct {
		steps []step
		may   bool
	}{
		"nothing":                       {nil, false},
		"they were taken":               {[]step{taking}, false},
		"and a good one came":           {[]step{taking, assigning("soak-b", fresh)}, false},
		"and one that waits":            {[]step{taking, assigning("soak-b", few)}, false},
		"and a reload":                  {[]step{taking, {supervisor: "HUP"}}, false},
		"and the kubelet was killed":    {[]step{taking, striking}, true},
		"and the supervisor":            {[]step{killing, taking}, true},
		"and it was rolled back":        {[]step{taking, assigning("soak-b", fatal)}, true},
		"killed, and they were there":   {[]step{striking, killing}, false},
		"a deadly one, they were there": {[]step{assigning("soak-b", fatal)}, false},
	} {
		if got := hugePodMayEnd(test.steps); got != test.may {
			t.Errorf("%s: it may end: %t", name, got)
		}
	}
}
