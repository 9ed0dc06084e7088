package text

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/lazo-ml/lazo/internal/listed"
)

func quoted(s string) string { return listed.Quoted(s) }

// Tokenizer converts between text and token ids. [Open], [Vocabulary.Tokenizer], [BPETraining] and
// [Tokenizer.UnmarshalJSON] make one. It is safe for concurrent use.
type Tokenizer struct {
	file        []byte // nil if it was another file
	vocabulary  *vocabulary
	model       model
	added       added
	addedNames  map[int32]*addedToken
	specials    map[string]bool
	normalize   normalizer
	splitters   []splitter
	single      []piecePart
	pair        []piecePart
	trims       bool // spaces out of offsets
	trimsFirst  bool // but not the added one
	decoders    []decoder
	spaced      bool // no decoder: tokens are joined by spaces
	bytes       bool // tokens of bytes encode any bytes
	wantsPlaces bool
	size        int32
	settings    settings
	encoders    *sync.Pool
}

// Input has texts for [Tokenizer.EncodeText].
type Input struct {
	Text string
	// Pair is a second text, like a question's paragraph; nil for none.
	Pair *string
	// Bare adds no tokens like [CLS], for a chat template's text, which has them.
	Bare bool
	// Ordinary treats special tokens in the texts as ordinary text: for untrusted text.
	Ordinary bool
	// Most is the maximum number of tokens, added ones included; 0: no limit. The longer text is truncated at its end,
	// or with the truncation_side left of tokenizer_config.json at its beginning.
	Most int
}

// Inputs are texts without pairs, of at most most tokens each.
func Inputs(texts []string, most int) []Input {
	all := make([]Input, len(texts))
	for i, t := range texts {
		all[i] = Input{Text: t, Most: most}
	}
	return all
}

// Encoding has the tokens of an [Input].
type Encoding struct {
	IDs []int32
	// Types are the texts' numbers for the embedding of types (token_type_ids).
	Types []int32
	// Texts has 0 for tokens of Text, 1 for those of Pair, and -1 for added ones.
	Texts []int
	// Offsets are ranges of bytes in Text or Pair, in whole characters; {0, 0} for added ones.
	Offsets [][2]int
}

// Encode returns the ids of Python's tokenizers: with the tokens that the file adds around a text, and with special
// tokens in the text. It ignores the file's truncation and padding.
func (t *Tokenizer) Encode(text string) ([]int32, error) {
	return t.ids(text, false)
}

// EncodeOrdinary adds no tokens and treats special tokens as ordinary text: use it for untrusted text.
func (t *Tokenizer) EncodeOrdinary(text string) ([]int32, error) {
	return t.ids(text, true)
}

func (t *Tokenizer) ids(text string, ordinary bool) ([]int32, error) {
	e, err := t.encoder()
	if err != nil {
		return nil, err
	}
	defer t.encoders.Put(e)
	e.places = t.wantsPlaces
	var before, after []int32
	if !ordinary {
		seen := false
		for _, part := range t.single {
			if part.text >= 0 {
				if part.text > 0 || seen {
					all, err := t.EncodeText(Input{Text: text})
					return all.IDs, err
				}
				seen = true
			} else if seen {
				after = append(after, part.ids...)
			} else {
				before = append(before, part.ids...)
			}
		}
	}
	if err := e.encode(text, ordinary, nil); err != nil {
		return nil, err
	}
	return slices.Concat(before, e.ids, after), nil
}

// EncodeText returns the tokens of one or two texts with their places.
func (t *Tokenizer) EncodeText(in Input) (Encoding, error) {
	e, err := t.encoder()
	if err != nil {
		return Encoding{}, err
	}
	defer t.encoders.Put(e)
	e.places = true
	texts, parts := []string{in.Text}, t.single
	if in.Pair != nil {
		texts, parts = append(texts, *in.Pair), t.pair
	}
	ids, offsets := make([][]int32, len(texts)), make([][][2]int, len(texts))
	for i, s := range texts {
		if err := e.encode(s, in.Ordinary, &offsets[i]); err != nil {
			return Encoding{}, err
		}
		ids[i] = append([]int32{}, e.ids...)
	}
	if in.Most != 0 {
		if err := t.truncate(ids, offsets, parts, in); err != nil {
			return Encoding{}, err
		}
	}
	var out Encoding
	for _, part := range parts {
		if part.text < 0 {
			if !in.Bare {
				for _, id := range part.ids {
					out.add(id, part.kind, -1, [2]int{})
				}
			}
			continue
		}
		if part.text >= len(ids) {
			return Encoding{}, fmt.Errorf("text: the file's template for one text has a second text")
		}
		for i, id := range ids[part.text] {
			out.add(id, part.kind, part.text, offsets[part.text][i])
		}
	}
	return out, nil
}

func (e *Encoding) add(id, kind int32, text int, offsets [2]int) {
	e.IDs, e.Types, e.Texts, e.Offsets = append(e.IDs, id), append(e.Types, kind), append(e.Texts, text), append(e.Offsets, offsets)
}

