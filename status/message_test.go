package status

import (
	"strings"
	"testing"
)

func TestMessage(t *testing.T) {
	long := strings.Repeat("é", 2000)
	for name, c := range map[string]struct {
		parts  []string
		expect string
	}{
		"nothing":               {nil, ""},
		"one":                   {[]string{"using current (default)"}, "using current (default)"},
		"several, some empty":   {[]string{"a", "", " ", "b"}, "a; b"},
		"lines and tabs":        {[]string{"a\n\tb\r\n", "c\x00d"}, "a b; c d"},
		"line separators, bidi": {[]string{"a\u2028b\u202ec"}, "a b c"},
		"not UTF-8":             {[]string{"a\xffb"}, "a\uFFFDb"},
		"too long":              {[]string{strings.Repeat("x", 1025)}, strings.Repeat("x", 1021) + "…"},
		"just fits":             {[]string{strings.Repeat("x", 1024)}, strings.Repeat("x", 1024)},
		"the longest part is cut": {[]string{"using current (default)", long, "assign another"},
			"using current (default); " + strings.Repeat("é", 490) + "…; assign another"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Message(c.parts...); got != c.expect {
				t.Errorf("got %q (%d bytes)", got, len(got))
			}
		})
	}
}
