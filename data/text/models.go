package text

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

type model interface {
	tokens(e *encoder, s string) error
}

type token struct{ id, from, to int32 }

type vocabulary struct {
	ids   map[string]int32
	names []string
	has   []bool
	most  int
}

const (
	mostTokens  = 1 << 22
	longestName = 1024
)

func newVocabulary(ids map[string]int32) (*vocabulary, error) {
	v := &vocabulary{ids: ids}
	size := int32(0)
	for name, id := range ids {
		if id < 0 || id >= mostTokens {
			return nil, fmt.Errorf("the token %s has the number %d, expected one from 0 to %d", quoted(name), id, mostTokens-1)
		}
		size, v.most = max(size, id+1), max(v.most, len(name))
	}
	v.names, v.has = make([]string, size), make([]bool, size)
	for name, id := range ids {
		if v.has[id] {
			return nil, fmt.Errorf("the tokens %s and %s both have the number %d", quoted(min(name, v.names[id])), quoted(max(name, v.names[id])), id)
		}
		v.names[id], v.has[id] = name, true
	}
	return v, nil
}

func (v *vocabulary) name(id int32) (string, bool) {
	if id < 0 || int(id) >= len(v.names) {
		return "", false
	}
	return v.names[id], v.has[id]
}

type wordPiece struct {
	begin, inside         map[string]int32
	mostBegin, mostInside int
	unknown               int32
	longest               int
}

func newWordPiece(v *vocabulary, unknown, prefix string, longest int) (*wordPiece, error) {
	w := &wordPiece{begin: v.ids, inside: map[string]int32{}, mostBegin: v.most, longest: longest}
	id, ok := v.ids[unknown]
	if !ok {
		return nil, fmt.Errorf("the unknown token %s is not in the vocabulary", quoted(unknown))
	}
	w.unknown = id
	if v.most > longestName { // a word takes time by its length and this
		return nil, fmt.Errorf("a token has %d bytes, expected at most %d", v.most, longestName)
	}
	for name, id := range v.ids {
		if rest, ok := strings.CutPrefix(name, prefix); ok && rest != "" {
			w.inside[rest] = id
			w.mostInside = max(w.mostInside, len(rest))
		}
	}
	return w, nil
}

func (w *wordPiece) tokens(e *encoder, s string) error {
	unknown := token{w.unknown, 0, int32(len(s))}
	if len(s) > w.longest && utf8.RuneCountInString(s) > w.longest {
		e.out = append(e.out, unknown)
		return nil
	}
	kept := len(e.out)
	for at := 0; at < len(s); {
		known, most := w.inside, w.mostInside
		if at == 0 {
			known, most = w.begin, w.mostBegin
		}
		end := min(len(s), at+most)
		for end < len(s) && end > at && !utf8.RuneStart(s[end]) {
			end--
		}
		found := false
		for end > at {
			if id, ok := known[s[at:end]]; ok {
				e.out = append(e.out, token{id, int32(at), int32(end)})
				found = true
				break
			}
			_, n := utf8.DecodeLastRuneInString(s[at:end])
			end -= n
		}
		if !found {
			e.out = append(e.out[:kept], unknown)
			return nil
		}
		at = end
	}
	return nil
}

type wordLevel struct {
	ids     map[string]int32
	unknown int32
	missing string
}

func (w *wordLevel) tokens(e *encoder, s string) error {
	id, ok := w.ids[s]
	if !ok {
		if id = w.unknown; id < 0 {
			return fmt.Errorf("text: the word %s is not in the vocabulary, nor is the unknown token %s", quoted(s), quoted(w.missing))
		}
	}
	e.out = append(e.out, token{id, 0, int32(len(s))})
	return nil
}

// unigram finds the likeliest tokens (Kudo 2018) by Viterbi's algorithm.
type unigram struct {
	*vocabulary
	words   *trie
	scores  []float64
	unknown int32
	least   float64
	bytes   *[256]int32 // as of bpe
	narrow  bool
}

type best struct {
	score float64
	from  int32
	id    int32
}

const unknownPenalty = 10

func (u *unigram) tokens(e *encoder, s string) error {
	nodes := e.nodes[:0]
	for range len(s) + 1 {
		nodes = append(nodes, best{from: -1})
	}
	e.nodes = nodes
	nodes[0].from = 0
	consider := func(at, end int, score float64, id int32) {
		if score += nodes[at].score; nodes[end].from < 0 || score > nodes[end].score {
			if u.narrow {
				score = float64(float32(score))
			}
			nodes[end] = best{score, int32(at), id}
		}
	}
	for at := 0; at < len(s); {
		_, width := utf8.DecodeRuneInString(s[at:])
		whole := false
		u.words.prefixes(s[at:], func(n int, id int32) {
			consider(at, at+n, u.scores[id], id)
			whole = whole || n == width
		})
		if !whole {
			if u.unknown < 0 {
				return fmt.Errorf("text: %s is not in the vocabulary, which has no unknown token", quoted(s[at:at+width]))
			}
			score := u.least - unknownPenalty
			if u.narrow {
				score = float64(float32(score))
			}
			consider(at, at+width, score, u.unknown)
		}
		at += width
	}
	kept := len(e.out)
	for end := len(s); end > 0; {
		n := nodes[end]
		if last := len(e.out) - 1; n.id == u.unknown && last >= kept && e.out[last].id == u.unknown {
			e.out[last].from = n.from // unknown characters make one token
		} else {
			e.out = append(e.out, token{n.id, n.from, int32(end)})
		}
		end = int(n.from)
	}
	slices.Reverse(e.out[kept:])
	return u.unknowns(e, s, kept)
}

func (u *unigram) unknowns(e *encoder, s string, from int) error {
	found := false
	for _, t := range e.out[from:] {
		found = found || t.id == u.unknown
	}
	if !found {
		return nil
	}
	all := append([]token{}, e.out[from:]...)
	e.out = e.out[:from]
	for _, t := range all {
		if t.id == u.unknown {
			if id, ok := u.ids[s[t.from:t.to]]; ok {
				t.id = id
			} else if u.bytes != nil && haveBytes(u.bytes, s[t.from:t.to]) {
				for i := t.from; i < t.to; i++ {
					e.out = append(e.out, token{u.bytes[s[i]], t.from, t.to})
				}
				continue
			}
		}
		e.out = append(e.out, t)
	}
	return nil
}

func (v *vocabulary) byteTokens() *[256]int32 {
	var out [256]int32
	for i := range out {
		id, ok := v.ids[fmt.Sprintf("<0x%02X>", i)]
		if !ok {
			id = -1
		}
		out[i] = id
	}
	return &out
}

func haveBytes(of *[256]int32, s string) bool {
	for i := range len(s) {
		if of[s[i]] < 0 {
			return false
		}
	}
	return true
}