// truncate is tokenizers' longest_first.
func (t *Tokenizer) truncate(ids [][]int32, offsets [][][2]int, parts []piecePart, in Input) error {
	most := in.Most
	for _, part := range parts {
		if part.text < 0 && !in.Bare {
			most -= len(part.ids)
		}
	}
	if most < 0 {
		return fmt.Errorf("text: Most is %d, expected at least %d for the tokens that the file adds", in.Most, in.Most-most)
	}
	lengths := []int{len(ids[0]), 0}
	if len(ids) > 1 {
		lengths[1] = len(ids[1])
	}
	if lengths[0]+lengths[1] <= most {
		return nil
	}
	if len(ids) == 1 {
		lengths[0] = most
	} else {
		short, long := min(lengths[0], lengths[1]), 0
		if long = max(short, most-short); short > most {
			long = short
		}
		if short+long > most {
			short = most / 2
			long = short + most%2
		}
		if lengths[0] > lengths[1] {
			lengths = []int{long, short}
		} else {
			lengths = []int{short, long}
		}
	}
	for i := range ids {
		from, to := 0, min(lengths[i], len(ids[i]))
		if t.settings.left {
			from, to = len(ids[i])-to, len(ids[i])
		}
		ids[i], offsets[i] = ids[i][from:to], offsets[i][from:to]
	}
	return nil
}

func (t *Tokenizer) trim(text, token string, first bool, o *[2]int) {
	isSpace := func(r rune) bool { return r == letters[' '] || isSpace(r) }
	count := utf8.RuneCountInString
	leading, trailing := count(token)-count(strings.TrimLeftFunc(token, isSpace)), count(token)-count(strings.TrimRightFunc(token, isSpace))
	if leading == 1 && t.trimsFirst && (first || o[0] == 0) {
		leading = 0
	}
	for ; leading > 0 && o[0] < o[1]; leading-- {
		_, n := utf8.DecodeRuneInString(text[o[0]:])
		o[0] += n
	}
	if trailing > count(text[:o[1]]) {
		return
	}
	for ; trailing > 0 && o[1] > o[0]; trailing-- {
		_, n := utf8.DecodeLastRuneInString(text[:o[1]])
		o[1] -= n
	}
}

// Size is one more than the largest id.
func (t *Tokenizer) Size() int { return int(t.size) }

func (t *Tokenizer) name(id int32) (name string, ok bool) {
	if a := t.addedNames[id]; a != nil {
		return a.Content, true
	}
	if t.vocabulary == nil {
		return "", false
	}
	return t.vocabulary.name(id)
}

// Token returns a token of the vocabulary, like "##ing", and of a tokenizer of bytes their text, which may be part of a
// character.
func (t *Tokenizer) Token(id int32) (token string, ok bool) {
	token, ok = t.name(id)
	if t.bytes && t.addedNames[id] == nil {
		if text, isText := fromLetters(token); isText {
			return text, ok
		}
	}
	return token, ok
}

// ID returns the id of a [Tokenizer.Token].
func (t *Tokenizer) ID(token string) (id int32, ok bool) {
	for _, a := range t.added.all {
		if a.Content == token {
			return a.ID, true
		}
	}
	if t.vocabulary == nil {
		return 0, false
	}
	if t.bytes {
		if id, ok := t.vocabulary.ids[toLetters(token)]; ok && t.addedNames[id] == nil {
			return id, true
		}
		return 0, false
	}
	id, ok = t.vocabulary.ids[token]
	return id, ok
}

// Decode returns the text of tokens as Python's tokenizers; tokens of non-UTF-8 bytes remain bytes.
func (t *Tokenizer) Decode(ids []int32) (string, error) { return t.decode(ids, true) }

// DecodeOrdinary omits special tokens.
func (t *Tokenizer) DecodeOrdinary(ids []int32) (string, error) { return t.decode(ids, false) }

func (t *Tokenizer) decode(ids []int32, special bool) (string, error) {
	names := make([]string, 0, len(ids))
	for i, id := range ids {
		name, ok := t.name(id)
		if a := t.addedNames[id]; a != nil {
			name = a.matched
		}
		if !ok {
			return "", fmt.Errorf("text: token %d of %d is %d, expected a number from 0 to %d of a token", i+1, len(ids), id, t.size-1)
		}
		if special || !t.specials[name] {
			names = append(names, name)
		}
	}
	if t.spaced {
		return strings.Join(names, " "), nil
	}
	before := 0
	for _, n := range names {
		before += len(n)
	}
	for _, d := range t.decoders {
		var err error
		if names, err = d(names, mostGrowth*before+growAnyway); err != nil {
			return "", err
		}
		after := 0
		for _, n := range names {
			after += len(n)
		}
		if err := grown(before, after, "decoder"); err != nil {
			return "", err
		}
	}
	return strings.Join(names, ""), nil
}

// Special returns a token's id by its role: "bos", "eos", "pad", "unk", "cls", "sep" or "mask".
func (t *Tokenizer) Special(role string) (id int32, ok bool) {
	name, ok := t.settings.roles[role]
	if !ok {
		return 0, false
	}
	return t.ID(name)
}

