package bounded

import (
	"sort"
	"strings"
)

// separator stands between the parts of a message.
const separator = "; "

// Parts joins the parts of a message, empty ones left out, into one line of printable characters of at most limit
// bytes. Where that is too short, the middle is cut: the longest parts between the first and the last lose their ends.
// The first part says what runs and the last one what to do, so they are cut only when nothing else is left, the last
// one last.
func Parts(limit int, parts ...string) string {
	var kept []string
	for _, part := range parts {
		if part = Line(part); part != "" {
			kept = append(kept, part)
		}
	}
	text := strings.Join(kept, separator)
	if len(text) > limit && len(kept) > 2 {
		if text = cutParts(kept, 1, len(kept)-1, limit); len(text) > limit {
			kept = []string{kept[0] + separator + Ellipsis, kept[len(kept)-1]}
		}
	}
	if len(text) > limit && len(kept) > 1 {
		text = cutParts(kept, 0, 1, limit)
	}
	return Text(text, limit)
}

// cutParts joins the parts, of which those from one index up to another are cut to one length, the greatest that fits.
func cutParts(parts []string, from, to, limit int) string {
	joined := func(level int) string {
		cut := append([]string(nil), parts...)
		for i := from; i < to; i++ {
			cut[i] = Text(cut[i], level)
		}
		return strings.Join(cut, separator)
	}
	least := limit - len(Ellipsis)
	return joined(limit - sort.Search(max(0, least), func(less int) bool { return len(joined(limit-less)) <= limit }))
}
