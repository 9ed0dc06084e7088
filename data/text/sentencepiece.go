package text

import (
	"fmt"
	"math"
	"strings"
	"sync"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
)

type sentencePiece struct {
	*vocabulary
	kinds    []uint64
	scores   []float64
	unknown  int32
	words    *trie
	defined  *trie
	bytes    *[256]int32
	mapped   *charsmap
	unigram  bool
	prefix   bool // add_dummy_prefix
	extra    bool // remove_extra_whitespaces
	escape   bool // escape_whitespaces
	suffix   bool // treat_whitespace_as_suffix
	surface  string
	least    float64
	greatest float64
}

const (
	normalPiece = iota + 1
	unknownPiece
	controlPiece
	definedPiece
	unusedPiece
	bytePiece
)

const spaceMark = "▁"

type field struct {
	number uint64
	bytes  []byte
	fixed  uint32
	set    bool
}

type kinds map[protowire.Number]protowire.Type

func fieldsOf(message []byte, known kinds, repeated protowire.Number, each func(message []byte) error) (map[protowire.Number]field, error) {
	fields := map[protowire.Number]field{}
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return nil, protowire.ParseError(n)
		}
		message = message[n:]
		if of, ok := known[number]; ok && (of != kind || fields[number].set && number != repeated) {
			return nil, fmt.Errorf("field %d of a message has the wire type %d or comes twice, expected the type %d once", number, kind, of)
		}
		f := field{set: true}
		switch kind {
		case protowire.VarintType:
			f.number, n = protowire.ConsumeVarint(message)
		case protowire.BytesType:
			f.bytes, n = protowire.ConsumeBytes(message)
		case protowire.Fixed32Type:
			f.fixed, n = protowire.ConsumeFixed32(message)
		default:
			n = protowire.ConsumeFieldValue(number, kind, message)
		}
		if n < 0 {
			return nil, protowire.ParseError(n)
		}
		message, fields[number] = message[n:], f
		if number == repeated && each != nil {
			if err := each(f.bytes); err != nil {
				return nil, err
			}
		}
	}
	return fields, nil
}

