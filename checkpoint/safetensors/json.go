package safetensors

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// scanner parses a header's JSON, valid UTF-8, without recursion. encoding/json would take many times the memory,
// accept duplicate keys, and turn half a surrogate pair into U+FFFD: names might become equal.
type scanner struct {
	text string
	pos  int
}

func (s *scanner) errorf(format string, args ...any) error {
	return s.errorAt(s.pos, format, args...)
}

func (s *scanner) errorAt(pos int, format string, args ...any) error {
	return &FormatError{Offset: int64(preamble + pos), Err: fmt.Errorf(format, args...)}
}

func (s *scanner) space() {
	for s.pos < len(s.text) && strings.IndexByte(" \t\r\n", s.text[s.pos]) >= 0 {
		s.pos++
	}
}

func (s *scanner) accept(c byte) bool {
	s.space()
	if s.pos < len(s.text) && s.text[s.pos] == c {
		s.pos++
		return true
	}
	return false
}

func (s *scanner) expect(c byte) error {
	if s.accept(c) {
		return nil
	}
	return s.unexpected(strconv.QuoteRune(rune(c)))
}

func (s *scanner) unexpected(expected string) error {
	if s.pos >= len(s.text) {
		return s.errorf("the header's JSON ends, expected %s", expected)
	}
	r, _ := utf8.DecodeRuneInString(s.text[s.pos:])
	return s.errorf("%s in the header's JSON, expected %s", strconv.QuoteRuneToASCII(r), expected)
}

// object calls member at each value, which it must consume. at is the key's offset.
func (s *scanner) object(member func(key string, at int) error) error {
	if err := s.expect('{'); err != nil {
		return err
	}
	if s.accept('}') {
		return nil
	}
	for {
		s.space()
		at := s.pos
		key, err := s.string()
		if err != nil {
			return err
		}
		if err := s.expect(':'); err != nil {
			return err
		}
		if err := member(key, at); err != nil {
			return err
		}
		if s.accept(',') {
			continue
		}
		if !s.accept('}') {
			return s.unexpected(`',' or '}'`)
		}
		return nil
	}
}

func (s *scanner) array(element func() error) error {
	if err := s.expect('['); err != nil {
		return err
	}
	if s.accept(']') {
		return nil
	}
	for {
		if err := element(); err != nil {
			return err
		}
		if s.accept(',') {
			continue
		}
		if !s.accept(']') {
			return s.unexpected(`',' or ']'`)
		}
		return nil
	}
}

func (s *scanner) integer() (int64, error) {
	s.space()
	start := s.pos
	n := int64(0)
	for ; s.pos < len(s.text) && '0' <= s.text[s.pos] && s.text[s.pos] <= '9'; s.pos++ {
		digit := int64(s.text[s.pos] - '0')
		if n > (math.MaxInt64-digit)/10 {
			return 0, s.errorAt(start, "a number above %d: %w", int64(math.MaxInt64), ErrLimit)
		}
		n = 10*n + digit
	}
	switch {
	case s.pos == start:
		return 0, s.unexpected("a whole number from 0")
	case s.text[start] == '0' && s.pos > start+1:
		return 0, s.errorAt(start, "a number with a leading zero")
	}
	return n, nil
}

// A string without escapes is a slice of the text.
func (s *scanner) string() (string, error) {
	if err := s.expect('"'); err != nil {
		return "", err
	}
	start, escaped := s.pos, false
	for ; s.pos < len(s.text); s.pos++ {
		switch c := s.text[s.pos]; {
		case c == '"':
			raw := s.text[start:s.pos]
			s.pos++
			if escaped {
				return s.unescape(raw, start)
			}
			return raw, nil
		case c < ' ':
			return "", s.unexpected("no control character in a string")
		case c == '\\':
			escaped = true
			s.pos++ // the next byte is escaped
		}
	}
	s.pos = len(s.text)
	return "", s.unexpected("the end of a string")
}

func (s *scanner) unescape(raw string, pos int) (string, error) {
	var out strings.Builder
	out.Grow(len(raw))
	for i := 0; i < len(raw); {
		if raw[i] != '\\' {
			end := i
			for end < len(raw) && raw[end] != '\\' && raw[end] >= ' ' {
				end++
			}
			if end == i {
				return "", s.errorAt(pos+i, "a control character in a string")
			}
			out.WriteString(raw[i:end])
			i = end
			continue
		}
		r, size := escape(raw[i:])
		if size == 0 {
			return "", s.errorAt(pos+i, "an escape that JSON does not have, or half a surrogate pair")
		}
		out.WriteRune(r)
		i += size
	}
	return out.String(), nil
}

func escape(text string) (r rune, size int) {
	if len(text) < 2 {
		return 0, 0
	}
	if i := strings.IndexByte(`"\/bfnrt`, text[1]); i >= 0 {
		return rune("\"\\/\b\f\n\r\t"[i]), 2
	}
	high, ok := hexEscape(text)
	if !ok {
		return 0, 0
	}
	if !utf16.IsSurrogate(high) {
		return high, 6
	}
	low, _ := hexEscape(text[6:])
	if r = utf16.DecodeRune(high, low); r == utf8.RuneError {
		return 0, 0
	}
	return r, 12
}

func hexEscape(text string) (rune, bool) {
	if len(text) < 6 || text[:2] != `\u` {
		return 0, false
	}
	n := rune(0)
	for _, c := range []byte(text[2:6]) {
		switch {
		case '0' <= c && c <= '9':
			n = n<<4 | rune(c-'0')
		case 'a' <= c|0x20 && c|0x20 <= 'f':
			n = n<<4 | rune(c|0x20-'a'+10)
		default:
			return 0, false
		}
	}
	return n, true
}

// appendString escapes only quotes, backslashes and control characters, as the Python package.
func appendString(b []byte, text string) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	for i := 0; i < len(text); i++ {
		c := text[i]
		short := strings.IndexByte("\"\\\b\f\n\r\t", c)
		switch {
		case short >= 0:
			b = append(b, '\\', `"\bfnrt`[short])
		case c < ' ':
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		default:
			b = append(b, c)
		}
	}
	return append(b, '"')
}
