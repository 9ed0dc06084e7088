package checkpoint

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"unicode/utf8"

	"github.com/lazo-ml/lazo/checkpoint/safetensors"
)

const depthLimit = 64

// checkJSON refuses duplicate keys, non-UTF-8 text, unbounded nesting, and keys not spelled as by encoding/json: equal
// keys have equal bytes.
func checkJSON(text []byte) error {
	switch {
	case int64(len(text)) >= 1<<32:
		return safetensors.ErrLimit
	case !utf8.Valid(text):
		return errors.New("not UTF-8")
	case !json.Valid(text):
		return fmt.Errorf("not JSON: %w", json.Unmarshal(text, new(json.RawMessage)))
	}
	k := keys{text: text, seen: make([]uint32, 0, countKeys(text))}
	return k.check()
}

func countKeys(text []byte) int {
	return bytes.Count(text, []byte(`":`)) + bytes.Count(text, []byte(`" `))
}

type keys struct {
	text  []byte
	seen  []uint32
	level []start
	key   []byte
}

type start struct {
	object bool
	seen   int
}

func (k *keys) check() error {
	isKey := false
	for i := 0; i < len(k.text); i++ {
		switch c := k.text[i]; c {
		case '{', '[':
			if len(k.level) == depthLimit {
				return fmt.Errorf("byte %d: nested deeper than %d: %w", i, depthLimit, safetensors.ErrLimit)
			}
			k.level = append(k.level, start{c == '{', len(k.seen)})
			isKey = c == '{'
		case '}', ']':
			top := k.level[len(k.level)-1]
			if err := k.unique(k.seen[top.seen:]); err != nil {
				return err
			}
			k.seen, k.level, isKey = k.seen[:top.seen], k.level[:len(k.level)-1], false
		case ',':
			isKey = k.level[len(k.level)-1].object
		case '"':
			end := stringEnd(k.text, i)
			if isKey {
				var err error
				if k.key, err = appendKey(k.key[:0], k.text[i:end]); err != nil {
					return fmt.Errorf("byte %d: %w", i, err)
				}
				k.seen = append(k.seen, uint32(i))
			}
			i, isKey = end-1, false
		}
	}
	return nil
}

func (k *keys) spelled(at uint32) []byte { return k.text[at:stringEnd(k.text, int(at))] }

func (k *keys) unique(seen []uint32) error {
	slices.SortFunc(seen, func(a, b uint32) int { return cmp.Or(bytes.Compare(k.spelled(a), k.spelled(b)), cmp.Compare(a, b)) })
	for i := 1; i < len(seen); i++ {
		if key := k.spelled(seen[i]); bytes.Equal(key, k.spelled(seen[i-1])) {
			return fmt.Errorf("byte %d: the key %s appears twice", seen[i], cut(key))
		}
	}
	return nil
}

var short = map[byte]byte{'"': '"', '\\': '\\', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

func appendKey(b, key []byte) ([]byte, error) {
	other := func() ([]byte, error) {
		return b, fmt.Errorf("the key %s is not encoded as by encoding/json", cut(key))
	}
	for text := key[1 : len(key)-1]; len(text) > 0; {
		if text[0] != '\\' {
			r, n := utf8.DecodeRune(text)
			if escaped(r) {
				return other()
			}
			b, text = append(b, text[:n]...), text[n:]
			continue
		}
		if c, ok := short[text[1]]; ok {
			b, text = append(b, c), text[2:]
			continue
		}
		var code [2]byte
		if text[1] != 'u' || bytes.ContainsAny(text[2:6], "ABCDEF") {
			return other()
		}
		if _, err := hex.Decode(code[:], text[2:6]); err != nil {
			return b, err
		}
		r := rune(code[0])<<8 | rune(code[1])
		if !escaped(r) || bytes.IndexByte([]byte("\b\f\n\r\t"), byte(r)) >= 0 && r < ' ' {
			return other()
		}
		b, text = utf8.AppendRune(b, r), text[6:]
	}
	return b, nil
}

func escaped(r rune) bool {
	return r < ' ' || r == '<' || r == '>' || r == '&' || r == '\u2028' || r == '\u2029'
}

func stringEnd(text []byte, i int) int {
	for i++; text[i] != '"'; i++ {
		if text[i] == '\\' {
			i++
		}
	}
	return i + 1
}

func members(object []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func(key, value []byte) bool) {
		depth, from := 0, 0
		var key []byte
		for i := 0; i < len(object); i++ {
			switch object[i] {
			case '"':
				end := stringEnd(object, i)
				if depth == 1 && key == nil {
					key = object[i:end]
				}
				i = end - 1
			case ':':
				if depth == 1 {
					from = i + 1
				}
			case '{', '[':
				depth++
			case '}', ']', ',':
				if object[i] != ',' {
					depth--
				}
				if (depth == 0 || depth == 1 && object[i] == ',') && key != nil {
					if !yield(key, bytes.TrimSpace(object[from:i])) {
						return
					}
					key = nil
				}
			}
		}
	}
}

func cut(text []byte) []byte {
	if len(text) > 100 {
		return append(slices.Clone(text[:100]), "…"...)
	}
	return text
}
