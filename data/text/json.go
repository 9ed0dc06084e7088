package text

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/lazo-ml/lazo/internal/document"
)

// A tokenizer.json maps each byte to a letter: printable Latin-1 to itself, others from U+0100 on.
var (
	letters  [256]rune
	byLetter [512]int16
	alphabet []byte
)

func init() {
	for i := range byLetter {
		byLetter[i] = -1
	}
	next := rune(256)
	for i := range 256 {
		if letters[i] = rune(i); i <= ' ' || i >= 0x7f && i <= 0xa0 || i == 0xad {
			letters[i] = next
			next++
		}
		byLetter[letters[i]] = int16(i)
		alphabet = append(alphabet, byte(i))
	}
	slices.SortFunc(alphabet, func(a, b byte) int { return int(letters[a] - letters[b]) })
}

func toLetters(token string) string {
	var s strings.Builder
	for i := range len(token) {
		s.WriteRune(letters[token[i]])
	}
	return s.String()
}

func fromLetters(s string) (token string, ok bool) {
	out := make([]byte, 0, len(s))
	for _, r := range s {
		if r >= rune(len(byLetter)) || byLetter[r] < 0 {
			return "", false
		}
		out = append(out, byte(byLetter[r]))
	}
	return string(out), true
}

type file struct {
	Version       string          `json:"version"`
	Truncation    json.RawMessage `json:"truncation"`
	Padding       json.RawMessage `json:"padding"`
	AddedTokens   []addedToken    `json:"added_tokens"`
	Normalizer    json.RawMessage `json:"normalizer"`
	PreTokenizer  json.RawMessage `json:"pre_tokenizer"`
	PostProcessor json.RawMessage `json:"post_processor"`
	Decoder       json.RawMessage `json:"decoder"`
	Model         json.RawMessage `json:"model" exact:"required"`
}

type byteLevel struct {
	Type           string `json:"type"`
	AddPrefixSpace bool   `json:"add_prefix_space" exact:"required"`
	TrimOffsets    bool   `json:"trim_offsets" exact:"required"`
	UseRegex       bool   `json:"use_regex"`
}

type bpeModel struct {
	Type         string           `json:"type"`
	Dropout      *float64         `json:"dropout"`
	Unknown      *string          `json:"unk_token"`
	Prefix       *string          `json:"continuing_subword_prefix"`
	Suffix       *string          `json:"end_of_word_suffix"`
	FuseUnknown  bool             `json:"fuse_unk" exact:"null"`
	ByteFallback bool             `json:"byte_fallback" exact:"null"`
	IgnoreMerges bool             `json:"ignore_merges" exact:"null"`
	Vocabulary   map[string]int32 `json:"vocab" exact:"required"`
	Merges       merges           `json:"merges" exact:"required"`
}

type merges [][2]string

func (m *merges) UnmarshalJSON(text []byte) error {
	var pairs [][]string
	if err := strictly(text, &pairs); err != nil {
		var lines []string
		if err := strictly(text, &lines); err != nil {
			return fmt.Errorf("merges: %w", err)
		}
		pairs = nil
		for _, line := range lines {
			if strings.HasPrefix(line, "#version") {
				continue
			}
			pairs = append(pairs, strings.Split(line, " "))
		}
	}
	*m = make(merges, 0, len(pairs))
	for i, p := range pairs {
		if len(p) != 2 {
			return fmt.Errorf("merge %d is %q, expected two tokens", i, p)
		}
		*m = append(*m, [2]string(p))
	}
	return nil
}

func parse(text []byte) (*Tokenizer, error) {
	if !utf8.Valid(text) {
		return nil, fmt.Errorf("it is not valid UTF-8")
	}
	var f file
	if err := strictly(text, &f); err != nil {
		return nil, err
	}
	if f.Version != "" && f.Version != "1.0" {
		return nil, fmt.Errorf("its version is %s, expected 1.0", quoted(f.Version))
	}
	t, err := f.tokenizer()
	if err != nil {
		return nil, err
	}
	t.file = text
	return t, nil
}

type filePart struct {
	to   *json.RawMessage
	from any
}

