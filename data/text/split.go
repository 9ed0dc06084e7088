package text

import (
	"strings"
	"unicode/utf8"
)

// contractions are tried in this order.
var contractions = []string{"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"}

// classOf returns which of letters, numbers and spaces a character is, or 0.
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
		r, width := utf8.DecodeRuneInString(s[n:]) // invalid UTF-8 is of no class
		if classOf(r) != of {
			break
		}
		n += width
	}
	return n
}

// piece returns the length in bytes of the first piece of s, which must not be empty. No token crosses the border of
// two pieces. It matches as GPT-2's regular expression:
//
//	's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
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
		return n - last // the last belongs to the next piece
	}
	return n
}
