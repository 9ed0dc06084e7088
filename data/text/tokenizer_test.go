package text

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

type peerCase struct {
	Text string
	IDs  []int32
}

func peerCases(t testing.TB) (all struct {
	Cases, Added []peerCase
	Tokens       json.RawMessage
}) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(read(t, "cases.json")), &all))
	require.Greater(t, len(all.Cases), 80)
	require.Greater(t, len(all.Added), 3)
	return all
}

func TestBPE_encodesAsThePeer(t *testing.T) {
	var b Tokenizer
	require.NoError(t, json.Unmarshal([]byte(read(t, "tokenizer.json")), &b))
	all := peerCases(t)
	for _, c := range all.Cases {
		ids, err := b.Encode(c.Text)
		require.NoError(t, err)
		require.Equal(t, c.IDs, append([]int32{}, ids...), "%q", c.Text)
		back, err := b.Decode(ids)
		require.NoError(t, err)
		require.Equal(t, c.Text, back)
	}
	t.Logf("%d texts have the peer's ids", len(all.Cases))

	var parts map[string]json.RawMessage
	require.NoError(t, json.Unmarshal([]byte(read(t, "tokenizer.json")), &parts))
	parts["added_tokens"] = all.Tokens
	with, err := json.Marshal(parts)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(with, &b))
	for _, c := range all.Added {
		ids, err := b.Encode(c.Text)
		require.NoError(t, err)
		require.Equal(t, c.IDs, ids, "%q, with tokens that were added", c.Text)
	}
	written, err := json.Marshal(&b)
	require.NoError(t, err)
	var again Tokenizer
	require.NoError(t, json.Unmarshal(written, &again))
	requireEqual(t, &b, &again)
}

func TestBPE_errors(t *testing.T) {
	b := trained(t)
	for _, id := range []int32{-1, 500} {
		_, err := b.Decode([]int32{5, id})
		require.EqualError(t, err, fmt.Sprintf("text: token 2 of 2 is %d, expected a number from 0 to 499 of a token", id))
		_, ok := b.Token(id)
		require.False(t, ok)
	}
	_, ok := b.ID("no such token")
	require.False(t, ok)
	_, err := new(Tokenizer).Encode("x")
	require.EqualError(t, err, "text: the tokenizer is empty: train one, or open one")
}

