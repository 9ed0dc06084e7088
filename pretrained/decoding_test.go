package pretrained_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data/text"
	"github.com/lazo-ml/lazo/pretrained"
)

// byteTokens has a token for each byte: as letters, or as <0x00> to <0xFF> with "▁" for a space.
func byteTokens(t *testing.T, fallback bool) *text.Tokenizer {
	t.Helper()
	if !fallback {
		tokenizer, err := text.BPETraining{Size: 256}.Train(func(yield func(string, error) bool) { yield("a", nil) })
		require.NoError(t, err)
		return tokenizer
	}
	var names []string
	for i := range 256 {
		names = append(names, fmt.Sprintf(`"<0x%02X>": %d`, i, i))
	}
	tokenizer := &text.Tokenizer{}
	require.NoError(t, tokenizer.UnmarshalJSON([]byte(`{"added_tokens": [{"id": 258, "content": "<s>", "special": true, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false}],
 "normalizer": {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}, "decoder": {"type": "Sequence", "decoders": [
  {"type": "Replace", "pattern": {"String": "▁"}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}]},
 "model": {"type": "BPE", "byte_fallback": true, "unk_token": "<0x00>", "vocab": {`+strings.Join(names, ", ")+`, "▁": 256, "▁w": 257}, "merges": []}}`)))
	return tokenizer
}

// Pieces are whole characters, and together the text of all tokens.
func TestDecoded(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	parts := []string{"a", " ", "é", "€", "語", "😀", "\xe2\x82", "\x80", "\xf0\x9f", "\xff", "\ufffd"}
	for _, fallback := range []bool{false, true} {
		tokenizer := byteTokens(t, fallback)
		several := 0
		for range 300 {
			var all string
			for range 1 + random.IntN(12) {
				n := len(parts)
				if fallback {
					n = 6 // its decoder replaces all bytes of a run in which one is wrong
				}
				all += parts[random.IntN(n)]
			}
			ids := make([]int32, len(all))
			for i := range ids {
				token := all[i : i+1]
				if fallback {
					token = fmt.Sprintf("<0x%02X>", all[i])
				}
				id, ok := tokenizer.ID(token)
				require.True(t, ok)
				ids[i] = id
			}
			first, _ := tokenizer.ID("a")
			if fallback {
				first = 257
			}
			pieces, err := pretrained.Decoded(tokenizer, nil, []int32{first}, ids)
			require.NoError(t, err)
			for _, p := range pieces {
				require.True(t, utf8.ValidString(p), "%q of %q", p, all)
			}
			if len(pieces) > 1 && pieces[0] != "" {
				several++
			}
			if utf8.ValidString(all) {
				require.Equal(t, all, strings.Join(pieces, ""))
			}
		}
		require.Greater(t, several, 20)
	}
}

// Bytes that are no characters are replaced as in Python, and a prompt may end within a character.
func TestDecoded_replaced(t *testing.T) {
	tokenizer := byteTokens(t, false)
	ids := func(s string) (all []int32) {
		for i := range len(s) {
			id, _ := tokenizer.ID(s[i : i+1])
			all = append(all, id)
		}
		return all
	}
	for in, want := range map[string]string{ // by bytes.decode("utf-8", "replace")
		"\xe2\x82":         "\ufffd",
		"\xe2\x82a":        "\ufffda",
		"\xf0\x9f\x98":     "\ufffd",
		"\xf0\x9f\xe2\x82": "\ufffd\ufffd",
		"\xff\xff":         "\ufffd\ufffd",
		"\xe2\xff\x80":     "\ufffd\ufffd\ufffd",
		"a\xc3":            "a\ufffd",
		"\xed\xa0\x80":     "\ufffd\ufffd\ufffd",
	} {
		pieces, err := pretrained.Decoded(tokenizer, nil, ids("b"), ids(in))
		require.NoError(t, err)
		require.Equal(t, want, strings.Join(pieces, ""), "%q", in)
	}
	fallback := byteTokens(t, true)
	pieces, err := pretrained.Decoded(fallback, nil, []int32{258, 257, 0xe2, 0x82}, []int32{0xac, 257, 258, 257})
	require.NoError(t, err)
	require.Equal(t, []string{"€", " w", "", " w"}, pieces)
	pieces, err = pretrained.Decoded(fallback, nil, []int32{258}, []int32{257, 258, 257})
	require.NoError(t, err)
	require.Equal(t, []string{"w", "", " w"}, pieces, "as Python: the first space is that of the first word")
}

// Text that may begin a stop is held back, and comes if it does not.
func TestDecoded_stops(t *testing.T) {
	tokenizer := byteTokens(t, false)
	ids, err := tokenizer.Encode("ab€abcabéd")
	require.NoError(t, err)
	for _, row := range []struct {
		stops []string
		want  []string
	}{
		{nil, []string{"a", "b", "", "", "€", "a", "b", "c", "a", "b", "", "é", "d"}},
		{[]string{"€a"}, []string{"a", "b", "", "", "", ""}},
		{[]string{"abéx", "abé", "zz"}, []string{"", "", "", "", "ab€", "", "", "abc", "", "", "", ""}},
		{[]string{"abd", "bca"}, []string{"", "", "", "", "ab€", "", "", "a", ""}},
		{[]string{"dx"}, []string{"a", "b", "", "", "€", "a", "b", "c", "a", "b", "", "é", "d"}},
		{[]string{"c", "bc"}, []string{"a", "", "", "", "b€", "a", "", ""}},
	} {
		pieces, err := pretrained.Decoded(tokenizer, row.stops, ids[:1], ids)
		require.NoError(t, err)
		require.Equal(t, row.want, pieces, "%q", row.stops)
	}
}
