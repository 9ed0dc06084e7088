package text

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Hostile texts and files end: words of any length, many marks, patterns that try everything, normalizers that grow.
func TestOpen_hostile(t *testing.T) {
	texts := []string{strings.Repeat("a", 20_000), strings.Repeat("ab", 10_000), "a" + strings.Repeat("\u0301\u0323", 10_000), strings.Repeat(" ", 20_000), strings.Repeat("\u200d", 5_000),
		strings.Repeat("<", 20_000), strings.Repeat("[MASK", 5_000), strings.Repeat("▁", 5_000), strings.Repeat("循", 5_000)}
	for name, tokens := range kindsOf(t).opened(t) {
		for _, s := range texts {
			ids, err := tokens.Encode(s)
			require.NoError(t, err, name)
			_, err = tokens.Decode(ids)
			require.NoError(t, err, name)
		}
	}
	for _, p := range []string{`(?:a|a)*b`, `(?:a*)*b`, `(?:(?:a|b)+c?)+d`, `(?=(?:a|aa)+$)x`} {
		of, err := readPattern(p)
		require.NoError(t, err)
		_, err = of.matches(nil, strings.Repeat("a", 5_000), nil)
		require.ErrorContains(t, err, "the pattern ", p)
	}
	for p, message := range map[string]string{`(?:(?:a{1000}){1000}){1000}`: "too many repetitions", strings.Repeat("(", 100): "too many brackets", `(?i:ss)`: `"ss" without case`, `a{9999}`: "above 1000",
		`(?<=ab)c`: "a lookbehind", `a{1,2}+`: "after braces", `\p{Greek}`: `the property "Greek"`, `[a&&b]`: `"&&" in a class`, `a)`: "a bracket too many", `\`: "a backslash at the end"} {
		_, err := readPattern(p)
		require.ErrorContains(t, err, message, p)
	}
	growing := `{"type": "Sequence", "normalizers": [` + strings.TrimSuffix(strings.Repeat(`{"type": "Replace", "pattern": {"String": "a"}, "content": "aaaaaaaaaa"},`, 50), ",") + `]}`
	tokens := &Tokenizer{}
	require.NoError(t, tokens.UnmarshalJSON([]byte(strings.Replace(read(t, "tokenizer.json"), `"normalizer": null`, `"normalizer": `+growing, 1))))
	_, err := tokens.Encode("aaaa")
	require.ErrorContains(t, err, "expected at most 65")
}

// A lazy repetition takes the fewest characters with which the rest matches, also none.
func TestMatches_lazy(t *testing.T) {
	for _, row := range []struct {
		pattern, text string
		want          [][2]int
	}{
		{`a*?`, "ba", [][2]int{{0, 0}, {1, 1}, {2, 2}}},
		{`a+?`, "aaa", [][2]int{{0, 1}, {1, 2}, {2, 3}}},
		{`a??b`, "aab", [][2]int{{1, 3}}},
		{`"[^,]*?"`, `"a" "b"`, [][2]int{{0, 3}, {4, 7}}},
	} {
		of, err := readPattern(row.pattern)
		require.NoError(t, err)
		got, err := of.matches(nil, row.text, nil)
		require.NoError(t, err)
		require.Equal(t, row.want, got, row.pattern)
	}
}
