package text

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// BPE is a byte-level BPE tokenizer. It splits a text into pieces (words with the preceding space, numbers,
// punctuation, spaces), and merges pairs of tokens, first bytes, in the order learned. [BPETraining] or
// [BPE.UnmarshalJSON] makes one. The zero BPE encodes nothing.
type BPE struct {
	tokens []string
	ids    map[string]int32 // added tokens take precedence over equal bytes
	bytes  [256]int32
	merges []merge
	ranks  map[pair]int32
	added  []addedToken
	firsts [2]map[byte][]int // into added by first byte, longest first: those matched first, and the others
}

type pair [2]int32

type merge struct {
	of   pair
	into int32
}

// addedToken is matched before any splitting.
type addedToken struct {
	ID         int32  `json:"id"`
	Content    string `json:"content"`
	SingleWord bool   `json:"single_word"`
	LStrip     bool   `json:"lstrip"`
	RStrip     bool   `json:"rstrip"`
	Normalized bool   `json:"normalized"`
	Special    bool   `json:"special"`
}

func (b *BPE) made() *BPE {
	b.ids, b.ranks = make(map[string]int32, len(b.tokens)), make(map[pair]int32, len(b.merges))
	for i, t := range b.tokens {
		if _, known := b.ids[t]; !known {
			b.ids[t] = int32(i)
		}
	}
	for i, m := range b.merges {
		b.ranks[m.of] = int32(i)
	}
	b.firsts = [2]map[byte][]int{{}, {}}
	for i, a := range b.added {
		b.ids[a.Content] = a.ID
		set := b.firsts[0]
		if a.Normalized { // Hugging Face matches these later
			set = b.firsts[1]
		}
		set[a.Content[0]] = append(set[a.Content[0]], i)
	}
	for _, set := range b.firsts {
		for _, places := range set {
			slices.SortStableFunc(places, func(i, j int) int { return cmp.Compare(len(b.added[j].Content), len(b.added[i].Content)) })
		}
	}
	return b
}

// Size returns the number of tokens.
func (b *BPE) Size() int { return len(b.tokens) }

// Token returns a token's text, which may be part of a character.
func (b *BPE) Token(id int32) (text string, ok bool) {
	if id < 0 || int(id) >= len(b.tokens) {
		return "", false
	}
	return b.tokens[id], true
}

// ID returns the id of a token, such as "<|endoftext|>".
func (b *BPE) ID(token string) (id int32, ok bool) {
	id, ok = b.ids[token]
	return id, ok
}

// Encode returns the tokens of a text, also special ones: use EncodeOrdinary for untrusted text. An empty BPE is an
// error.
func (b *BPE) Encode(text string) ([]int32, error) { return b.encode(text, b.firsts[:]) }

// EncodeOrdinary is Encode that treats special tokens as ordinary text.
func (b *BPE) EncodeOrdinary(text string) ([]int32, error) { return b.encode(text, nil) }

func (b *BPE) encode(text string, firsts []map[byte][]int) ([]int32, error) {
	if len(b.tokens) == 0 {
		return nil, fmt.Errorf("text: the BPE is empty: train one, or read one from a tokenizer.json")
	}
	e := encoder{BPE: b, seen: map[string][2]int{}}
	e.merging.before = func(a, b candidate) bool { return a.rank < b.rank || a.rank == b.rank && a.at < b.at }
	e.segments(text, firsts)
	return e.out, nil
}

// Decode returns the text of tokens, byte for byte.
func (b *BPE) Decode(ids []int32) (string, error) {
	var text strings.Builder
	for i, id := range ids {
		token, ok := b.Token(id)
		if !ok {
			return "", fmt.Errorf("text: token %d of %d is %d, expected a number from 0 to %d", i+1, len(ids), id, len(b.tokens)-1)
		}
		text.WriteString(token)
	}
	return text.String(), nil
}

type encoder struct {
	*BPE
	out     []int32
	seen    map[string][2]int // a piece's position in out
	symbols []symbol
	merging heap[candidate]
}

// symbol is a token of a piece, in a doubly linked list, -1 if merged into its left neighbour.
type symbol struct{ id, left, right int32 }

type candidate struct{ rank, at int32 }

// segments splits at added tokens, the leftmost and longest first.
func (e *encoder) segments(text string, firsts []map[byte][]int) {
	if len(firsts) == 0 {
		e.pieces(text)
		return
	}
	begin := 0
	for i := 0; i < len(text) && len(firsts[0]) > 0; i++ {
		for _, place := range firsts[0][text[i]] {
			if a := e.added[place]; strings.HasPrefix(text[i:], a.Content) {
				e.segments(text[begin:i], firsts[1:])
				e.out = append(e.out, a.ID)
				begin = i + len(a.Content)
				i = begin - 1
				break
			}
		}
	}
	e.segments(text[begin:], firsts[1:])
}

func (e *encoder) pieces(text string) {
	for len(text) > 0 {
		n := piece(text)
		if at, ok := e.seen[text[:n]]; ok {
			e.out = append(e.out, e.out[at[0]:at[1]]...)
		} else {
			begin := len(e.out)
			e.piece(text[:n])
			e.seen[text[:n]] = [2]int{begin, len(e.out)}
		}
		text = text[n:]
	}
}

// piece repeatedly merges the pair learned first, the leftmost of several, in O(n·log n).
func (e *encoder) piece(s string) {
	e.symbols = e.symbols[:0]
	for i := range len(s) {
		e.symbols = append(e.symbols, symbol{e.bytes[s[i]], int32(i - 1), int32(i + 1)})
	}
	for i := range len(s) - 1 {
		e.consider(int32(i))
	}
	for next, ok := e.merging.pop(); ok; next, ok = e.merging.pop() {
		at := &e.symbols[next.at]
		if rank, ok := e.rank(next.at); !ok || rank != next.rank {
			continue // a token of the pair has changed
		}
		gone := &e.symbols[at.right]
		at.id, at.right, gone.id = e.merges[next.rank].into, gone.right, -1
		if int(at.right) < len(s) {
			e.symbols[at.right].left = next.at
		}
		e.consider(at.left)
		e.consider(next.at)
	}
	for i := int32(0); int(i) < len(s); i = e.symbols[i].right {
		e.out = append(e.out, e.symbols[i].id)
	}
}

func (e *encoder) rank(at int32) (rank int32, ok bool) {
	if at < 0 || e.symbols[at].id < 0 || int(e.symbols[at].right) == len(e.symbols) {
		return 0, false
	}
	rank, ok = e.ranks[pair{e.symbols[at].id, e.symbols[e.symbols[at].right].id}]
	return rank, ok
}

func (e *encoder) consider(at int32) {
	if rank, ok := e.rank(at); ok {
		e.merging.push(candidate{rank, at})
	}
}
