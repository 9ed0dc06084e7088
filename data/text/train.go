package text

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
)

// BPETraining learns a vocabulary.
type BPETraining struct {
	// Size is the maximum number of tokens: special ones, 256 bytes, and merges.
	Size int
	// Special tokens, like "<|endoftext|>", have the first ids. The texts do not have them.
	Special []string
	// MinCount is the minimum occurrences of a pair to be merged; 0 means 2.
	MinCount int
}

// Train repeatedly merges the most frequent pair of tokens (of several, the lowest ids), until there are Size tokens
// or no pair occurs MinCount times. Pairs do not cross texts or pieces. Memory grows with the distinct pieces only.
func (t BPETraining) Train(texts iter.Seq2[string, error]) (*Tokenizer, error) {
	if least := 256 + len(t.Special); t.Size < least {
		return nil, fmt.Errorf("text: BPETraining: Size is %d, expected at least %d, for 256 bytes and %d special tokens", t.Size, least, len(t.Special))
	}
	if t.MinCount < 0 {
		return nil, fmt.Errorf("text: BPETraining: MinCount is %d, expected at least 1", t.MinCount)
	}
	b := &learned{}
	for i, s := range t.Special {
		if slices.Contains(t.Special[:i], s) {
			return nil, fmt.Errorf("text: BPETraining: the special token %q appears twice", s)
		}
		if err := checkSpecial(s); err != nil {
			return nil, fmt.Errorf("text: BPETraining: %w", err)
		}
		b.tokens = append(b.tokens, s)
		b.added = append(b.added, addedToken{ID: int32(i), Content: s, Special: true})
	}
	for _, c := range alphabet { // as in a file
		b.bytes[c] = int32(len(b.tokens))
		b.tokens = append(b.tokens, string([]byte{c}))
	}
	counts := map[string]int{}
	for s, err := range texts {
		if err != nil {
			return nil, fmt.Errorf("text: BPETraining: %w", err)
		}
		for len(s) > 0 {
			n := piece(s)
			if _, known := counts[s[:n]]; known {
				counts[s[:n]]++
			} else {
				counts[strings.Clone(s[:n])] = 1 // a view would keep the whole text alive
			}
			s = s[n:]
		}
	}
	learn(b, counts, t.Size, max(cmp.Or(t.MinCount, 2), 1))
	return b.tokenizer()
}

func checkSpecial(s string) error {
	if s == "" {
		return fmt.Errorf("a special token is empty")
	}
	if bytes, ok := fromLetters(s); ok && piece(bytes) == len(bytes) {
		return fmt.Errorf("the special token %q could be learned from text as well: take one with brackets around a word, as \"<|%[1]s|>\"", s)
	}
	return nil
}

type learned struct {
	tokens []string
	bytes  [256]int32
	merges []merge
	added  []addedToken
}

func (b *learned) tokenizer() (*Tokenizer, error) {
	m := bpeModel{Type: "BPE", Vocabulary: make(map[string]int32, len(b.tokens)), Merges: make(merges, len(b.merges))}
	names := make([]string, len(b.tokens))
	for i, t := range b.tokens {
		if names[i] = t; i >= len(b.added) {
			names[i] = toLetters(t)
		}
		m.Vocabulary[names[i]] = int32(i)
	}
	for i, of := range b.merges {
		m.Merges[i] = [2]string{names[of.of[0]], names[of.of[1]]}
	}
	level := byteLevel{Type: "ByteLevel", TrimOffsets: true, UseRegex: true}
	f := file{Version: "1.0", AddedTokens: b.added}
	if f.AddedTokens == nil {
		f.AddedTokens = []addedToken{}
	}
	t, err := f.written([]filePart{{&f.PreTokenizer, level}, {&f.Decoder, level}, {&f.Model, &m}})
	if err != nil {
		return nil, fmt.Errorf("text: BPETraining: %w", err)
	}
	return t, nil
}

type counting struct {
	ids   []int32
	count int
}

type counted struct {
	of    pair
	count int
}

func learn(b *learned, counts map[string]int, size, least int) {
	var words []counting
	pairs, in := map[pair]int{}, map[pair][]int32{} // in may include words that lost the pair
	has := func(p pair, w int32) {
		if l := in[p]; len(l) == 0 || l[len(l)-1] != w {
			in[p] = append(l, w)
		}
	}
	queue := heap[counted]{before: func(a, b counted) bool {
		return a.count > b.count || a.count == b.count && (a.of[0] < b.of[0] || a.of[0] == b.of[0] && a.of[1] < b.of[1])
	}}
	known := make(map[string]int32, size)
	for i, t := range b.tokens[len(b.added):] {
		known[t] = int32(i + len(b.added))
	}
	for _, s := range slices.Sorted(maps.Keys(counts)) {
		if len(s) < 2 {
			continue
		}
		ids := make([]int32, len(s))
		for i := range len(s) {
			ids[i] = b.bytes[s[i]]
		}
		for i := range ids[1:] {
			p := pair{ids[i], ids[i+1]}
			pairs[p] += counts[s]
			has(p, int32(len(words)))
		}
		words = append(words, counting{ids, counts[s]})
	}
	for p, n := range pairs {
		queue.push(counted{p, n})
	}
	raised := map[pair]int{}
	for len(b.tokens) < size {
		top, ok := queue.pop()
		if !ok || top.count < least {
			return
		}
		if now := pairs[top.of]; now != top.count {
			if now >= least {
				queue.push(counted{top.of, now})
			}
			continue
		}
		token := b.tokens[top.of[0]] + b.tokens[top.of[1]]
		id, again := known[token] // an earlier merge gave the same bytes
		if !again {
			id = int32(len(b.tokens))
			b.tokens, known[token] = append(b.tokens, token), id
		}
		b.merges = append(b.merges, merge{top.of, id})
		clear(raised)
		for _, w := range in[top.of] {
			words[w].merge(top.of, id, func(p pair, n int) {
				pairs[p] += n
				raised[p] += n
				if n > 0 && (p[0] == id || p[1] == id) {
					has(p, w)
				}
			})
		}
		delete(in, top.of)
		delete(pairs, top.of)
		for p, n := range raised {
			if n > 0 && pairs[p] >= least {
				queue.push(counted{p, pairs[p]})
			}
		}
	}
}

func (w *counting) merge(p pair, id int32, changed func(p pair, n int)) {
	first, last := -1, -1
	for i := range w.ids[1:] {
		if w.ids[i] == p[0] && w.ids[i+1] == p[1] {
			if last = i; first < 0 {
				first = i
			}
		}
	}
	if first < 0 {
		return
	}
	begin, behind := max(first-1, 0), len(w.ids)-min(last+3, len(w.ids)) // the changed part with a neighbour on each side
	each := func(sign int) {
		window := w.ids[begin : len(w.ids)-behind]
		for i := range window[1:] {
			changed(pair{window[i], window[i+1]}, sign*w.count)
		}
	}
	each(-1)
	kept := w.ids[:first]
	for i := first; i < len(w.ids); i++ {
		if i+1 < len(w.ids) && w.ids[i] == p[0] && w.ids[i+1] == p[1] {
			kept = append(kept, id)
			i++
		} else {
			kept = append(kept, w.ids[i])
		}
	}
	w.ids = kept
	each(1)
}