func readSentencePiece(content []byte) (*Tokenizer, error) {
	s := &sentencePiece{unknown: -1, least: math.MaxFloat32, greatest: 0x1p-126}
	ids := map[string]int32{}
	words, defined := map[string]int32{}, map[string]int32{}
	const varint, text, fixed = protowire.VarintType, protowire.BytesType, protowire.Fixed32Type
	parts, err := fieldsOf(content, kinds{1: text, 2: text, 3: text, 5: text}, 1, func(piece []byte) error {
		f, err := fieldsOf(piece, kinds{1: text, 2: fixed, 3: varint}, 0, nil)
		if err != nil {
			return err
		}
		name, kind, score, id := string(f[1].bytes), f[3].number, float64(math.Float32frombits(f[2].fixed)), int32(len(s.kinds))
		if !f[3].set {
			kind = normalPiece
		}
		if _, twice := ids[name]; twice || name == "" || len(name) > longestName || !utf8.ValidString(name) || kind < normalPiece || kind > bytePiece || id == mostTokens ||
			math.IsNaN(score) || math.IsInf(score, 0) {
			return fmt.Errorf("piece %d is %s of kind %d with the score %g, expected a text once, of a known kind", id, quoted(name), kind, score)
		}
		ids[name] = id
		switch kind {
		case unknownPiece:
			if s.unknown >= 0 {
				return fmt.Errorf("there are two unknown pieces")
			}
			s.unknown = id
		case definedPiece:
			defined[name], words[name] = id, id
		case normalPiece:
			s.least, s.greatest = min(s.least, score), max(s.greatest, score)
			words[name] = id
		case unusedPiece:
			words[name] = id
		}
		s.kinds, s.scores = append(s.kinds, kind), append(s.scores, score)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if s.unknown < 0 {
		return nil, fmt.Errorf("it has %d pieces, of which none is unknown", len(s.kinds))
	}
	if s.vocabulary, err = newVocabulary(ids); err != nil {
		return nil, err
	}
	trainer, err := fieldsOf(parts[2].bytes, kinds{3: varint, 24: varint, 35: varint, 44: text}, 0, nil)
	if err != nil {
		return nil, err
	}
	normalizer, err := fieldsOf(parts[3].bytes, kinds{2: text, 3: varint, 4: varint, 5: varint}, 0, nil)
	if err != nil {
		return nil, err
	}
	denormalizer, err := fieldsOf(parts[5].bytes, kinds{2: text}, 0, nil)
	if err != nil {
		return nil, err
	}
	if len(denormalizer[2].bytes) > 0 {
		return nil, fmt.Errorf("it has a denormalizer, expected none")
	}
	switch kind := trainer[3].number; {
	case kind == 1 || !trainer[3].set:
		s.unigram = true
	case kind != 2:
		return nil, fmt.Errorf("its model_type is %d, expected 1 (unigram) or 2 (BPE)", kind)
	}
	on := func(f field) bool { return !f.set || f.number != 0 }
	s.prefix, s.extra, s.escape = on(normalizer[3]), on(normalizer[4]), on(normalizer[5])
	s.suffix = trainer[24].number != 0
	if s.surface = " ⁇ "; trainer[44].set {
		s.surface = string(trainer[44].bytes)
	}
	if len(normalizer[2].bytes) > 0 {
		if s.mapped, err = readCharsmap(normalizer[2].bytes); err != nil {
			return nil, err
		}
	}
	if trainer[35].number != 0 {
		s.bytes = s.byteTokens()
		for _, id := range s.bytes {
			if id < 0 || s.kinds[id] != bytePiece {
				return nil, fmt.Errorf("it has byte_fallback, and lacks a byte")
			}
		}
	}
	s.words, s.defined = newTrie(words), newTrie(defined)
	t := &Tokenizer{vocabulary: s.vocabulary, model: s, addedNames: map[int32]*addedToken{}, specials: map[string]bool{}, normalize: s.normalize}
	t.size = int32(len(s.kinds))
	t.single, t.pair = []piecePart{{text: 0}}, []piecePart{{text: 0}, {text: 1, kind: 1}}
	for name, id := range ids {
		if s.kinds[id] == controlPiece {
			t.specials[name] = true
		}
	}
	t.decoders = []decoder{s.decode}
	t.encoders = &sync.Pool{New: func() any { return newEncoder(t) }}
	return t, nil
}

func (s *sentencePiece) normalizePrefix(text string) (string, int) {
	n := 0
	s.defined.prefixes(text, func(length int, _ int32) { n = length })
	if n > 0 {
		return text[:n], n
	}
	by := ""
	if s.mapped != nil {
		s.mapped.prefixes(text, func(length int, to string) bool { n, by = length, to; return true })
	}
	if n > 0 {
		return by, n
	}
	_, n = utf8.DecodeRuneInString(text)
	return text[:n], n
}

func (s *sentencePiece) normalize(p *span, places bool) error {
	text, at := p.s, 0
	mark := " "
	if s.escape {
		mark = spaceMark
	}
	if s.extra {
		for at < len(text) {
			by, n := s.normalizePrefix(text[at:])
			if by != " " {
				break
			}
			at += n
		}
	}
	var out []byte
	var from []place
	add := func(part string, begin, end int) {
		out = append(out, part...)
		for range len(part) {
			from = append(from, place{int32(p.begin + begin), int32(p.begin + end)})
		}
	}
	some := at < len(text)
	if some && s.prefix && !s.suffix {
		add(mark, at, at)
	}
	spaced := s.extra
	for at < len(text) {
		by, n := s.normalizePrefix(text[at:])
		for spaced && strings.HasPrefix(by, " ") {
			by = by[1:]
		}
		if by != "" {
			add(strings.ReplaceAll(by, " ", mark), at, at+n)
			spaced = strings.HasSuffix(by, " ")
		}
		at += n
		spaced = spaced && s.extra
		if len(out) > mostGrowth*len(text)+growAnyway {
			return fmt.Errorf("text: the normalizer of sentencepiece makes more than %d bytes of %d", mostGrowth*len(text)+growAnyway, len(text))
		}
	}
	if s.extra {
		for strings.HasSuffix(string(out[max(0, len(out)-len(mark)):]), mark) {
			out, from = out[:len(out)-len(mark)], from[:len(from)-len(mark)]
		}
	}
	if some && s.prefix && s.suffix {
		add(mark, at, at)
	}
	if p.s = string(out); places {
		p.at = from
	}
	return nil
}

func (s *sentencePiece) tokens(e *encoder, text string) error {
	kept := len(e.out)
	if s.unigram {
		s.path(e, text)
	} else {
		s.merge(e, text)
	}
	all := e.out[kept:]
	lacks := false
	for _, t := range all {
		lacks = lacks || t.id == s.unknown
	}
	if !lacks {
		return nil
	}
	all = append([]token{}, all...)
	e.out = e.out[:kept]
	for _, t := range all {
		last := len(e.out) - 1
		switch {
		case t.id != s.unknown:
			e.out = append(e.out, t)
		case s.bytes != nil:
			for i := t.from; i < t.to; i++ {
				e.out = append(e.out, token{s.bytes[text[i]], t.from, t.to})
			}
		case last >= kept && e.out[last].id == s.unknown:
			e.out[last].to = t.to
		default:
			e.out = append(e.out, t)
		}
	}
	return nil
}

// path is Viterbi's in float32; symbols that the user defined always win.
func (s *sentencePiece) path(e *encoder, text string) {
	nodes := e.nodes[:0]
	for range len(text) + 1 {
		nodes = append(nodes, best{from: -1})
	}
	e.nodes = nodes
	consider := func(at, end int, score float64, id int32) {
		if score = float64(float32(score + nodes[at].score)); nodes[end].from < 0 || score > nodes[end].score {
			nodes[end] = best{score, int32(at), id}
		}
	}
	unknown := float64(float32(s.least) - unknownPenalty)
	for at := 0; at < len(text); {
		_, width := utf8.DecodeRuneInString(text[at:])
		whole := false
		s.words.prefixes(text[at:], func(n int, id int32) {
			score := s.scores[id]
			switch s.kinds[id] {
			case unusedPiece:
				return
			case definedPiece:
				score = float64(float32(n)*float32(s.greatest)) - 0.1
			}
			consider(at, at+n, score, id)
			whole = whole || n == width
		})
		if !whole {
			consider(at, at+width, unknown, s.unknown)
		}
		at += width
	}
	kept := len(e.out)
	for end := len(text); end > 0; {
		n := nodes[end]
		e.out = append(e.out, token{n.id, n.from, int32(end)})
		end = int(n.from)
	}
	for i, j := kept, len(e.out)-1; i < j; i, j = i+1, j-1 {
		e.out[i], e.out[j] = e.out[j], e.out[i]
	}
}

type scored struct {
	score       float64
	at          int32
	left, right int32
}

func (s *sentencePiece) merge(e *encoder, text string) {
	queue := heap[scored]{before: func(a, b scored) bool { return a.score > b.score || a.score == b.score && a.at < b.at }}
	symbols := e.symbols[:0]
	var begins []int32
	for at := 0; at < len(text); {
		n, id := 0, int32(-1)
		s.defined.prefixes(text[at:], func(length int, of int32) { n, id = length, of })
		if n == 0 {
			_, n = utf8.DecodeRuneInString(text[at:])
		}
		k := int32(len(symbols))
		symbols, begins = append(symbols, symbol{id, k - 1, k + 1, int32(n)}), append(begins, int32(at))
		at += n
	}
	if len(symbols) > 0 {
		symbols[len(symbols)-1].right = -1
	}
	e.symbols = symbols
	unused := map[string][2]int32{} // halves of a piece that must not come out
	consider := func(at int32) {
		if at < 0 || symbols[at].right < 0 || symbols[at].id >= 0 {
			return
		}
		right := symbols[symbols[at].right]
		if right.id >= 0 {
			return
		}
		part := text[begins[at] : begins[at]+symbols[at].length+right.length]
		id, ok := s.ids[part]
		if !ok || s.kinds[id] != normalPiece && s.kinds[id] != definedPiece && s.kinds[id] != unusedPiece {
			return
		}
		queue.push(scored{s.scores[id], at, symbols[at].length, right.length})
		if s.kinds[id] == unusedPiece {
			unused[part] = [2]int32{symbols[at].length, right.length}
		}
	}
	for i := range symbols {
		consider(int32(i))
	}
	for top, ok := queue.pop(); ok; top, ok = queue.pop() {
		at := &symbols[top.at]
		if at.length != top.left || at.right < 0 || symbols[at.right].length != top.right {
			continue
		}
		gone := &symbols[at.right]
		at.right, at.length, gone.length = gone.right, at.length+gone.length, 0
		if at.right >= 0 {
			symbols[at.right].left = top.at
		}
		consider(at.left)
		consider(top.at)
	}
	var emit func(from, to int32)
	emit = func(from, to int32) {
		part := text[from:to]
		id, ok := s.ids[part]
		if !ok {
			e.out = append(e.out, token{s.unknown, from, to})
			return
		}
		if halves, of := unused[part]; of && s.kinds[id] == unusedPiece {
			emit(from, from+halves[0])
			emit(from+halves[0], to)
			return
		}
		e.out = append(e.out, token{id, from, to})
	}
	for i, x := range symbols {
		if x.length > 0 {
			emit(begins[i], begins[i]+x.length)
		}
	}
}

func (s *sentencePiece) decode(names []string, _ int) ([]string, error) {
	var out strings.Builder
	var held []byte
	flush := func() {
		for len(held) > 0 {
			r, n := utf8.DecodeRune(held)
			out.WriteRune(r)
			held = held[n:]
		}
	}
	begin, seen := true, false
	for _, name := range names {
		id := s.ids[name]
		if s.kinds[id] == bytePiece {
			held = append(held, hexByte(name))
			continue
		}
		flush()
		if seen || out.Len() > 0 {
			begin = false
		}
		seen = false
		switch s.kinds[id] {
		case controlPiece:
		case unknownPiece:
			out.WriteString(s.surface)
		default:
			if begin && (s.prefix || s.extra) {
				name, seen = strings.CutPrefix(name, spaceMark)
				seen = seen && !s.extra
			}
			out.WriteString(strings.ReplaceAll(name, spaceMark, " "))
		}
	}
	flush()
	return []string{out.String()}, nil
}

func hexByte(name string) byte {
	var b byte
	_, _ = fmt.Sscanf(name, "<0x%02X>", &b)
	return b
}