func (f *file) write(parts []filePart) (err error) {
	for _, p := range parts {
		if *p.to, err = json.Marshal(p.from); err != nil {
			return err
		}
	}
	return nil
}

func (f *file) written(parts []filePart) (*Tokenizer, error) {
	if err := f.write(parts); err != nil {
		return nil, err
	}
	content, err := json.Marshal(f)
	if err != nil {
		return nil, err
	}
	return parse(content)
}

func (f *file) tokenizer() (*Tokenizer, error) {
	t := &Tokenizer{addedNames: map[int32]*addedToken{}}
	r := reader{t: t}
	toLetters := false
	if !absent(f.Normalizer) {
		if err := r.component("normalizer", f.Normalizer, r.normalizer); err != nil {
			return nil, err
		}
		t.normalize = inSequence(r.normalizers)
	}
	if !absent(f.PreTokenizer) {
		if err := r.component("pre_tokenizer", f.PreTokenizer, r.splitter); err != nil {
			return nil, err
		}
		if n := len(t.splitters); n > 0 {
			if _, toLetters = t.splitters[n-1].(toBytes); toLetters {
				t.splitters = t.splitters[:n-1]
			}
		}
	}
	raw, err := r.model(f.Model, toLetters)
	if err != nil {
		return nil, fmt.Errorf("model: %w", err)
	}
	if toLetters && !raw {
		t.splitters = append(t.splitters, toBytes{})
	}
	t.bytes = raw && t.normalize == nil
	for _, s := range t.splitters {
		switch of := s.(type) {
		case byPattern, leadingSpace:
		case metaspace:
			t.bytes = false
			t.wantsPlaces = t.wantsPlaces || of.scheme == "first" && t.normalize != nil
		default:
			t.bytes = false
		}
	}
	for _, s := range t.splitters {
		if of, ok := s.(metaspace); ok && of.scheme == "first" {
			t.wantsPlaces = true
		}
	}
	if err := t.addTokens(f.AddedTokens); err != nil {
		return nil, err
	}
	t.size = int32(len(t.vocabulary.names))
	for id := range t.addedNames {
		t.size = max(t.size, id+1)
	}
	t.single, t.pair = []piecePart{{text: 0}}, []piecePart{{text: 0}, {text: 1, kind: 1}}
	if !absent(f.PostProcessor) {
		if err := r.component("post_processor", f.PostProcessor, r.processor); err != nil {
			return nil, err
		}
	}
	for _, p := range append(t.single[:len(t.single):len(t.single)], t.pair...) {
		for _, id := range p.ids {
			if _, ok := t.name(id); !ok {
				return nil, fmt.Errorf("the post_processor adds the token %d, which does not exist", id)
			}
		}
	}
	t.spaced = absent(f.Decoder)
	if !t.spaced {
		if err := r.component("decoder", f.Decoder, r.decoder); err != nil {
			return nil, err
		}
	}
	t.encoders = &sync.Pool{New: func() any { return newEncoder(t) }}
	return t, nil
}

func absent(part json.RawMessage) bool { return len(part) == 0 || string(part) == "null" }

func strictly(text []byte, to any) error { return document.Exact(text, to, true) }

type reader struct {
	t           *Tokenizer
	normalizers []normalizer
	templates   int
	count       int
}

const (
	mostComponents = 100
	mostDeep       = 8
)

