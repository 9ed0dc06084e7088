package text

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Each decoder makes of tokens the texts that the decoder of tokenizers makes.
func TestDecoders(t *testing.T) {
	always := metaspace{mark: "▁", scheme: "always"}
	never := metaspace{mark: "▁", scheme: "never"}
	for _, row := range []struct {
		name         string
		do           decoder
		tokens, want []string
	}{
		{"bytes", decodeBytes, []string{"ĠaÃ", "©", "日"}, []string{" aé日"}},
		{"word pieces", decodeWordPiece("##", false), []string{"##a", "##b", "c", "."}, []string{"##a", "b", " c", " ."}},
		{"word pieces, cleaned", decodeWordPiece("##", true), []string{"it", "do", "not", "."}, []string{"it", " do", " not", "."}},
		{"metaspace", decodeMetaspace(always), []string{"▁a", "▁b▁"}, []string{"a", " b "}},
		{"metaspace without one before", decodeMetaspace(never), []string{"▁a", "▁b"}, []string{" a", " b"}},
		{"bytes of a character", decodeByteFallback, []string{"x", "<0xC3>", "<0xA9>", "y"}, []string{"x", "é", "y"}},
		{"bytes of none", decodeByteFallback, []string{"<0xC3>", "<0xC3>", "<0xZZ>"}, []string{"\ufffd", "\ufffd", "<0xZZ>"}},
		{"fused", fuse, []string{"a", "b"}, []string{"ab"}},
		{"stripped", decodeStrip('é', 1, 2), []string{"ééaééé", "é", ""}, []string{"éaé", "", ""}},
		{"suffix", decodeSuffix("</w>"), []string{"a</w>", "b", "c</w>"}, []string{"a ", "b", "c"}},
	} {
		got, err := row.do(row.tokens, 1000)
		require.NoError(t, err, row.name)
		require.Equal(t, row.want, got, row.name)
	}
}

// The decoder Replace refuses what would make more bytes than may be.
func TestDecoders_replaceIsBounded(t *testing.T) {
	of, err := readPattern("a+")
	require.NoError(t, err)
	do := decodeReplace(of, "xyz")
	got, err := do([]string{"baab", "c"}, 8)
	require.NoError(t, err)
	require.Equal(t, []string{"bxyzb", "c"}, got)
	_, err = do([]string{"baab", "c"}, 7)
	require.EqualError(t, err, "text: the decoder Replace makes too many bytes of 2 tokens: token 2 is replaced 0 times by 3 bytes")
}

// The tokens around texts: two between a pair for RoBERTa, one and a second kind for BERT.
func TestAround(t *testing.T) {
	single, pair := around(7, 8, false)
	require.Equal(t, []piecePart{{-1, 0, []int32{7}}, {0, 0, nil}, {-1, 0, []int32{8}}}, single)
	require.Equal(t, append(single[:3:3], piecePart{1, 1, nil}, piecePart{-1, 1, []int32{8}}), pair)
	again, pair := around(7, 8, true)
	require.Equal(t, single, again)
	require.Equal(t, append(single[:3:3], piecePart{-1, 0, []int32{8}}, piecePart{1, 0, nil}, piecePart{-1, 0, []int32{8}}), pair)
}
