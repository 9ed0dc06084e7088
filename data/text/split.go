package text

import (
	"strings"
	"unicode/utf8"
)

var contractions = []string{"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"}

func classOf(r rune) property {
	if r < utf8.RuneSelf && r|0x20 >= 'a' && r|0x20 <= 'z' {
		return letter
	}
	of := characters().of(r)
	for _, class := range []property{letter, number, space} {
		if of&class != 0 {
			return class
		}
	}
	return 0
}

func run(s string, of property) (n int) {
	for n < len(s) {
		r, width := utf8.DecodeRuneInString(s[n:])
		if classOf(r) != of {
			break
		}
		n += width
	}
	return n
}

func piece(s string) int {
	if s[0] == '\'' {
		for _, c := range contractions {
			if strings.HasPrefix(s, c) {
				return len(c)
			}
		}
	}
	before := 0
	if s[0] == ' ' && len(s) > 1 {
		before = 1
	}
	r, _ := utf8.DecodeRuneInString(s[before:])
	if of := classOf(r); of != space {
		return before + run(s[before:], of)
	}
	n := run(s, space)
	if _, last := utf8.DecodeLastRuneInString(s[:n]); n < len(s) && n > last {
		return n - last
	}
	return n
}