func (r *reader) component(what string, part json.RawMessage, read func(kind string, part json.RawMessage) error) error {
	var walk func(part json.RawMessage, depth int) error
	walk = func(part json.RawMessage, depth int) error {
		var head struct{ Type string }
		if err := json.Unmarshal(part, &head); err != nil {
			return err
		}
		if r.count++; r.count > mostComponents || depth > mostDeep {
			return fmt.Errorf("there are more than %d components, or more than %d in each other", mostComponents, mostDeep)
		}
		if head.Type != "Sequence" {
			if err := read(head.Type, part); err != nil {
				return fmt.Errorf("%s: %w", quoted(head.Type), err)
			}
			return nil
		}
		var all struct {
			Type          string            `json:"type"`
			Normalizers   []json.RawMessage `json:"normalizers"`
			PreTokenizers []json.RawMessage `json:"pretokenizers"`
			Processors    []json.RawMessage `json:"processors"`
			Decoders      []json.RawMessage `json:"decoders"`
		}
		if err := strictly(part, &all); err != nil {
			return err
		}
		list := map[string][]json.RawMessage{"normalizer": all.Normalizers, "pre_tokenizer": all.PreTokenizers, "post_processor": all.Processors,
			"decoder": all.Decoders}[what]
		if list == nil {
			return fmt.Errorf("a Sequence lacks the list of a %s", what)
		}
		for _, p := range list {
			if err := walk(p, depth+1); err != nil {
				return err
			}
		}
		return nil
	}
	if err := walk(part, 0); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

func unsupported(expected string) error {
	return fmt.Errorf("it is not supported, expected one of %s", expected)
}

type patternPart struct {
	String *string `json:"String"`
	Regex  *string `json:"Regex"`
}

func (p patternPart) read() (*pattern, error) {
	switch {
	case p.Regex != nil && p.String == nil:
		return readPattern(*p.Regex)
	case p.String != nil && p.Regex == nil && len(*p.String) <= mostPattern:
		return literalPattern(*p.String), nil
	}
	return nil, fmt.Errorf("the pattern is neither a String nor a Regex of at most %d bytes", mostPattern)
}

type typed struct {
	Type string `json:"type"`
}

func (r *reader) normalizer(kind string, part json.RawMessage) error {
	add := func(n normalizer, err error) error {
		r.normalizers = append(r.normalizers, n)
		return err
	}
	plain := map[string]normalizer{"NFC": decompose(false, true), "NFD": decompose(false, false), "NFKC": decompose(true, true), "NFKD": decompose(true, false),
		"Lowercase": lowercase, "StripAccents": stripAccents, "Nmt": nmt, "ByteLevel": func(p *span, places bool) error { return byteLetters(p, places) }}
	if n := plain[kind]; n != nil {
		return add(n, strictly(part, &typed{}))
	}
	switch kind {
	case "BertNormalizer":
		var b bertNormalizer
		err := strictly(part, &b)
		return add(b.normalize, err)
	case "Strip":
		var s struct {
			typed
			Left  bool `json:"strip_left" exact:"required"`
			Right bool `json:"strip_right" exact:"required"`
		}
		err := strictly(part, &s)
		return add(strip(s.Left, s.Right), err)
	case "Prepend":
		var s struct {
			typed
			Prepend string `json:"prepend" exact:"required"`
		}
		err := strictly(part, &s)
		return add(func(p *span, places bool) error { p.prepend(s.Prepend, places); return nil }, err)
	case "Replace":
		of, content, err := readReplace(part)
		return add(replaceAll(of, content), err)
	case "Precompiled":
		var s struct {
			typed
			Blob string `json:"precompiled_charsmap" exact:"required"`
		}
		if err := strictly(part, &s); err != nil {
			return err
		}
		blob, err := base64.StdEncoding.DecodeString(s.Blob)
		if err != nil {
			return err
		}
		m, err := readCharsmap(blob)
		if err != nil {
			return err
		}
		return add(m.normalize, nil)
	}
	return unsupported("BertNormalizer, NFC, NFD, NFKC, NFKD, Lowercase, Strip, StripAccents, Replace, Prepend, Precompiled, Nmt, ByteLevel and Sequence")
}

func readReplace(part json.RawMessage) (*pattern, string, error) {
	var s struct {
		typed
		Pattern patternPart `json:"pattern" exact:"required"`
		Content string      `json:"content" exact:"required"`
	}
	if err := strictly(part, &s); err != nil {
		return nil, "", err
	}
	of, err := s.Pattern.read()
	return of, s.Content, err
}

func (r *reader) splitter(kind string, part json.RawMessage) error {
	add := func(s splitter, err error) error {
		r.t.splitters = append(r.t.splitters, s)
		return err
	}
	switch kind {
	case "ByteLevel":
		b := byteLevel{UseRegex: true}
		if err := strictly(part, &b); err != nil {
			return err
		}
		if b.AddPrefixSpace {
			_ = add(leadingSpace{}, nil)
		}
		if b.UseRegex {
			_ = add(byPattern{of: &pattern{gpt2: true}, by: isolated}, nil)
		}
		return add(toBytes{}, nil)
	case "Split":
		var s struct {
			typed
			Pattern  patternPart `json:"pattern" exact:"required"`
			Behavior behavior    `json:"behavior" exact:"required"`
			Invert   bool        `json:"invert" exact:"required"`
		}
		if err := strictly(part, &s); err != nil {
			return err
		}
		if err := s.Behavior.known(); err != nil {
			return err
		}
		of, err := s.Pattern.read()
		return add(byPattern{of: of, inverted: s.Invert, by: s.Behavior}, err)
	case "BertPreTokenizer":
		_ = add(byRune{isSpace, removed}, nil)
		return add(byRune{isPunctuation, isolated}, strictly(part, &typed{}))
	case "Whitespace":
		return add(words{}, strictly(part, &typed{}))
	case "WhitespaceSplit":
		return add(byRune{isSpace, removed}, strictly(part, &typed{}))
	case "Metaspace":
		m, err := readMetaspace(part)
		return add(m, err)
	case "Punctuation":
		s := struct {
			typed
			Behavior behavior `json:"behavior"`
		}{Behavior: isolated}
		if err := strictly(part, &s); err != nil {
			return err
		}
		return add(byRune{isPunctuation, s.Behavior}, s.Behavior.known())
	case "Digits":
		var s struct {
			typed
			Individual bool `json:"individual_digits" exact:"required"`
		}
		err := strictly(part, &s)
		by := contiguous
		if s.Individual {
			by = isolated
		}
		return add(byRune{isNumeric, by}, err)
	}
	return unsupported("ByteLevel, Split, BertPreTokenizer, Whitespace, WhitespaceSplit, Metaspace, Punctuation, Digits and Sequence")
}

func (b behavior) known() error {
	if all := []behavior{removed, isolated, mergedWithPrevious, mergedWithNext, contiguous}; !slices.Contains(all, b) {
		return fmt.Errorf("its behavior is %s, expected one of %v", quoted(string(b)), all)
	}
	return nil
}

func readMetaspace(part json.RawMessage) (metaspace, error) {
	s := struct {
		typed
		Mark   string `json:"replacement" exact:"required"`
		Prefix *bool  `json:"add_prefix_space"`
		Scheme string `json:"prepend_scheme"`
		Split  *bool  `json:"split"`
		Old    any    `json:"str_rep"`
	}{Scheme: "always"}
	if err := strictly(part, &s); err != nil {
		return metaspace{}, err
	}
	if utf8.RuneCountInString(s.Mark) != 1 || !slices.Contains([]string{"always", "first", "never"}, s.Scheme) || s.Prefix != nil && !*s.Prefix && s.Scheme != "never" {
		return metaspace{}, fmt.Errorf("its replacement is %s, its prepend_scheme %s, expected one character, and always, first or never, which add_prefix_space false needs",
			quoted(s.Mark), quoted(s.Scheme))
	}
	return metaspace{s.Mark, s.Scheme, s.Split == nil || *s.Split}, nil
}

func (r *reader) model(part json.RawMessage, toLetters bool) (raw bool, err error) {
	var head struct {
		Type   string
		Merges json.RawMessage
	}
	if absent(part) {
		return false, fmt.Errorf("it is missing")
	}
	if err := json.Unmarshal(part, &head); err != nil {
		return false, err
	}
	if head.Type == "" && head.Merges != nil { // the first files did not name the model
		head.Type = "BPE"
	}
	switch head.Type {
	case "BPE":
		var m bpeModel
		if err := strictly(part, &m); err != nil {
			return false, err
		}
		return r.bpe(m, toLetters)
	case "WordPiece":
		var m struct {
			typed
			Unknown string           `json:"unk_token" exact:"required"`
			Prefix  string           `json:"continuing_subword_prefix" exact:"required"`
			Longest *int             `json:"max_input_chars_per_word" exact:"required"`
			Vocab   map[string]int32 `json:"vocab" exact:"required"`
		}
		if err := strictly(part, &m); err != nil {
			return false, err
		}
		if m.Longest == nil || *m.Longest < 0 {
			return false, fmt.Errorf("it has no max_input_chars_per_word, or one below 0")
		}
		if r.t.vocabulary, err = newVocabulary(m.Vocab); err != nil {
			return false, err
		}
		r.t.model, err = newWordPiece(r.t.vocabulary, m.Unknown, m.Prefix, *m.Longest)
		return false, err
	case "WordLevel":
		var m struct {
			typed
			Unknown string           `json:"unk_token" exact:"required"`
			Vocab   map[string]int32 `json:"vocab" exact:"required"`
		}
		if err := strictly(part, &m); err != nil {
			return false, err
		}
		if r.t.vocabulary, err = newVocabulary(m.Vocab); err != nil {
			return false, err
		}
		w := &wordLevel{ids: m.Vocab, unknown: -1, missing: m.Unknown}
		if id, ok := m.Vocab[m.Unknown]; ok {
			w.unknown = id
		}
		r.t.model = w
		return false, nil
	case "Unigram":
		var m struct {
			typed
			Unknown      *int           `json:"unk_id"`
			Vocab        []unigramToken `json:"vocab" exact:"required"`
			ByteFallback bool           `json:"byte_fallback"`
		}
		if err := strictly(part, &m); err != nil {
			return false, err
		}
		return false, r.unigram(m.Vocab, m.Unknown, m.ByteFallback)
	}
	return false, fmt.Errorf("%s: %w", quoted(head.Type), unsupported("BPE, WordPiece, WordLevel and Unigram"))
}

type unigramToken struct {
	name  string
	score float64
}

func (u *unigramToken) UnmarshalJSON(text []byte) error {
	if err := both(text, &u.name, &u.score); err != nil {
		return fmt.Errorf("a token is %.80s, expected its text and its score", text)
	}
	return nil
}

func both(text []byte, first, second any) error {
	var parts []json.RawMessage
	if err := json.Unmarshal(text, &parts); err != nil {
		return err
	}
	if len(parts) != 2 {
		return fmt.Errorf("a list of %d values, expected 2", len(parts))
	}
	if err := strictly(parts[0], first); err != nil {
		return err
	}
	return strictly(parts[1], second)
}

func (r *reader) unigram(vocab []unigramToken, unknown *int, byteFallback bool) (err error) {
	if len(vocab) == 0 || len(vocab) > mostTokens {
		return fmt.Errorf("it has %d tokens, expected 1 to %d", len(vocab), mostTokens)
	}
	u := &unigram{unknown: -1, least: vocab[0].score}
	if unknown != nil {
		if *unknown < 0 || *unknown >= len(vocab) {
			return fmt.Errorf("its unk_id is %d, expected one from 0 to %d", *unknown, len(vocab)-1)
		}
		u.unknown = int32(*unknown)
	}
	v := &vocabulary{ids: make(map[string]int32, len(vocab))}
	for i, of := range vocab {
		if len(of.name) > longestName {
			return fmt.Errorf("the token %s is too long, expected at most %d bytes", quoted(of.name), longestName)
		}
		v.ids[of.name] = int32(i)
		v.names, v.has = append(v.names, of.name), append(v.has, true)
		u.scores = append(u.scores, of.score)
		u.least = min(u.least, of.score)
	}
	if len(v.ids) != len(vocab) {
		return fmt.Errorf("%d tokens appear twice", len(vocab)-len(v.ids))
	}
	u.vocabulary, u.words = v, newTrie(v.ids)
	if byteFallback {
		u.bytes = v.byteTokens()
	}
	r.t.vocabulary, r.t.model = v, u
	return nil
}

func (r *reader) bpe(m bpeModel, toLetters bool) (raw bool, err error) {
	if m.Dropout != nil && *m.Dropout != 0 {
		return false, fmt.Errorf("it has dropout %g, expected none", *m.Dropout)
	}
	v, err := newVocabulary(m.Vocabulary)
	if err != nil {
		return false, err
	}
	b := &bpe{vocabulary: v, ranks: make(map[pair]ranked, len(m.Merges)), unknown: -1, fuse: m.FuseUnknown}
	if m.Prefix != nil {
		b.prefix = *m.Prefix
	}
	if m.Suffix != nil {
		b.suffix = *m.Suffix
	}
	if m.Unknown != nil {
		id, ok := v.ids[*m.Unknown]
		if b.unknown = id; !ok {
			b.unknown, b.unknownError = -1, *m.Unknown
		}
	}
	if m.ByteFallback {
		b.bytes = v.byteTokens()
	}
	id := func(i int, name string) (int32, error) {
		id, ok := v.ids[name]
		if !ok {
			return 0, fmt.Errorf("merge %d: the vocabulary lacks %s", i, quoted(name))
		}
		return id, nil
	}
	for i, of := range m.Merges {
		second := of[1]
		if len(second) < len(b.prefix) {
			return false, fmt.Errorf("merge %d: %s is shorter than the prefix %s", i, quoted(second), quoted(b.prefix))
		}
		var ids [3]int32
		for j, name := range []string{of[0], second, of[0] + second[len(b.prefix):]} {
			if ids[j], err = id(i, name); err != nil {
				return false, err
			}
		}
		b.ranks[pair(ids[:2])] = ranked{int32(i), ids[2]}
	}
	if toLetters && b.prefix == "" && b.suffix == "" {
		var starts [256]int32
		raw = true
		for i, l := range letters {
			id, ok := v.ids[string(l)]
			starts[i], raw = id, raw && ok
		}
		if raw {
			b.starts = &starts
		}
	}
	if m.IgnoreMerges {
		b.whole = v.ids
		if raw {
			b.whole = make(map[string]int32, len(v.ids))
			for name, id := range v.ids {
				if text, ok := fromLetters(name); ok {
					b.whole[text] = id
				}
			}
		}
	}
	r.t.vocabulary, r.t.model = v, b
	return raw, nil
}

type aroundPart struct{ id int32 }

func (a *aroundPart) UnmarshalJSON(text []byte) error {
	var name string
	if err := both(text, &name, &a.id); err != nil {
		return fmt.Errorf("a token is %.80s, expected its text and its number", text)
	}
	return nil
}

type templatePart struct {
	Token *struct {
		ID   string `json:"id" exact:"required"`
		Type int32  `json:"type_id" exact:"required"`
	} `json:"SpecialToken"`
	Text *struct {
		ID   string `json:"id" exact:"required"`
		Type int32  `json:"type_id" exact:"required"`
	} `json:"Sequence"`
}

type templateToken struct {
	ID     string   `json:"id" exact:"required"`
	IDs    []int32  `json:"ids" exact:"required"`
	Tokens []string `json:"tokens" exact:"required"`
}

func (r *reader) processor(kind string, part json.RawMessage) error {
	if kind != "ByteLevel" {
		if r.templates++; r.templates > 1 {
			return fmt.Errorf("a second one adds tokens, expected one")
		}
	}
	switch kind {
	case "ByteLevel":
		var b byteLevel
		if err := strictly(part, &b); err != nil {
			return err
		}
		if b.TrimOffsets {
			r.t.trims, r.t.trimsFirst = true, b.AddPrefixSpace
		}
		return nil
	case "BertProcessing", "RobertaProcessing":
		var s struct {
			typed
			Sep   aroundPart `json:"sep" exact:"required"`
			Cls   aroundPart `json:"cls" exact:"required"`
			Trim  *bool      `json:"trim_offsets"`
			Space *bool      `json:"add_prefix_space"`
		}
		if err := strictly(part, &s); err != nil {
			return err
		}
		if kind == "RobertaProcessing" {
			if s.Trim == nil || s.Space == nil {
				return fmt.Errorf("it lacks trim_offsets or add_prefix_space")
			}
			if *s.Trim {
				r.t.trims, r.t.trimsFirst = true, *s.Space
			}
		}
		r.t.single, r.t.pair = around(s.Cls.id, s.Sep.id, kind == "RobertaProcessing")
		return nil
	case "TemplateProcessing":
		var s struct {
			typed
			Single []templatePart           `json:"single" exact:"required"`
			Pair   []templatePart           `json:"pair" exact:"required"`
			Tokens map[string]templateToken `json:"special_tokens" exact:"required"`
		}
		if err := strictly(part, &s); err != nil {
			return err
		}
		read := func(parts []templatePart, texts int) (out []piecePart, err error) {
			if len(parts) > mostComponents {
				return nil, fmt.Errorf("the template has %d parts, expected at most %d", len(parts), mostComponents)
			}
			for _, p := range parts {
				switch {
				case p.Text != nil && p.Token != nil:
					return nil, fmt.Errorf("a part of the template is a SpecialToken and a Sequence, expected one")
				case p.Text != nil && p.Text.ID == "A":
					out = append(out, piecePart{text: 0, kind: p.Text.Type})
				case p.Text != nil && p.Text.ID == "B" && texts == 2:
					out = append(out, piecePart{text: 1, kind: p.Text.Type})
				case p.Token != nil && len(s.Tokens[p.Token.ID].IDs) > 0 && len(s.Tokens[p.Token.ID].IDs) <= mostComponents:
					out = append(out, piecePart{text: -1, kind: p.Token.Type, ids: s.Tokens[p.Token.ID].IDs})
				default:
					return nil, fmt.Errorf("a part of the template for %d texts is neither one of them nor a token of special_tokens", texts)
				}
			}
			return out, nil
		}
		var err error
		if r.t.single, err = read(s.Single, 1); err != nil {
			return err
		}
		r.t.pair, err = read(s.Pair, 2)
		return err
	}
	return unsupported("TemplateProcessing, BertProcessing, RobertaProcessing, ByteLevel and Sequence")
}

func (r *reader) decoder(kind string, part json.RawMessage) error {
	add := func(d decoder, err error) error {
		r.t.decoders = append(r.t.decoders, d)
		return err
	}
	switch kind {
	case "ByteLevel":
		return add(decodeBytes, strictly(part, &byteLevel{}))
	case "WordPiece":
		var s struct {
			typed
			Prefix  string `json:"prefix" exact:"required"`
			Cleanup bool   `json:"cleanup" exact:"required"`
		}
		err := strictly(part, &s)
		return add(decodeWordPiece(s.Prefix, s.Cleanup), err)
	case "Metaspace":
		m, err := readMetaspace(part)
		return add(decodeMetaspace(m), err)
	case "ByteFallback":
		return add(decodeByteFallback, strictly(part, &typed{}))
	case "Fuse":
		return add(fuse, strictly(part, &typed{}))
	case "Strip":
		var s struct {
			typed
			Content string `json:"content" exact:"required"`
			Start   int    `json:"start" exact:"required"`
			Stop    int    `json:"stop" exact:"required"`
		}
		err := strictly(part, &s)
		if utf8.RuneCountInString(s.Content) != 1 && err == nil {
			err = fmt.Errorf("its content is %s, expected one character", quoted(s.Content))
		}
		c, _ := utf8.DecodeRuneInString(s.Content)
		return add(decodeStrip(c, s.Start, s.Stop), err)
	case "Replace":
		of, content, err := readReplace(part)
		return add(decodeReplace(of, content), err)
	case "BPEDecoder":
		var s struct {
			typed
			Suffix string `json:"suffix" exact:"required"`
		}
		err := strictly(part, &s)
		return add(decodeSuffix(s.Suffix), err)
	}
	return unsupported("ByteLevel, WordPiece, Metaspace, ByteFallback, Fuse, Strip, Replace, BPEDecoder and Sequence")
}

func (m merges) MarshalJSON() ([]byte, error) {
	lines := make([]string, len(m))
	for i, p := range m {
		lines[i] = p[0] + " " + p[1]
	}
	return json.Marshal(lines)
}