// Unsupported content of a file is an error, never another tokenization; the Tokenizer is unchanged.
func TestTokenizer_refusesFiles(t *testing.T) {
	text := strings.Replace(read(t, "tokenizer.json"), `"padding": null,`, "", 1)
	const normal, post, pre, decoder = `"normalizer": null`, `"post_processor": null`, `"pre_tokenizer": {`, `"decoder": {`
	deep := strings.Repeat(`{"type": "Sequence", "normalizers": [`, 20) + strings.Repeat("]}", 20)
	wide := `{"type": "Sequence", "normalizers": [` + strings.Repeat(`{"type": "NFC"},`, 200) + `{"type": "NFC"}]}`
	for _, row := range []struct{ old, new, message string }{
		{normal, `"normalizer": {"type": "Uppercase"}`, `normalizer: "Uppercase": it is not supported, expected one of BertNormalizer, NFC`},
		{normal, `"normalizer": {"type": "NFC", "more": 1}`, `normalizer: "NFC": json: unknown field "more"`},
		{normal, `"normalizer": {"type": "Precompiled", "precompiled_charsmap": "AAAA"}`, `the compiled characters have 3 bytes`},
		{normal, `"normalizer": {"type": "Precompiled", "precompiled_charsmap": "/////wAA"}`, `a table of 4294967295 bytes in 2`},
		{normal, `"normalizer": {"type": "Replace", "pattern": {"Regex": "(a"}, "content": ""}`, `a bracket too few at byte 2`},
		{normal, `"normalizer": ` + deep, `there are more than 100 components, or more than 8 in each other`},
		{normal, `"normalizer": ` + wide, `there are more than 100 components`},
		{pre, `"pre_tokenizer": {"type": "UnicodeScripts"}, "padding": {`, `"UnicodeScripts": it is not supported`},
		{pre, `"pre_tokenizer": {"type": "Split", "pattern": {"Regex": "\\R"}, "behavior": "Isolated", "invert": false}, "padding": {`, `the escape \R`},
		{pre, `"pre_tokenizer": {"type": "Split", "pattern": {"Regex": "x"}, "behavior": "Sometimes", "invert": false}, "padding": {`, `its behavior is "Sometimes"`},
		{pre, `"pre_tokenizer": {"type": "Metaspace", "replacement": "__"}, "padding": {`, `its replacement is "__"`},
		{decoder, `"decoder": {"type": "CTC"}, "padding": {`, `"CTC": it is not supported`},
		{decoder, `"decoder": {"type": "Strip", "content": "", "start": 1, "stop": 0}, "padding": {`, `its content is ""`},
		{post, `"post_processor": {"type": "BertProcessing", "sep": ["</s>", 9000], "cls": ["<s>", 1]}`, `the post_processor adds the token 9000, which does not exist`},
		{post, `"post_processor": {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}], "pair": [], "special_tokens": {}}`, `a part of the template for 1 texts`},
		{post, `"post_processor": {"type": "Sequence", "processors": [{"type": "BertProcessing", "sep": ["x", 1], "cls": ["y", 1]}, {"type": "BertProcessing", "sep": ["x", 1], "cls": ["y", 1]}]}`, `a second one adds tokens`},
		{pre, `"Normalizer": {"type": "Lowercase"}, "pre_tokenizer": {`, `it has the name "Normalizer", expected "normalizer" exactly`},
		{`"normalizer": null`, `"normalizer": {"Type": "Lowercase"}`, `normalizer: "Lowercase": it has the name "Type", expected "type" exactly`},
		{`"normalizer": null`, `"normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true, "lowercase": false, "Lowercase": true}`, `it has the name "Lowercase"`},
		{`"normalizer": null`, `"normalizer": {"type": "BertNormalizer"}`, `it lacks "clean_text"`},
		{`"normalizer": null`, `"normalizer": {"type": "Strip", "strip_right": true}`, `it lacks "strip_left"`},
		{`"normalizer": null`, `"normalizer": {"type": "Sequence"}`, `a Sequence lacks the list of a normalizer`},
		{`"normalizer": null`, `"normalizer": {"type": "Replace", "pattern": {"String": "a"}}`, `it lacks "content"`},
		{`"version": "1.0"`, `"version": "99"`, `its version is "99", expected 1.0`},
		{`"he": `, `"null": null, "he": `, `"null" is null, expected a value`},
		{`"single_word": false,`, ``, `an element of "added_tokens" lacks "single_word"`},
		{`"single_word": false`, `"single_word": null`, `"single_word" is null`},
		{post, `"post_processor": {"type": "BertProcessing", "sep": ["</s>", null], "cls": ["<s>", 1]}`, `a token is ["</s>", null], expected its text and its number`},
		{post, `"post_processor": {"type": "BertProcessing", "cls": ["<s>", 1]}`, `it lacks "sep"`},
		{post, `"post_processor": {"type": "RobertaProcessing", "sep": ["</s>", 1], "cls": ["<s>", 1]}`, `it lacks trim_offsets`},
		{post, `"post_processor": {"type": "TemplateProcessing", "single": [], "pair": [], "special_tokens": {"x": {"id": "x", "ids": [null], "tokens": ["x"]}}}`, `an element of "ids" is null`},
		{post, `"post_processor": {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}, "Sequence": {"id": "A", "type_id": 0}}], "pair": [], "special_tokens": {}}`, `is a SpecialToken and a Sequence`},
		{`"type": "BPE"`, `"type": "BPE", "fuse_unk": true`, `it has "fuse_unk" twice`},
		{`"type": "BPE"`, `"type": "Best"`, `model: "Best": it is not supported`},
		{`"type": "BPE"`, `"type": "WordPiece"`, `json: unknown field "dropout"`},
		{`"type": "BPE"`, `"type": "BPE", "more": 1`, `model: json: unknown field "more"`},
		{`"version": "1.0"`, `"more": 1`, `json: unknown field "more"`},
		{`"dropout": null`, `"dropout": 0.1`, `it has dropout 0.1, expected none`},
		{`"<|end|>"`, `"<|endoftext|>"`, `the added token "<|endoftext|>" appears twice`},
		{`"<|endoftext|>": 0`, `"<|endoftext|>": 7`, `the tokens`},
		{`"id": 1,`, `"id": 77,`, `the added token "<|end|>" has the number 77, and tokenizers gives it 1`},
		{`"he": `, `"he": -1`, `expected one from 0 to 4194303`},
		{`"he": `, `"he": 1000000`, `expected one from 0 to 4194303`},
		{`"content": "<|end|>"`, `"content": "` + strings.Repeat("x", 2000) + `"`, `the added token 1 has 2000 bytes, expected 1 to 1024`},
		{`"merges": [`, `"merges": [["q", "Q"],`, `merge 0: the vocabulary lacks "qQ"`},
		{`"merges": [`, `"merges": [["t", "h", "e"],`, `merge 0 is ["t" "h" "e"], expected two tokens`},
		{`"merges": [`, `"merges": [7,`, `merges: json: cannot unmarshal`},
		{`{`, `{{`, `invalid character`},
		{`{`, "{\"x\xff\": 1,", `not valid UTF-8`},
	} {
		require.True(t, strings.Contains(text, row.old), row.message)
		b := trained(t)
		err := b.UnmarshalJSON([]byte(strings.Replace(text, row.old, row.new, 1)))
		require.ErrorContains(t, err, "text: tokenizer.json: ", row.new)
		require.ErrorContains(t, err, row.message, row.new)
		requireEqual(t, trained(t), b)
	}
	require.ErrorContains(t, new(Tokenizer).UnmarshalJSON([]byte(text+"{}")), "2 bytes follow it")
}

