package kubeletconfig

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestQuote(t *testing.T) {
	long := strings.Repeat("l", 100)
	for name, test := range map[string]struct{ words, want string }{
		"as it is":                         {"invalid configuration: maxPods (--max-pods) -1 must not be negative", "invalid configuration: maxPods (--max-pods) -1 must not be negative"},
		"one line":                         {" a\n\tb \r\n c\u2028d\x00", "a b c d"},
		"valid UTF-8":                      {"a\xff\xfeb é", "a\uFFFDb é"},
		"short quotes stay":                {"field \"a\" of 'b' and `c`", "field \"a\" of 'b' and `c`"},
		"64 bytes stay":                    {`"` + long[:64] + `" x`, `"` + long[:64] + `" x`},
		"a long quote is cut":              {`open "` + long + `": no such file`, `open "` + long[:61] + `…": no such file`},
		"in single marks":                  {"open '" + long + "': x", "open '" + long[:61] + "…': x"},
		"in backticks":                     {"open `" + long + "`: x", "open `" + long[:61] + "…`: x"},
		"cut at the border of a character": {`"` + strings.Repeat("é", 50) + `"`, `"` + strings.Repeat("é", 30) + `…"`},
		"an escaped mark does not close":   {`err="a \"b\" ` + long + `" k`, `err="a \"b\" ` + long[:53] + `…" k`},
		"no mark to close":                 {`it said "` + long, `it said "` + long[:61] + `…`},
		"apostrophes are no quotes":        {"couldn't and kubelets' " + long + " isn't it", "couldn't and kubelets' " + long + " isn't it"},
		"a quoted document ends all":       {"in 'a: 1\nb: 'x'\ns3cret: y\n'", "in 'a: 1 b: 'x'"},
		"what the kubelet quotes whole":    {"failed to decode: Object 'Kind' is missing in '{\"a\": 'b', s3cret: 1}'", "failed to decode: Object 'Kind' is missing in …"},
		"what older kubelets quote":        {"error found in #10 byte of ...|\"s3cret\"|..., bigger context ...|s3cret|...", "error found in …"},
		"a user in a URL":                  {`time: invalid duration "tcp://me:s3cret@host"`, `time: invalid duration "<masked>"`},
		"a user in another place":          {`dial tcp://me:s3cret@host/x: no`, `dial tcp://<masked>@host/x: no`},
		"what is no duration":              {`syncFrequency: time: unknown unit "x" in duration "s3cret \"x"; correct it`, `syncFrequency: time: unknown unit "<masked>" in duration "<masked>"; correct it`},
		"as a log quotes it":               {`err="time: invalid duration \"s3cret\" of it"`, `err="time: invalid duration \"<masked>"`},
		"what was meant for one":           {`time: missing unit in duration "60" and "1 minute" of duration "1 minute"`, `time: missing unit in duration "60" and "1 minute" of duration "1 minute"`},
		"the unit of what is none":         {`time: unknown unit "SEKRETabc" in duration "7SEKRETabc"`, `time: unknown unit "<masked>" in duration "<masked>"`},
		"its last unit":                    {`time: unknown unit "SEKRET" in duration "1h7SEKRET"`, `time: unknown unit "<masked>" in duration "<masked>"`},
		"a quote in the unit":              {`time: unknown unit "c \"SEKRET" in duration "7c \"SEKRET"`, `time: unknown unit "<masked>" in duration "<masked>"`},
		"a unit without an end":            {`time: unknown unit "SEKRET`, `time: unknown unit "<masked>`},
		"the unit as a log quotes it":      {`err="time: unknown unit \"SEKRETabc\" in duration \"7SEKRETabc\""`, `err="time: unknown unit \"<masked>\" in duration \"<masked>"`},
		"the unit of what was meant":       {`time: unknown unit " minute" in duration "1 minute"`, `time: unknown unit " minute" in duration "1 minute"`},
		"what is no time":                  {`parsing time "SEKRET" as "2006-01-02T15:04:05Z07:00": cannot parse "SEKRET" as "2006"`, `parsing time "<masked>" as "2006-01-02T15:04:05Z07:00": cannot parse "<masked>" as "2006"`},
		"what follows a time":              {`parsing time "2026-01-01T00:00:00ZSEKRET": extra text: "SEKRET"`, `parsing time "<masked>": extra text: "<masked>"`},
		"a slash in a password":            {`dial "tcp://me:SEK/RET@host/x", and tcp://me:SEK/RET@host/y`, `dial "tcp://<masked>@host/x", and tcp://<masked>@host/y`},
		"a space in a password":            {`dial 'tcp://me:SEK RE@T@host/x' of "me@here"`, `dial 'tcp://<masked>@host/x' of "me@here"`},
		"what is no number":                {`strconv.ParseInt: parsing "s3cret": invalid syntax`, `strconv.ParseInt: parsing "<masked>": invalid syntax`},
		"not without end":                  {strings.Repeat("w ", 400), strings.TrimSpace(strings.Repeat("w ", 255))[:509] + "…"},
		"nothing":                          {"", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Quote(test.words); got != test.want {
				t.Errorf("Quote(%q)\n got %q\nwant %q", test.words, got, test.want)
			}
		})
	}
}

func checkQuoted(t *testing.T, words string) {
	t.Helper()
	if !utf8.ValidString(words) || len(words) > maxWords || strings.ContainsFunc(words, unicode.IsControl) {
		t.Fatalf("not fit to be shown: %q", words)
	}
}

func FuzzQuote(f *testing.F) {
	f.Add(`"a\`, "s")
	f.Add("a: 'b'\nc: \"d\"", "'")
	f.Fuzz(func(t *testing.T, words, document string) {
		checkQuoted(t, Quote(words))
		if strings.ContainsAny(words, "\"'`\\") {
			return
		}
		const secret = "S3CRET"
		// However a document quotes, what lies far inside of it does not come out.
		document = strings.ReplaceAll(document, secret, "") + strings.Repeat(".", maxQuoted) + secret
		for _, quoting := range []string{words + " 'Kind' is missing in '" + document + "'", words + " '" + strings.ReplaceAll(document, "'", "") + "'"} {
			if got := Quote(quoting); strings.Contains(got, secret) && !strings.Contains(words, secret) {
				t.Fatalf("Quote(%q) lets a secret out: %q", quoting, got)
			}
		}
	})
}