// ChatTemplate returns the template of conversations (package chat), or "".
func (t *Tokenizer) ChatTemplate() string { return t.settings.template }

// MaxLength is the model's maximum number of tokens, 0 if unknown.
func (t *Tokenizer) MaxLength() int { return t.settings.most }

// MarshalJSON returns a Hugging Face tokenizer.json.
func (t *Tokenizer) MarshalJSON() ([]byte, error) {
	if t.file == nil {
		return nil, fmt.Errorf("text: the tokenizer does not come from a tokenizer.json, and cannot be written as one")
	}
	return t.file, nil
}

// UnmarshalJSON reads a Hugging Face tokenizer.json. Unsupported content that would change ids is an error.
func (t *Tokenizer) UnmarshalJSON(text []byte) error {
	read, err := parse(bytes.Clone(text))
	if err != nil {
		return fmt.Errorf("text: tokenizer.json: %w", listed.Short(err))
	}
	*t = *read
	return nil
}

type encoder struct {
	t        *Tokenizer
	places   bool
	ids      []int32
	out      []token
	seen     map[string][2]int
	kept     []token
	symbols  []symbol
	merging  heap[candidate]
	nodes    []best
	matches  [][2]int
	segments []segment
	spans    [2][]span
}

const (
	mostKept    = 10_000
	longestKept = 128
)

func (t *Tokenizer) encoder() (*encoder, error) {
	if t.model == nil {
		return nil, fmt.Errorf("text: the tokenizer is empty: train one, or open one")
	}
	return t.encoders.Get().(*encoder), nil
}

func newEncoder(t *Tokenizer) *encoder {
	e := &encoder{t: t, seen: map[string][2]int{}}
	e.merging.before = func(a, b candidate) bool { return a.rank < b.rank || a.rank == b.rank && a.at < b.at }
	return e
}

const mostText = 1 << 28

func (e *encoder) encode(text string, ordinary bool, offsets *[][2]int) error {
	e.ids = e.ids[:0]
	if len(text) > mostText {
		return fmt.Errorf("text: the text has %d bytes, expected at most %d", len(text), mostText)
	}
	if !e.t.bytes {
		if err := validUTF8(text); err != nil {
			return fmt.Errorf("%w, and only tokens of bytes encode that", err)
		}
	}
	if text == "" {
		return nil
	}
	steps, size := stepsAnyway, 0
	whole := span{s: text, id: -1, steps: &steps}
	first := e.t.added.divide(0, &whole, ordinary, e.spans[0][:0])
	second := e.spans[1][:0]
	for i := range first {
		p := &first[i]
		if p.id >= 0 {
			second = append(second, *p)
			continue
		}
		if e.t.normalize != nil {
			if err := e.t.normalize(p, e.places); err != nil {
				return err
			}
			size += len(p.s)
			if err := grown(len(text), size, "normalizer"); err != nil {
				return err
			}
		}
		second = e.t.added.divide(1, p, ordinary, second)
	}
	from, to := second, first
	for _, s := range e.t.splitters {
		to, size = to[:0], 0
		for i := range from {
			p := &from[i]
			if p.id >= 0 || p.s == "" {
				to = append(to, *p)
				continue
			}
			var err error
			before := len(to)
			if to, err = s.split(e, p, to); err != nil {
				return err
			}
			for _, part := range to[before:] {
				size += len(part.s)
			}
			if err := grown(len(text), size, "pre_tokenizer"); err != nil {
				return err
			}
		}
		from, to = to, from
	}
	e.spans = [2][]span{from, to}
	defer func() { clear(from); clear(to) }() // the caller's texts
	for i := range from {
		p := &from[i]
		if p.id >= 0 {
			e.ids = append(e.ids, p.id)
			e.offset(text, p, token{p.id, 0, int32(len(p.s))}, offsets)
			continue
		}
		if p.s == "" {
			continue
		}
		tokens, err := e.piece(p.s)
		if err != nil {
			return err
		}
		for _, t := range tokens {
			e.ids = append(e.ids, t.id)
			e.offset(text, p, t, offsets)
		}
	}
	return nil
}

func (e *encoder) offset(text string, p *span, of token, offsets *[][2]int) {
	if offsets == nil {
		return
	}
	o := p.original(int(of.from), int(of.to))
	if e.t.trims {
		name := p.s // an added token takes spaces along
		if p.id < 0 {
			name, _ = e.t.vocabulary.name(of.id)
		}
		e.t.trim(text, name, len(*offsets) == 0, &o)
	}
	*offsets = append(*offsets, o)
}

func (e *encoder) piece(s string) ([]token, error) {
	if len(s) <= longestKept {
		if at, ok := e.seen[s]; ok {
			return e.kept[at[0]:at[1]], nil
		}
	}
	e.out = e.out[:0]
	if err := e.t.model.tokens(e, s); err != nil {
		return nil, err
	}
	if len(s) <= longestKept && len(e.seen) < mostKept {
		begin := len(e.kept)
		e.kept = append(e.kept, e.out...)
		e.seen[strings.Clone(s)] = [2]int{begin, len(e.kept)}
	}
	return e.out, nil
}