var peersOf = flag.String("peers", "", "a `folder` with what testdata/tokenizers.py wrote for many texts")

// record returns the record of tokenizers.py for a text.
func record(t testing.TB, of *Tokenizer, s, pair string) []string {
	t.Helper()
	one, err := of.EncodeText(Input{Text: s})
	require.NoError(t, err, "%q", s)
	short, err := of.Encode(s)
	require.NoError(t, err, "%q", s)
	require.Equal(t, fmt.Sprint(one.IDs), fmt.Sprint(short), "%q", s)
	back, err := of.Decode(one.IDs)
	require.NoError(t, err)
	if of.file == nil {
		return []string{spaced(one.IDs), lossy(back)}
	}
	both, err := of.EncodeText(Input{Text: s, Pair: &pair})
	require.NoError(t, err)
	bare, err := of.EncodeText(Input{Text: s, Bare: true})
	require.NoError(t, err)
	ordinary, err := of.DecodeOrdinary(one.IDs)
	require.NoError(t, err)
	return []string{spaced(one.IDs), inCharacters(one, s, ""), spaced(both.IDs), spaced(both.Types), inCharacters(both, s, pair), spaced(bare.IDs), lossy(back), lossy(ordinary)}
}

func spaced(ids []int32) string { return strings.Trim(fmt.Sprint(ids), "[]") }

// inCharacters is flat of tokenizers.py.
func inCharacters(e Encoding, s, pair string) string {
	var out []string
	for i, o := range e.Offsets {
		of := s
		if e.Texts[i] == 1 {
			of = pair
		}
		out = append(out, fmt.Sprintf("%d-%d", utf8.RuneCountInString(of[:o[0]]), utf8.RuneCountInString(of[:o[1]])))
	}
	return strings.Join(out, " ")
}

// lossy has U+FFFD for what is not UTF-8, one for the longest beginning of a character, as Rust and Python write it.
func lossy(s string) string {
	var out strings.Builder
	for s != "" {
		r, n := utf8.DecodeRuneInString(s)
		if r == utf8.RuneError && n == 1 {
			for n < 4 && n < len(s) && !utf8.FullRuneInString(s[:n+1]) { // the beginning of a character
				n++
			}
			if n > 1 && utf8.FullRuneInString(s[:n]) {
				n--
			}
		}
		out.WriteRune(r)
		s = s[n:]
	}
	return out.String()
}

// Ids, types, offsets and decoded texts of each kind of tokenizer are those of Python's tokenizers and sentencepiece.
func TestOpen_asThePeers(t *testing.T) {
	folder := "testdata"
	if *peersOf != "" {
		folder = *peersOf
	}
	var files peerFiles
	var texts peerTexts
	unpacked(t, filepath.Join(folder, "kinds.json.gz"), &files)
	unpacked(t, filepath.Join(folder, "texts.json.gz"), &texts)
	all := files.opened(t)
	require.Greater(t, len(all), 25)
	require.GreaterOrEqual(t, len(texts.Texts), 3000)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		t.Run(name, func(t *testing.T) {
			for i, want := range texts.Full[name] {
				require.Equal(t, want, record(t, all[name], texts.Texts[i], texts.Texts[(i+len(texts.Texts)-1)%len(texts.Texts)]), "%q", texts.Texts[i])
			}
			differ := 0
			for g, want := range texts.Digests[name] {
				var group strings.Builder
				for i := g * texts.Group; i < min((g+1)*texts.Group, len(texts.Texts)); i++ {
					if group.Len() > 0 {
						group.WriteString("\x1e")
					}
					group.WriteString(strings.Join(record(t, all[name], texts.Texts[i], texts.Texts[(i+len(texts.Texts)-1)%len(texts.Texts)]), "\x1f"))
				}
				if sum := sha256.Sum256([]byte(group.String())); hex.EncodeToString(sum[:8]) != want {
					if differ++; differ <= 5 {
						t.Errorf("the texts from %d on differ from those of the peer: %q …", g*texts.Group, texts.Texts[g*texts.Group])
					}
				}
			}
			if differ > 0 {
				t.Errorf("%d of %d groups of texts differ", differ, len(texts.Digests[name]))
			}
			t.Logf("%d texts", len(texts.Texts))
		})
	}
}

