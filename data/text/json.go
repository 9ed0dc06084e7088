package text

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/lazo-ml/lazo/internal/listed"
)

// A tokenizer.json maps each byte to a letter: printable Latin-1 to itself, others to letters from U+0100 on.
var (
	letters  [256]rune
	byLetter = map[rune]byte{}
	alphabet []byte
)

func init() {
	next := rune(256)
	for i := range 256 {
		if letters[i] = rune(i); i <= ' ' || i >= 0x7f && i <= 0xa0 || i == 0xad {
			letters[i] = next
			next++
		}
		byLetter[letters[i]] = byte(i)
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
		b, ok := byLetter[r]
		if !ok {
			return "", false
		}
		out = append(out, b)
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
	Model         json.RawMessage `json:"model"`
}

type byteLevel struct {
	Type           string `json:"type"`
	AddPrefixSpace bool   `json:"add_prefix_space"`
	TrimOffsets    bool   `json:"trim_offsets"`
	UseRegex       bool   `json:"use_regex"`
}

type bpeModel struct {
	Type         string           `json:"type"`
	Dropout      *float64         `json:"dropout"`
	Unknown      *string          `json:"unk_token"`
	Prefix       *string          `json:"continuing_subword_prefix"`
	Suffix       *string          `json:"end_of_word_suffix"`
	FuseUnknown  bool             `json:"fuse_unk"`
	ByteFallback bool             `json:"byte_fallback"`
	IgnoreMerges bool             `json:"ignore_merges"`
	Vocabulary   map[string]int32 `json:"vocab"`
	Merges       json.RawMessage  `json:"merges"`
}

// MarshalJSON returns a tokenizer.json of Hugging Face.
func (b *BPE) MarshalJSON() ([]byte, error) {
	m := bpeModel{Type: "BPE", Vocabulary: make(map[string]int32, len(b.tokens))}
	names := make([]string, len(b.tokens))
	for i, t := range b.tokens {
		names[i] = toLetters(t)
	}
	for _, a := range b.added {
		names[a.ID] = a.Content
	}
	for i, name := range names {
		if of, twice := m.Vocabulary[name]; twice { // the file read had two names for the same bytes
			return nil, fmt.Errorf("text: tokens %d and %d are both %s, and a tokenizer.json has one of a name", of, i, listed.Quoted(name))
		}
		m.Vocabulary[name] = int32(i)
	}
	merges := make([]string, len(b.merges))
	for i, of := range b.merges {
		merges[i] = names[of.of[0]] + " " + names[of.of[1]]
	}
	level := byteLevel{Type: "ByteLevel", TrimOffsets: true, UseRegex: true}
	f := file{Version: "1.0", AddedTokens: b.added}
	if f.AddedTokens == nil {
		f.AddedTokens = []addedToken{}
	}
	for _, part := range []struct {
		to   *json.RawMessage
		from any
	}{{&m.Merges, merges}, {&f.PreTokenizer, level}, {&f.Decoder, level}, {&f.Model, &m}} {
		var err error
		if *part.to, err = json.Marshal(part.from); err != nil {
			return nil, fmt.Errorf("text: %w", err)
		}
	}
	return json.Marshal(f)
}

// UnmarshalJSON reads a tokenizer.json of Hugging Face like GPT-2's: model BPE, pre-tokenizer and decoder ByteLevel.
// Other content, which would change the tokens, is an error, which leaves the BPE unchanged.
func (b *BPE) UnmarshalJSON(text []byte) error {
	read, err := parse(text)
	if err != nil {
		return fmt.Errorf("text: tokenizer.json: %w", listed.Short(err))
	}
	*b = *read
	return nil
}

func parse(text []byte) (*BPE, error) {
	var f file
	if err := strictly(text, &f); err != nil {
		return nil, err
	}
	for name, part := range map[string]json.RawMessage{"normalizer": f.Normalizer, "truncation": f.Truncation, "padding": f.Padding} {
		if !absent(part) {
			return nil, fmt.Errorf("it has a %s (%.80s), expected none", name, part)
		}
	}
	level := byteLevel{UseRegex: true} // without use_regex
	if err := ofType(f.PreTokenizer, "pre_tokenizer", "ByteLevel", &level); err != nil {
		return nil, err
	}
	if level.AddPrefixSpace || !level.UseRegex {
		return nil, fmt.Errorf("the pre_tokenizer ByteLevel has add_prefix_space %v and use_regex %v, expected false and true", level.AddPrefixSpace, level.UseRegex)
	}
	if err := ofType(f.Decoder, "decoder", "ByteLevel", &byteLevel{}); err != nil {
		return nil, err
	}
	if !absent(f.PostProcessor) { // ByteLevel's affects only offsets
		if err := ofType(f.PostProcessor, "post_processor", "ByteLevel", &byteLevel{}); err != nil {
			return nil, err
		}
	}
	var m bpeModel
	if err := ofType(f.Model, "model", "BPE", &m); err != nil {
		return nil, err
	}
	if m.Dropout != nil && *m.Dropout != 0 || m.IgnoreMerges || m.Prefix != nil && *m.Prefix != "" || m.Suffix != nil && *m.Suffix != "" {
		return nil, fmt.Errorf("the model has dropout, ignore_merges, continuing_subword_prefix or end_of_word_suffix, expected none of them")
	}
	return build(f.AddedTokens, m)
}

func absent(part json.RawMessage) bool { return len(part) == 0 || string(part) == "null" }

// strictly decodes JSON without unknown fields, which might change tokens.
func strictly(text []byte, to any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	return d.Decode(to)
}

func ofType(part json.RawMessage, name, expected string, to any) error {
	var head struct{ Type string }
	if absent(part) {
		return fmt.Errorf("it has no %s, expected %s", name, expected)
	}
	if err := json.Unmarshal(part, &head); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if head.Type != expected && (head.Type != "" || name != "model") { // the first files did not name the model
		return fmt.Errorf("its %s is %.80s, expected %s", name, head.Type, expected)
	}
	if err := strictly(part, to); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

func build(added []addedToken, m bpeModel) (*BPE, error) {
	b := &BPE{added: added}
	names := map[string]int32{}
	for name, id := range m.Vocabulary {
		names[name] = id
	}
	contents := map[string]bool{}
	for _, a := range added {
		switch of, known := names[a.Content]; {
		case a.Content == "" || contents[a.Content]:
			return nil, fmt.Errorf("the added token %s is empty or appears twice", listed.Quoted(a.Content))
		case known && of != a.ID:
			return nil, fmt.Errorf("the added token %s has the number %d, and %d in the vocabulary", listed.Quoted(a.Content), a.ID, of)
		case a.SingleWord || a.LStrip || a.RStrip:
			return nil, fmt.Errorf("the added token %s has single_word, lstrip or rstrip, expected none of them", listed.Quoted(a.Content))
		}
		names[a.Content], contents[a.Content] = a.ID, true
	}
	b.tokens = make([]string, len(names))
	taken := make([]bool, len(names))
	for name, id := range names {
		if id < 0 || int(id) >= len(names) || taken[id] {
			return nil, fmt.Errorf("%s has the number %d, expected each from 0 to %d once", listed.Quoted(name), id, len(names)-1)
		}
		taken[id], b.tokens[id] = true, name
		if token, ok := fromLetters(name); ok && !contents[name] {
			b.tokens[id] = token
		}
	}
	// An added token of the same name must mean the same bytes.
	id := func(name string) (int32, error) {
		id, ok := m.Vocabulary[name]
		if !ok {
			return 0, fmt.Errorf("the vocabulary lacks %s", listed.Quoted(name))
		}
		if token, ok := fromLetters(name); !ok || token != b.tokens[id] {
			return 0, fmt.Errorf("the token %s does not encode bytes, or means other bytes as an added token", listed.Quoted(name))
		}
		return id, nil
	}
	for i, letter := range letters {
		var err error
		if b.bytes[i], err = id(string(letter)); err != nil {
			return nil, fmt.Errorf("the byte %#02x: %w: train with initial_alphabet=ByteLevel.alphabet()", i, err)
		}
	}
	merges, err := mergesOf(m.Merges)
	if err != nil {
		return nil, err
	}
	twice := map[pair]bool{}
	for i, of := range merges {
		var ids [3]int32
		for j, name := range []string{of[0], of[1], of[0] + of[1]} {
			if ids[j], err = id(name); err != nil {
				return nil, fmt.Errorf("merge %d of %s: %w", i, listed.Some(of[:]), err)
			}
		}
		p := pair(ids[:2])
		if twice[p] {
			return nil, fmt.Errorf("merge %d of %s appears twice", i, listed.Some(of[:]))
		}
		twice[p] = true
		b.merges = append(b.merges, merge{p, ids[2]})
	}
	return b.made(), nil
}

// mergesOf reads "a b", and the later ["a", "b"].
func mergesOf(part json.RawMessage) (merges [][2]string, err error) {
	var list []json.RawMessage
	if err := json.Unmarshal(part, &list); err != nil {
		return nil, fmt.Errorf("merges: %w", err)
	}
	for i, item := range list {
		var names []string
		if item[0] == '"' {
			var line string
			if err := json.Unmarshal(item, &line); err != nil {
				return nil, fmt.Errorf("merge %d: %w", i, err)
			}
			names = strings.Split(line, " ")
		} else if err := json.Unmarshal(item, &names); err != nil {
			return nil, fmt.Errorf("merge %d: %w", i, err)
		}
		if len(names) != 2 {
			return nil, fmt.Errorf("merge %d is %.80s, expected two tokens", i, item)
		}
		merges = append(merges, [2]string(names))
	}
	return merges, nil
}
