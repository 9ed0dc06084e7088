package tensorboard

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/lazo-ml/lazo/loop"
)

// TensorBoard groups tags by the part before the first slash.
func (s *settings) folderAndTag(e loop.Entry) (folder, tag string) {
	name, folder := e.Name, training
	for _, evaluation := range s.evaluations {
		rest, is := strings.CutSuffix(name, "_"+evaluation)
		if !is {
			rest, is = strings.CutPrefix(name, evaluation+"_")
		}
		if is && rest != "" {
			name, folder = rest, evaluation
			break
		}
	}
	return folder, strings.ReplaceAll(escape(string(e.Collection)), "/", "%2F") + "/" + escape(name)
}

// metric lets stateful metrics share a metric's chart.
func metric(tag string) string {
	if rest, is := strings.CutPrefix(tag, string(loop.Stateful)+"/"); is {
		return string(loop.Metrics) + "/" + rest
	}
	return tag
}

// escape encodes invalid UTF-8 and control characters as in a URL (%0A): TensorBoard ignores a file after such a name.
// It is injective: percent signs that look like an escape are encoded.
func escape(name string) string {
	var b strings.Builder
	for i, r := range name {
		_, size := utf8.DecodeRuneInString(name[i:])
		switch {
		case r == utf8.RuneError && size == 1, !unicode.IsPrint(r), r == '%' && isEscape(name[i:]):
			for _, c := range []byte(name[i : i+size]) {
				fmt.Fprintf(&b, "%%%02X", c)
			}
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

func isEscape(s string) bool {
	const digits = "0123456789ABCDEF"
	return len(s) > 2 && strings.IndexByte(digits, s[1]) >= 0 && strings.IndexByte(digits, s[2]) >= 0
}
