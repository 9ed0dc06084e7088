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
	"strconv"
	"strings"
	"testing"
	"unicode"

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

func trained(t testing.TB) *BPE {
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

// Each character is a letter, a number, a space or none of them, as in the peer's expression, whatever Unicode Go has.
func TestClasses(t *testing.T) {
	now, checked := class(-1), 0
	begins := map[rune]class{}
	for line := range strings.Lines(read(t, "classes.txt")) {
		at, of, _ := strings.Cut(strings.TrimSpace(line), " ")
		c, err := strconv.ParseInt(at, 16, 32)
		require.NoError(t, err)
		begins[rune(c)] = class(of[0] - '0')
	}
	for c := rune(0); c <= unicode.MaxRune; c++ {
		if of, ok := begins[c]; ok {
			now = of
		}
		if got := classOf(c); got != now {
			t.Fatalf("%U is of class %d, expected %d", c, got, now)
		}
		checked++
	}
	t.Logf("%d characters, %d runs; Go has Unicode %s", checked, len(begins), unicode.Version)
}

// The same texts give the vocabulary and the merges that the peer learns, and what is written is read to the same.
func TestBPE_trainsAsThePeer(t *testing.T) {
	b := trained(t)
	out, err := json.Marshal(b)
	require.NoError(t, err)
	golden.Equal(t, "testdata/written.json", string(out))

	var peer, again BPE
	require.NoError(t, json.Unmarshal([]byte(read(t, "tokenizer.json")), &peer))
	require.NoError(t, json.Unmarshal(out, &again))
	require.Equal(t, peer.tokens, b.tokens)
	require.Equal(t, peer.merges, b.merges)
	for _, other := range []BPE{peer, again} {
		require.Equal(t, *b, other)
	}
	require.Equal(t, 500, b.Size())
}

func TestBPE_encodesAsThePeer(t *testing.T) {
	var b BPE
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
	var again BPE
	require.NoError(t, json.Unmarshal(written, &again))
	require.Equal(t, b, again)
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
func oneByOne(b *BPE, text string) (ids []int32) {
	for len(text) > 0 {
		n := piece(text)
		var piece []int32
		for i := range n {
			piece = append(piece, b.bytes[text[i]])
		}
		for _, m := range b.merges {
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
	require.Equal(t, trained(t), b)

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
		require.EqualError(t, err, fmt.Sprintf("text: token 2 of 2 is %d, expected a number from 0 to 499", id))
		_, ok := b.Token(id)
		require.False(t, ok)
	}
	_, ok := b.ID("no such token")
	require.False(t, ok)
	var two BPE
	require.NoError(t, json.Unmarshal([]byte(strings.Replace(read(t, "tokenizer.json"), `"vocab": {`, `"vocab": {"の": 500, "ãģ®": 501,`, 1)), &two))
	_, err := json.Marshal(&two)
	require.ErrorContains(t, err, "text: tokens 500 and 501 are both \"ãģ®\", and a tokenizer.json has one of a name")
	_, err = new(BPE).Encode("x")
	require.EqualError(t, err, "text: the BPE is empty: train one, or read one from a tokenizer.json")
}

// Unsupported content of a file is an error, never another tokenization; the BPE is unchanged.
func TestBPE_refusesFiles(t *testing.T) {
	text := read(t, "tokenizer.json")
	for _, row := range []struct{ old, new, message string }{
		{`"normalizer": null`, `"normalizer": {"type": "NFC"}`, `it has a normalizer ({"type": "NFC"}), expected none`},
		{`"truncation": null`, `"truncation": {"max_length": 8}`, `it has a truncation ({"max_length": 8}), expected none`},
		{`"padding": null`, `"padding": {}`, `it has a padding ({}), expected none`},
		{`"pre_tokenizer": {` + "\n    \"type\": \"ByteLevel\"", `"pre_tokenizer": {"type": "Whitespace"`, `its pre_tokenizer is Whitespace, expected ByteLevel`},
		{`"add_prefix_space": false`, `"add_prefix_space": true`, `the pre_tokenizer ByteLevel has add_prefix_space true and use_regex true, expected false and true`},
		{`"decoder": {` + "\n    \"type\": \"ByteLevel\"", `"decoder": {"type": "Metaspace"`, `its decoder is Metaspace, expected ByteLevel`},
		{`"post_processor": null`, `"post_processor": {"type": "TemplateProcessing"}`, `its post_processor is TemplateProcessing, expected ByteLevel`},
		{`"type": "BPE"`, `"type": "Unigram"`, `its model is Unigram, expected BPE`},
		{`"type": "BPE"`, `"type": "BPE", "more": 1`, `model: json: unknown field "more"`},
		{`"version": "1.0"`, `"more": 1`, `json: unknown field "more"`},
		{`"dropout": null`, `"dropout": 0.1`, `the model has dropout, ignore_merges, continuing_subword_prefix or end_of_word_suffix, expected none of them`},
		{`"ignore_merges": false`, `"ignore_merges": true`, `the model has dropout, ignore_merges, continuing_subword_prefix or end_of_word_suffix, expected none of them`},
		{`"lstrip": false`, `"lstrip": true`, `the added token "<|endoftext|>" has single_word, lstrip or rstrip, expected none of them`},
		{`"<|end|>"`, `"<|endoftext|>"`, `the added token "<|endoftext|>" is empty or appears twice`},
		{`"<|endoftext|>": 0`, `"<|endoftext|>": 7`, `the added token "<|endoftext|>" has the number 0, and 7 in the vocabulary`},
		{`"he": `, `"he": 1`, `expected each from 0 to 499 once`},
		{`"ÿ": `, `"ÿÿÿ": `, `the byte 0xff: the vocabulary lacks "ÿ": train with initial_alphabet=ByteLevel.alphabet()`},
		{`"merges": [`, `"merges": [["q", "Q"],`, `merge 0 of ["q" "Q"]: the vocabulary lacks "qQ"`},
		{`"merges": [`, `"merges": [["h", "e"],`, `of ["h" "e"] appears twice`},
		{`"merges": [`, `"merges": ["t h e",`, `merge 0 is "t h e", expected two tokens`},
		{`"merges": [`, `"merges": [7,`, `merge 0: json: cannot unmarshal`},
		{`"content": "<|end|>"`, `"content": "he"`, `the added token "he" has the number 1, and `},
		{`{`, `{{`, `invalid character`},
	} {
		require.True(t, strings.Contains(text, row.old), row.message)
		b := trained(t)
		err := b.UnmarshalJSON([]byte(strings.Replace(text, row.old, row.new, 1)))
		require.ErrorContains(t, err, "text: tokenizer.json: ", row.new)
		require.ErrorContains(t, err, row.message, row.new)
		require.Equal(t, trained(t), b)
	}
}

// S47: names of a file of any length are cut in messages, whose ends stay.
func TestS47_longNames(t *testing.T) {
	long := strings.Repeat("a", 600_000)
	for _, row := range []struct{ old, new, message string }{
		{`"version": "1.0"`, `"` + long + `": 1`, `json: unknown field "aaa`},
		{`"type": "BPE"`, `"type": "` + long + `"`, `, expected BPE`},
		{`"truncation": null`, `"truncation": "` + long + `"`, `), expected none`},
		{`"he": `, `"` + long + `": 1`, `expected each from 0 to 499 once`},
		{`"merges": [`, `"merges": [["` + long + `", "e"],`, `the vocabulary lacks "aaa`},
		{`"merges": [`, `"merges": ["` + long + `",`, `, expected two tokens`},
		{`"content": "<|end|>",` + "\n      \"single_word\": false", `"single_word": true, "content": "` + long + `"`, `has single_word, lstrip or rstrip, expected none of them`},
	} {
		text := strings.Replace(read(t, "tokenizer.json"), row.old, row.new, 1)
		err := new(BPE).UnmarshalJSON([]byte(text))
		require.ErrorContains(t, err, row.message)
		require.Less(t, len(err.Error()), 700, row.message)
	}
}
