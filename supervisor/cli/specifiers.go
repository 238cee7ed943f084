//go:build linux

package cli

import (
	"path/filepath"
	"strconv"
	"strings"
)

// withoutOwnName replaces the specifiers that stand for the name and the file of a unit (systemd.unit(5), Specifiers), for a unit of
// another name. All others, %% among them, mean the same there.
func withoutOwnName(text, unit, file string) string {
	name := strings.TrimSuffix(unit, filepath.Ext(unit))
	prefix, instance, isInstance := strings.Cut(name, "@")
	last := prefix[strings.LastIndexByte(prefix, '-')+1:]
	path := prefix
	if isInstance {
		path = instance
	}
	values := map[byte]string{'n': unit, 'N': name, 'p': prefix, 'P': unescapedName(prefix), 'i': instance, 'I': unescapedName(instance),
		'j': last, 'J': unescapedName(last), 'f': "/" + unescapedName(path), 'y': file, 'Y': filepath.Dir(file)}
	var replaced strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] != '%' || i+1 == len(text) {
			replaced.WriteByte(text[i])
			continue
		}
		i++
		if value, is := values[text[i]]; is {
			replaced.WriteString(strings.NewReplacer(`\`, `\\`, "%", "%%").Replace(value))
			continue
		}
		replaced.WriteString(text[i-1 : i+1])
	}
	return replaced.String()
}

// unescapedName undoes systemd-escape(1).
func unescapedName(name string) string {
	var text strings.Builder
	for i := 0; i < len(name); i++ {
		if name[i] == '-' {
			text.WriteByte('/')
			continue
		}
		if strings.HasPrefix(name[i:], `\x`) && i+4 <= len(name) {
			if value, err := strconv.ParseUint(name[i+2:i+4], 16, 8); err == nil {
				text.WriteByte(byte(value))
				i += 3
				continue
			}
		}
		text.WriteByte(name[i])
	}
	return text.String()
}
