package kubeletconfig

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/kubelet-supervisor/kubelet-supervisor/internal/bounded"
)

const (
	maxQuoted = 64  // bytes of one quoted text, the ellipsis included
	maxWords  = 512 // bytes of all of it
)

// documentFollows are phrases behind which decoders quote the whole document that they were given, with whatever quotes it has in it:
// apimachinery's "Object 'Kind' is missing in '…'" and json-iterator's "bigger context ...|…|..." (kubelets up to 1.22). Nothing behind
// them is kept.
var documentFollows = []string{"is missing in '", "error found in #"}

// Quote makes foreign words fit to be shown on the Node: one line of valid UTF-8, at most 512 bytes, with quoted texts cut to 64 bytes.
// Error messages quote paths and values, but also documents with secrets in them. A value that does not parse is masked, as [Mask] has it.
func Quote(words string) string {
	words = withoutValues(strings.ToValidUTF8(words, "\uFFFD"))
	for _, phrase := range documentFollows {
		if before, _, found := strings.Cut(words, phrase); found {
			words = before + strings.TrimRight(phrase, " '#") + " " + bounded.Ellipsis
		}
	}
	var kept strings.Builder
	for words != "" {
		open := openingQuote(words)
		kept.WriteString(words[:open])
		words = words[open:]
		if words == "" {
			break
		}
		end, closed := closingQuote(words)
		quoted, multiline := withoutUser(words[1:end]), strings.ContainsRune(words[:end], '\n')
		kept.WriteByte(words[0])
		kept.WriteString(strings.TrimRight(bounded.Text(quoted, maxQuoted), `\`))
		if closed {
			kept.WriteByte(words[0])
			end++
		}
		if multiline {
			// A quoted document: its own quotes make the end of it anybody's guess.
			break
		}
		words = words[end:]
	}
	return bounded.Text(strings.Join(strings.FieldsFunc(kept.String(), blank), " "), maxWords)
}

// quotedValue is a value that a parser quotes because it is malformed: what was written into the wrong field may be a secret.
var quotedValue = regexp.MustCompile(`(\b(?:duration|parsing|parsing time|cannot parse|extra text:) \\*")((?:[^"\\]|\\.)*)`)

// quotedUnit is the end of such a value. It is as plain as the duration that follows.
var quotedUnit = regexp.MustCompile(`(?s)(\bunknown unit \\*")(.*?)(?:(\\*" in duration \\*")([^"\\]*)|$)`)

// plainValue is one that was meant for such a field: a number, with a unit or not.
var plainValue = regexp.MustCompile(`^([-+]?\d{1,12}([.]\d{1,6})? ?[a-zA-Zµ]{0,7})?$`)

// userInWords is a URL with a user in it that nothing quotes: it ends at a space.
var userInWords = regexp.MustCompile(`://[^"\s]*@`)

// withoutValues masks users of URLs, and values that parsers refuse.
func withoutValues(words string) string {
	words = userInWords.ReplaceAllString(words, "://"+Mask+"@")
	words = quotedUnit.ReplaceAllStringFunc(words, func(found string) string {
		parts := quotedUnit.FindStringSubmatch(found)
		if parts[3] != "" && plainValue.MatchString(parts[4]) {
			return found
		}
		return parts[1] + Mask + parts[3] + parts[4]
	})
	return quotedValue.ReplaceAllStringFunc(words, func(found string) string {
		parts := quotedValue.FindStringSubmatch(found)
		if plainValue.MatchString(strings.TrimRight(parts[2], `\`)) {
			return found
		}
		return parts[1] + Mask
	})
}

// openingQuote gives the index of the first quotation mark, or the length. An apostrophe within a word (couldn't, kubelets') is none.
func openingQuote(text string) int {
	previous := ' '
	for i, r := range text {
		if r == '"' || r == '`' || r == '\'' && !wordly(previous) {
			return i
		}
		previous = r
	}
	return len(text)
}

// closingQuote gives the index of the mark that closes the quoted text which
// text begins with; without one the rest is quoted.
func closingQuote(text string) (end int, closed bool) {
	mark := text[0]
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case mark:
			if next, _ := utf8.DecodeRuneInString(text[i+1:]); mark != '\'' || !wordly(next) {
				return i, true
			}
		}
	}
	return len(text), false
}

func wordly(r rune) bool {
	return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r))
}

func blank(r rune) bool {
	return unicode.IsSpace(r) || unicode.IsControl(r) || r == '\u2028' || r == '\u2029'
}
