package text

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// contractions are tried in this order.
var contractions = []string{"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"}

// Added in Unicode 16; Go's tables have Unicode 15. Tokens must not change with Go's version.
const newer = 0x1c89

var (
	newLetters = &unicode.RangeTable{
		R16: []unicode.Range16{{0x1c89, 0x1c8a, 1}, {0xa7cb, 0xa7cd, 1}, {0xa7da, 0xa7dc, 1}},
		R32: []unicode.Range32{{0x105c0, 0x105f3, 1}, {0x10d4a, 0x10d65, 1}, {0x10d6f, 0x10d85, 1}, {0x10ec2, 0x10ec4, 1}, {0x11380, 0x11389, 1},
			{0x1138b, 0x1138b, 1}, {0x1138e, 0x1138e, 1}, {0x11390, 0x113b5, 1}, {0x113b7, 0x113b7, 1}, {0x113d1, 0x113d1, 1}, {0x113d3, 0x113d3, 1},
			{0x11bc0, 0x11be0, 1}, {0x13460, 0x143fa, 1}, {0x16100, 0x1611d, 1}, {0x16d40, 0x16d6c, 1}, {0x18cff, 0x18cff, 1},
			{0x1e5d0, 0x1e5ed, 1}, {0x1e5f0, 0x1e5f0, 1}, {0x2ebf0, 0x2ee5d, 1}},
	}
	newNumbers = &unicode.RangeTable{
		R32: []unicode.Range32{{0x10d40, 0x10d49, 1}, {0x116d0, 0x116e3, 1}, {0x11bf0, 0x11bf9, 1}, {0x16130, 0x16139, 1}, {0x16d70, 0x16d79, 1},
			{0x1ccf0, 0x1ccf9, 1}, {0x1e5f1, 0x1e5fa, 1}},
	}
)

type class int

const (
	letter class = iota
	number
	space
	other
)

func classOf(r rune) class {
	switch {
	case r < utf8.RuneSelf && (r|0x20 >= 'a' && r|0x20 <= 'z'):
		return letter
	case unicode.IsSpace(r):
		return space
	case unicode.IsLetter(r) || r >= newer && unicode.Is(newLetters, r):
		return letter
	case unicode.IsNumber(r) || r >= newer && unicode.Is(newNumbers, r):
		return number
	}
	return other
}

func run(s string, of class) (n int) {
	for n < len(s) {
		r, width := utf8.DecodeRuneInString(s[n:]) // invalid UTF-8 is other
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