// Most truncates the longer text, added tokens included, as tokenizers does with longest_first.
func TestEncodeText_truncates(t *testing.T) {
	bert, err := parse(kindsOf(t).Files["bert"])
	require.NoError(t, err)
	long, short := strings.Repeat("the ", 20), "the the the"
	for _, row := range []struct {
		text, pair string
		most       int
		texts      [2]int
	}{{long, short, 13, [2]int{7, 3}}, {short, long, 13, [2]int{3, 7}}, {long, long, 12, [2]int{4, 5}}, {long, long, 13, [2]int{5, 5}}, {short, short, 9, [2]int{3, 3}}, {long, long, 3, [2]int{}}} {
		e, err := bert.EncodeText(Input{Text: row.text, Pair: &row.pair, Most: row.most})
		require.NoError(t, err)
		var got [2]int
		for i, of := range e.Texts {
			if of >= 0 {
				got[of]++
				require.Equal(t, int32(of), e.Types[i])
			}
		}
		require.Equal(t, row.texts, got)
	}
	e, err := bert.EncodeText(Input{Text: long, Most: 5})
	require.NoError(t, err)
	require.Len(t, e.IDs, 5)
	_, err = bert.EncodeText(Input{Text: long, Most: 1})
	require.EqualError(t, err, "text: Most is 1, expected at least 2 for the tokens that the file adds")
}

// A text that is not UTF-8 has no ids, but for tokenizers of bytes.
func TestEncode_notUTF8(t *testing.T) {
	for name, tokens := range kindsOf(t).opened(t) {
		_, err := tokens.Encode("the\xff")
		if !tokens.bytes {
			require.ErrorContains(t, err, "text: the text is not valid UTF-8 at byte 3, and only tokens of bytes encode that", name)
			continue
		}
		require.NoError(t, err, name)
	}
}

// A file is read or is an error; a tokenizer that was read gives each text back, and is written to the same again.
func FuzzReadTokenizer(f *testing.F) {
	const head = `{"added_tokens":[],"pre_tokenizer":{"type":"ByteLevel"},"decoder":{"type":"ByteLevel"},"model":{"vocab":{},"merges":["a b"]}}`
	f.Add([]byte(read(f, "written.json")), "the loop's\xff <|end|>")
	f.Add([]byte(read(f, "tokenizer.json")), "")
	f.Add([]byte(head), " ")
	f.Fuzz(func(t *testing.T, file []byte, text string) {
		var b Tokenizer
		if json.Unmarshal(file, &b) != nil || b.Size() == 0 {
			return
		}
		ids, err := b.Encode(text)
		require.NoError(t, err)
		back, err := b.Decode(ids)
		require.NoError(t, err)
		require.Equal(t, text, back)
		written, err := json.Marshal(&b)
		if err != nil {
			require.ErrorContains(t, err, "a tokenizer.json has one of a name")
			return
		}
		var again Tokenizer
		require.NoError(t, json.Unmarshal(written, &again), "%s", written)
		require.Equal(t, b.vocabulary, again.vocabulary)
	})
}

func unpacked(t testing.TB, path string, to any) {
	t.Helper()
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	z, err := gzip.NewReader(bytes.NewReader(content))
	require.NoError(t, err)
	require.NoError(t, json.NewDecoder(z).Decode(to))
}

type peerFiles struct {
	Files  map[string]json.RawMessage
	Models map[string]string
}

type peerTexts struct {
	Texts   []string
	Group   int
	Full    map[string][][]string
	Digests map[string][]string
}

func (f peerFiles) opened(t testing.TB) map[string]*Tokenizer {
	t.Helper()
	all := map[string]*Tokenizer{}
	for name, content := range f.Files {
		read, err := parse(content)
		require.NoError(t, err, name)
		all[name] = read
	}
	for name, content := range f.Models {
		model, err := hex.DecodeString(content)
		require.NoError(t, err)
		read, err := readSentencePiece(model)
		require.NoError(t, err, name)
		all[name] = read
	}
	return all
}
