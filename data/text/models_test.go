package text

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// tokensOf returns the tokens of a word by their names.
func tokensOf(t *testing.T, of model, v *vocabulary, word string) (names []string) {
	t.Helper()
	e := &encoder{}
	require.NoError(t, of.tokens(e, word))
	for _, token := range e.out {
		name, ok := v.name(token.id)
		require.True(t, ok)
		names = append(names, name+"="+word[token.from:token.to])
	}
	return names
}

func vocabularyOf(t *testing.T, names ...string) *vocabulary {
	t.Helper()
	ids := map[string]int32{}
	for i, name := range names {
		ids[name] = int32(i)
	}
	v, err := newVocabulary(ids)
	require.NoError(t, err)
	return v
}

// A vocabulary refuses two tokens of one number and numbers outside of its range. A number between may have none.
func TestNewVocabulary(t *testing.T) {
	v, err := newVocabulary(map[string]int32{"a": 0, "bcd": 2})
	require.NoError(t, err)
	require.Equal(t, 3, v.most)
	for id, want := range map[int32]string{-1: "", 0: "a", 1: "", 2: "bcd", 3: ""} {
		name, ok := v.name(id)
		require.Equal(t, want, name)
		require.Equal(t, want != "", ok)
	}
	for _, id := range []int32{-1, mostTokens} {
		_, err = newVocabulary(map[string]int32{"a": id})
		require.ErrorContains(t, err, "expected one from 0 to 4194303")
	}
	_, err = newVocabulary(map[string]int32{"b": 1, "a": 1})
	require.EqualError(t, err, `the tokens "a" and "b" both have the number 1`)
}

// The longest piece comes first. A word with a rest, or with more characters than may be, is unknown as a whole.
func TestWordPiece(t *testing.T) {
	v := vocabularyOf(t, "[UNK]", "un", "##aff", "##able", "##a", "##é", "a", "##")
	w, err := newWordPiece(v, "[UNK]", "##", 9)
	require.NoError(t, err)
	for word, want := range map[string][]string{
		"unaffable": {"un=un", "##aff=aff", "##able=able"}, "unaé": {"un=un", "##a=a", "##é=é"}, "unafé": {"[UNK]=unafé"},
		"able": {"[UNK]=able"}, "aaaaaaaaaa": {"[UNK]=aaaaaaaaaa"}, "aéééééééé": append([]string{"a=a"}, strings.Split(strings.Repeat(",##é=é", 8)[1:], ",")...),
	} {
		require.Equal(t, want, tokensOf(t, w, v, word), word)
	}
	_, err = newWordPiece(v, "<unk>", "##", 9)
	require.EqualError(t, err, `the unknown token "<unk>" is not in the vocabulary`)
	_, err = newWordPiece(vocabularyOf(t, "[UNK]", strings.Repeat("x", longestName+1)), "[UNK]", "##", 9)
	require.EqualError(t, err, "a token has 1025 bytes, expected at most 1024")
}

func TestWordLevel(t *testing.T) {
	v := vocabularyOf(t, "<unk>", "the")
	require.Equal(t, []string{"the=the"}, tokensOf(t, &wordLevel{ids: v.ids}, v, "the"))
	require.Equal(t, []string{"<unk>=cat"}, tokensOf(t, &wordLevel{ids: v.ids}, v, "cat"))
	err := (&wordLevel{ids: v.ids, unknown: -1, missing: "[UNK]"}).tokens(&encoder{}, "cat")
	require.EqualError(t, err, `text: the word "cat" is not in the vocabulary, nor is the unknown token "[UNK]"`)
}

// The tokens have the greatest sum of scores of all ways to cut the word.
func TestUnigram_isTheLikeliest(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	v := vocabularyOf(t, "<unk>", "a", "b", "c", "ab", "bc", "ca", "abc", "aab", "bca", "cc")
	u := &unigram{vocabulary: v, words: newTrie(v.ids), scores: make([]float64, len(v.names)), unknown: 0}
	for i := range u.scores {
		u.scores[i] = -5 * random.Float64()
	}
	var best func(s string) float64
	best = func(s string) float64 {
		if s == "" {
			return 0
		}
		most := math.Inf(-1)
		for name, id := range v.ids {
			if rest, ok := strings.CutPrefix(s, name); ok {
				most = max(most, u.scores[id]+best(rest))
			}
		}
		return most
	}
	for range 200 {
		var word strings.Builder
		for range random.IntN(8) + 1 {
			word.WriteByte("abc"[random.IntN(3)])
		}
		e, sum, at := &encoder{}, 0.0, int32(0)
		require.NoError(t, u.tokens(e, word.String()))
		for _, token := range e.out {
			require.Equal(t, at, token.from)
			require.Equal(t, v.names[token.id], word.String()[token.from:token.to])
			sum, at = sum+u.scores[token.id], token.to
		}
		require.EqualValues(t, word.Len(), at)
		require.InDelta(t, best(word.String()), sum, 1e-9, word.String())
	}
}

// Unknown characters make one token, or their bytes if the vocabulary has each; without an unknown token they are an
// error.
func TestUnigram_unknown(t *testing.T) {
	v := vocabularyOf(t, "<unk>", "a", "<0xC3>", "<0xA9>")
	u := &unigram{vocabulary: v, words: newTrie(v.ids), scores: make([]float64, 4)}
	require.Equal(t, []string{"a=a", "<unk>=éü", "a=a"}, tokensOf(t, u, v, "aéüa"))
	u.bytes = v.byteTokens()
	require.Equal(t, []string{"a=a", "<0xC3>=é", "<0xA9>=é"}, tokensOf(t, u, v, "aé"))
	require.Equal(t, []string{"<unk>=éü"}, tokensOf(t, u, v, "éü"), "the bytes of ü are not all there")
	u.unknown = -1
	require.EqualError(t, u.tokens(&encoder{}, "aé"), `text: "é" is not in the vocabulary, which has no unknown token`)
}
