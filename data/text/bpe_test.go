//lazo:norace
package text

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/golden"
)

func read(t testing.TB, name string) string {
	t.Helper()
	out, err := os.ReadFile("testdata/" + name)
	require.NoError(t, err)
	return string(out)
}

func each(texts ...string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for _, s := range texts {
			if !yield(s, nil) {
				return
			}
		}
	}
}

var special = []string{"<|endoftext|>", "<|end|>"}

func modelOf(t *Tokenizer) *bpe { return t.model.(*bpe) }

func requireEqual(t testing.TB, a, b *Tokenizer) {
	t.Helper()
	require.Equal(t, modelOf(a), modelOf(b))
	require.Equal(t, a.added, b.added)
	require.Equal(t, a.size, b.size)
}

func trained(t testing.TB) *Tokenizer {
	t.Helper()
	b, err := BPETraining{Size: 500, Special: special}.Train(each(slices.Collect(strings.Lines(read(t, "corpus.txt")))...))
	require.NoError(t, err)
	return b
}

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

// The same texts give the vocabulary and the merges that the peer learns, and what is written is read to the same.
func TestBPE_trainsAsThePeer(t *testing.T) {
	b := trained(t)
	out, err := json.Marshal(b)
	require.NoError(t, err)
	golden.Equal(t, "testdata/written.json", string(out))

	var peer, again Tokenizer
	require.NoError(t, json.Unmarshal([]byte(read(t, "tokenizer.json")), &peer))
	require.NoError(t, json.Unmarshal(out, &again))
	require.Equal(t, modelOf(&peer).names, modelOf(b).names)
	require.Equal(t, modelOf(&peer).ranks, modelOf(b).ranks)
	for _, other := range []*Tokenizer{&peer, &again} {
		requireEqual(t, b, other)
	}
	require.Equal(t, 500, b.Size())
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

// Any bytes come back, valid UTF-8 or not, also with special tokens in them and under EncodeOrdinary; whatever the
// words around, the tokens are those of a search that tries each merge in turn.
func TestBPE_anyBytes(t *testing.T) {
	b := trained(t)
	random := rand.New(rand.NewPCG(1, 2))
	parts := append([]string{"the loop", " takes", "\xff\xfe", "\xc3", "é", "🙂", "\r\n", "   ", "'ll", "12", "循环", "<|", "|>"}, special...)
	for range 500 {
		var s strings.Builder
		for range random.IntN(12) {
			if random.IntN(3) == 0 {
				s.WriteByte(byte(random.IntN(256)))
			} else {
				s.WriteString(parts[random.IntN(len(parts))])
			}
		}
		ids, err := b.Encode(s.String())
		require.NoError(t, err)
		back, err := b.Decode(ids)
		require.NoError(t, err)
		require.Equal(t, s.String(), back)

		ordinary, err := b.EncodeOrdinary(s.String())
		require.NoError(t, err)
		require.Equal(t, oneByOne(b, s.String()), ordinary, "%q", s.String())
		for _, id := range ordinary {
			require.GreaterOrEqual(t, int(id), len(special), "%q", s.String())
		}
	}
}

// oneByOne goes through all merges, in their order, for each piece.
func oneByOne(b *Tokenizer, text string) (ids []int32) {
	merges := make([]merge, len(modelOf(b).ranks))
	for of, r := range modelOf(b).ranks {
		merges[r.rank] = merge{of, r.into}
	}
	for len(text) > 0 {
		n := piece(text)
		var piece []int32
		for i := range n {
			piece = append(piece, modelOf(b).starts[text[i]])
		}
		for _, m := range merges {
			for i := 0; i+1 < len(piece); i++ {
				if piece[i] == m.of[0] && piece[i+1] == m.of[1] {
					piece = slices.Replace(piece, i, i+2, m.into)
				}
			}
		}
		ids, text = append(ids, piece...), text[n:]
	}
	return ids
}

// A piece of very many letters, as a file without a space has, takes no longer than as many short ones.
func TestBPE_longPieces(t *testing.T) {
	b, err := BPETraining{Size: 300, MinCount: 1}.Train(each(strings.Repeat("ab", 100_000)))
	require.NoError(t, err)
	for text, most := range map[string]int{strings.Repeat("ab", 100_000): 10, strings.Repeat("ba", 100_001): 12, strings.Repeat("x", 100_000): 100_000} {
		ids, err := b.Encode(text)
		require.NoError(t, err)
		require.LessOrEqual(t, len(ids), most)
	}
}

// The order of the texts counts for nothing, and the smallest vocabulary has the bytes alone.
func TestBPE_training(t *testing.T) {
	lines := slices.Collect(strings.Lines(read(t, "corpus.txt")))
	slices.Reverse(lines)
	b, err := BPETraining{Size: 500, Special: special}.Train(each(lines...))
	require.NoError(t, err)
	requireEqual(t, trained(t), b)

	few, err := BPETraining{Size: 1000}.Train(each("ab ab ab xy"))
	require.NoError(t, err)
	require.Equal(t, 258, few.Size(), "ab and its space: xy comes once")
	id, ok := few.ID(" ab")
	require.True(t, ok)
	require.Equal(t, int32(257), id)
	once, err := BPETraining{Size: 1000, MinCount: 1}.Train(each("ab ab ab xy"))
	require.NoError(t, err)
	require.Equal(t, 260, once.Size())
	none, err := BPETraining{Size: 256}.Train(each())
	require.NoError(t, err)
	ids, err := none.Encode("é")
	require.NoError(t, err)
	require.Len(t, ids, 2)
	part, ok := none.Token(ids[0])
	require.True(t, ok)
	require.Equal(t, "\xc3", part)

	for message, try := range map[string]BPETraining{
		"text: BPETraining: Size is 256, expected at least 257, for 256 bytes and 1 special tokens":                                         {Size: 256, Special: []string{"<s>"}},
		"text: BPETraining: MinCount is -1, expected at least 1":                                                                            {Size: 300, MinCount: -1},
		`text: BPETraining: the special token "<s>" appears twice`:                                                                          {Size: 300, Special: []string{"<s>", "<s>"}},
		"text: BPETraining: a special token is empty":                                                                                       {Size: 300, Special: []string{""}},
		`text: BPETraining: the special token "the" could be learned from text as well: take one with brackets around a word, as "<|the|>"`: {Size: 300, Special: []string{"the"}},
	} {
		_, err := try.Train(each("the"))
		require.EqualError(t, err, message)
	}
	broken := errors.New("the disk is gone")
	_, err = BPETraining{Size: 300}.Train(func(yield func(string, error) bool) { yield("", broken) })
	require.ErrorIs(t, err, broken)
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

// S47: names of a file of any length are cut in messages, whose ends stay.
func TestS47_longNames(t *testing.T) {
	long := strings.Repeat("a", 600_000)
	for _, row := range []struct{ old, new, message string }{
		{`"version": "1.0"`, `"` + long + `": 1`, `json: unknown field "aaa`},
		{`"type": "BPE"`, `"type": "` + long + `"`, `it is not supported, expected one of BPE`},
		{`"merges": [`, `"merges": [["` + long + `", "e"],`, `the vocabulary lacks "aaa`},
		{`"merges": [`, `"merges": ["` + long + `",`, `merges: json: cannot unmarshal array`},
		{`"content": "<|end|>",` + "\n      \"single_word\": false", `"single_word": true, "content": "` + long + `"`, `has 600000 bytes, expected 1 to 1024`},
	} {
		text := strings.Replace(read(t, "tokenizer.json"), row.old, row.new, 1)
		err := new(Tokenizer).UnmarshalJSON([]byte(text))
		require.ErrorContains(t, err, row.message)
		require.Less(t, len(err.Error()), 700, row.message)
	}
}
