package pretrained

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// searched searches among three tokens, of which 0 ends a text, with logits by a text's length.
func searched(t *testing.T, beams Beams, most int, probabilities func(ids []int32) []float64) (ended []beam, steps int) {
	t.Helper()
	s := newSearch(&continued{most: most}, Generation{Beams: beams, Stop: []int32{0}})
	for !s.done {
		require.NoError(t, s.step(func(i int) []float32 {
			var logits []float32
			for _, p := range probabilities(s.running[i].ids) {
				logits = append(logits, float32(math.Log(p)))
			}
			return logits
		}))
		steps++
	}
	return s.ended, steps
}

// The ends of a search, as transformers' code has them.
func TestBeamSearch(t *testing.T) {
	late := func(ids []int32) []float64 { // two texts end early, but long ones are likelier for each token
		return [][]float64{{0.3, 0.36, 0.34}, {0.45, 0.35, 0.2}, {0.01, 0.98, 0.01}}[min(len(ids), 2)]
	}
	for early, want := range map[string]int{"": 2, "first": 2, "never": 12} {
		ended, steps := searched(t, Beams{Count: 2, LengthPenalty: 1, Early: early}, 12, late)
		require.Equal(t, want, steps, early)
		require.Len(t, ended[0].ids, want)
	}
	sure := func(ids []int32) []float64 { return []float64{0.5, 0.3, 0.2} }
	ended, steps := searched(t, Beams{Count: 2, Early: "first"}, 12, sure)
	require.Equal(t, 2, steps)
	require.Equal(t, [][]int32{{0}, {1, 0}}, [][]int32{ended[0].ids, ended[1].ids})
	require.InDelta(t, math.Log(0.15), ended[1].score, 1e-6)
	backup := func([]int32) []float64 { return []float64{0.1, 0.6, 0.3} } // an end is never among the best two
	ended, _ = searched(t, Beams{Count: 2, LengthPenalty: 1}, 3, backup)
	require.True(t, slices.Equal([]int32{1, 1, 1}, ended[0].ids), "%v", ended)
	for _, b := range ended {
		require.Len(t, b.ids, 3)
	}
	s := newSearch(&continued{most: 3}, Generation{Beams: Beams{Count: 2}})
	require.ErrorContains(t, s.step(func(int) []float32 { return []float32{1, float32(math.NaN())} }), "not finite")
}
