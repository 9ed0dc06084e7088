package tensorboard

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/lazo-ml/lazo/loop"
)

// folderAndTag is where an entry is written. TensorBoard groups tags by the part before the first slash: the
// collection.
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

// metric is the tag of a stateful metric as that of a metric: for who looks at a chart, the two are one.
func metric(tag string) string {
	if rest, is := strings.CutPrefix(tag, string(loop.Stateful)+"/"); is {
		return string(loop.Metrics) + "/" + rest
	}
	return tag
}

// escape makes a name printable UTF-8 on one line (with another, TensorBoard would ignore the rest of the file), a
// different one for each name: bytes that are not UTF-8 and control characters are written as in a URL, %0A, and so is
// a percent sign that would be read as the beginning of one.
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

// isEscape reports whether a percent sign is followed by two hexadecimal digits.
func isEscape(s string) bool {
	const digits = "0123456789ABCDEF"
	return len(s) > 2 && strings.IndexByte(digits, s[1]) >= 0 && strings.IndexByte(digits, s[2]) >= 0
}
