package agreed_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lazo-ml/lazo/internal/agreed"
)

// together returns the largest of each word, as a job does.
func together(all ...[]int64) []int64 {
	most := append([]int64(nil), all[0]...)
	for _, words := range all {
		for i, w := range words {
			most[i] = max(most[i], w)
		}
	}
	return most
}

func TestPair(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Int64Range(-1<<46, 1<<46), 1, 8).Draw(t, "values")
		var all [][]int64
		for rank, v := range values {
			words := make([]int64, 2)
			agreed.SetPair(words, v, int64(rank))
			all = append(all, words)
		}
		most, least, highest, lowest := agreed.Pair(together(all...))
		for _, v := range values {
			require.LessOrEqual(t, v, most)
			require.GreaterOrEqual(t, v, least)
		}
		require.Equal(t, most, values[highest])
		require.Equal(t, least, values[lowest])
	})
}

func TestText(t *testing.T) {
	for text, want := range map[string]string{
		"":                             "",
		"a":                            "a",
		"loss is NaN: größer":          "loss is NaN: größer",
		"up to a zero\x00 byte":        "up to a zero",
		strings.Repeat("x", 500):       strings.Repeat("x", 448),
		"x" + strings.Repeat("ö", 300): "x" + strings.Repeat("ö", 223), // the last character does not fit
	} {
		var own, other agreed.Text
		own.Set(text)
		got := agreed.Text(together(own[:], other[:]))
		require.Equal(t, want, got.String())
	}
}
