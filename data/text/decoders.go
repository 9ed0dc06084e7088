package text

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A decoder that lengthens tokens bounds their bytes by most.
type decoder func(tokens []string, most int) ([]string, error)

func eachToken(change func(i int, token string) string) decoder {
	return func(tokens []string, _ int) ([]string, error) {
		for i, t := range tokens {
			tokens[i] = change(i, t)
		}
		return tokens, nil
	}
}

func decodeBytes(tokens []string, _ int) ([]string, error) {
	var out strings.Builder
	for _, t := range tokens {
		if text, ok := fromLetters(t); ok {
			t = text
		}
		out.WriteString(t)
	}
	return []string{out.String()}, nil
}

func decodeWordPiece(prefix string, cleanup bool) decoder {
	return eachToken(func(i int, t string) string {
		if rest, ok := strings.CutPrefix(t, prefix); ok && i > 0 {
			t = rest
		} else if i > 0 {
			t = " " + t
		}
		if cleanup {
			for _, e := range endings {
				t = strings.ReplaceAll(t, e[0], e[1])
			}
		}
		return t
	})
}

var endings = [][2]string{{" .", "."}, {" ?", "?"}, {" !", "!"}, {" ,", ","}, {" ' ", "'"}, {" n't", "n't"}, {" 'm", "'m"}, {" do not", " don't"}, {" 's", "'s"},
	{" 've", "'ve"}, {" 're", "'re"}}

func decodeMetaspace(m metaspace) decoder {
	return eachToken(func(i int, t string) string {
		by := " "
		if i == 0 && m.scheme != "never" {
			by = ""
		}
		return strings.ReplaceAll(t, m.mark, by)
	})
}

func decodeByteFallback(tokens []string, _ int) ([]string, error) {
	var out []string
	var held []byte
	flush := func() {
		if utf8.Valid(held) && len(held) > 0 {
			out = append(out, string(held))
		} else {
			for range held {
				out = append(out, "\ufffd")
			}
		}
		held = held[:0]
	}
	for _, t := range tokens {
		if len(t) == 6 && strings.HasPrefix(t, "<0x") && t[5] == '>' {
			if b, err := strconv.ParseUint(strings.TrimPrefix(t[3:5], "+"), 16, 8); err == nil {
				held = append(held, byte(b))
				continue
			}
		}
		flush()
		out = append(out, t)
	}
	flush()
	return out, nil
}

func fuse(tokens []string, _ int) ([]string, error) { return []string{strings.Join(tokens, "")}, nil }

func decodeStrip(content rune, start, stop int) decoder {
	c := string(content)
	return eachToken(func(_ int, t string) string {
		for n := 0; n < start && strings.HasPrefix(t, c); n++ {
			t = t[len(c):]
		}
		for n := 0; n < stop && strings.HasSuffix(t, c); n++ {
			t = t[:len(t)-len(c)]
		}
		return t
	})
}

func decodeReplace(of *pattern, content string) decoder {
	return func(tokens []string, most int) ([]string, error) {
		steps := stepsAnyway
		for i, t := range tokens {
			matches, err := of.matches(nil, t, &steps)
			if err != nil {
				return nil, err
			}
			if most -= len(t) + len(matches)*len(content); most < 0 {
				return nil, fmt.Errorf("text: the decoder Replace makes too many bytes of %d tokens: token %d is replaced %d times by %d bytes", len(tokens), i+1, len(matches), len(content))
			}
			p := span{s: t}
			p.replace(matches, content, false)
			tokens[i] = p.s
		}
		return tokens, nil
	}
}

func decodeSuffix(suffix string) decoder {
	return func(tokens []string, _ int) ([]string, error) {
		for i, t := range tokens {
			by := " "
			if i == len(tokens)-1 {
				by = ""
			}
			tokens[i] = strings.ReplaceAll(t, suffix, by)
		}
		return tokens, nil
	}
}

type piecePart struct {
	text int // 0 or 1; -1 for tokens
	kind int32
	ids  []int32
}

func around(cls, sep int32, roberta bool) (single, pair []piecePart) {
	text := func(i int, kind int32) piecePart { return piecePart{text: i, kind: kind} }
	tokens := func(id, kind int32) piecePart { return piecePart{text: -1, kind: kind, ids: []int32{id}} }
	single = []piecePart{tokens(cls, 0), text(0, 0), tokens(sep, 0)}
	if roberta {
		return single, append(single[:3:3], tokens(sep, 0), text(1, 0), tokens(sep, 0))
	}
	return single, append(single[:3:3], text(1, 1), tokens(sep, 1))
}
