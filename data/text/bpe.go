package text

import (
	"fmt"
	"unicode/utf8"
)

type pair [2]int32

type merge struct {
	of   pair
	into int32
}

type bpe struct {
	*vocabulary
	ranks        map[pair]ranked
	starts       *[256]int32      // tokens of bytes; nil if pieces are characters
	whole        map[string]int32 // tokens without merges; nil if merges count
	prefix       string
	suffix       string
	unknown      int32
	fuse         bool
	bytes        *[256]int32 // of <0x0A> and so on, or -1; nil without byte_fallback
	unknownError string
}

type ranked struct{ rank, into int32 }

type symbol struct{ id, left, right, length int32 }

type candidate struct{ rank, at, into int32 }

func (b *bpe) tokens(e *encoder, s string) error {
	if id, ok := b.whole[s]; ok {
		e.out = append(e.out, token{id, 0, int32(len(s))})
		return nil
	}
	e.symbols = e.symbols[:0]
	if b.starts == nil {
		if err := b.characters(e, s); err != nil {
			return err
		}
	} else {
		for i := range len(s) {
			e.symbol(b.starts[s[i]], 1)
		}
	}
	n := int32(len(e.symbols))
	if n > 0 {
		e.symbols[n-1].right = -1
	}
	for i := range n {
		b.consider(e, i)
	}
	for next, ok := e.merging.pop(); ok; next, ok = e.merging.pop() {
		at := &e.symbols[next.at]
		if at.length == 0 || at.right < 0 {
			continue
		}
		gone := &e.symbols[at.right]
		if r, ok := b.ranks[pair{at.id, gone.id}]; !ok || r.into != next.into {
			continue
		}
		at.id, at.right = next.into, gone.right
		at.length, gone.length = at.length+gone.length, 0
		if at.right >= 0 {
			e.symbols[at.right].left = next.at
		}
		b.consider(e, at.left)
		b.consider(e, next.at)
	}
	from := int32(0)
	for _, x := range e.symbols {
		if x.length > 0 {
			e.out = append(e.out, token{x.id, from, from + x.length})
			from += x.length
		}
	}
	return nil
}

func (e *encoder) symbol(id, length int32) {
	n := int32(len(e.symbols))
	e.symbols = append(e.symbols, symbol{id, n - 1, n + 1, length})
}

func (b *bpe) consider(e *encoder, at int32) {
	if at < 0 || e.symbols[at].right < 0 {
		return
	}
	if r, ok := b.ranks[pair{e.symbols[at].id, e.symbols[e.symbols[at].right].id}]; ok {
		e.merging.push(candidate{r.rank, at, r.into})
	}
}

func (b *bpe) characters(e *encoder, s string) error {
	var held []symbol // as in tokenizers, an unknown token comes after the bytes that follow it
	flush := func() {
		for _, x := range held {
			e.symbol(x.id, x.length)
		}
		held = held[:0]
	}
	for i := 0; i < len(s); {
		_, n := utf8.DecodeRuneInString(s[i:])
		name := s[i : i+n]
		if i > 0 && b.prefix != "" {
			name = b.prefix + name
		}
		if i+n == len(s) && b.suffix != "" {
			name += b.suffix
		}
		i += n
		if id, ok := b.ids[name]; ok {
			flush()
			e.symbol(id, int32(n))
			continue
		}
		if b.bytes != nil && haveBytes(b.bytes, name) {
			for k := range len(name) {
				e.symbol(b.bytes[name[k]], 1)
			}
			continue
		}
		switch {
		case b.unknownError != "":
			return fmt.Errorf("text: the unknown token %s is not in the vocabulary, and the text needs it", quoted(b.unknownError))
		case b.unknown < 0: // as tokenizers
		case len(held) > 0 && b.fuse:
			held[0].length += int32(n)
		default:
			flush()
			held = append(held, symbol{id: b.unknown, length: int32(n)})
		}
	}
	flush()
	return nil
}
