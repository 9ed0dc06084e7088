package data

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestShardRefuses(t *testing.T) {
	s := numbered(t, 3)
	for want, row := range map[string]struct {
		k, n int
		rest Remainder
	}{
		"data: shard 0 of 0: expected":                   {0, 0, Kept},
		"data: shard -1 of 2: expected":                  {-1, 2, Kept},
		"data: shard 2 of 2: expected":                   {2, 2, Kept},
		"remainder's policy is Remainder(-1)":            {0, 2, -1},
		"of a set of 3 examples (remainder dropped) is":  {0, 4, Dropped},
		"shard 3 of 4 of a set of 3 examples (remainder": {3, 4, Kept},
	} {
		_, err := s.Shard(row.k, row.n, row.rest)
		require.ErrorContains(t, err, want)
	}
	masked, err := New(X([]float32{1, 2, 3}, 3), Named(Mask, []bool{true, false, true}, 3))
	require.NoError(t, err)
	part, err := masked.Shard(1, 2, Padded)
	require.NoError(t, err)
	require.Equal(t, []bool{true, false}, part.Fields()[1].Array.Flat, "a mask that is there stays")
	require.Equal(t, []float32{3, 3}, part.Fields()[0].Array.Flat)
	wrong, err := New(X([]float32{1, 2, 3}, 3), Named(Mask, []float32{1, 0, 1}, 3))
	require.NoError(t, err)
	_, err = wrong.Shard(1, 2, Padded)
	require.ErrorContains(t, err, `field "mask" is float32 [2], expected a bool for each example`)
}

func TestShuffleBuffer_law(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 60).Draw(t, "n")
		size := rapid.IntRange(1, 70).Draw(t, "size")
		seed := rapid.Uint64().Draw(t, "seed")
		var steps []step
		for i := range n {
			steps = append(steps, step{n: i})
		}
		shuffled := ShuffleBuffer(sequence(steps), size, seed)
		got := collect(shuffled, -1)
		require.Equal(t, got, collect(shuffled, -1), "the same in each pass")
		order := make([]int, len(got))
		for at, g := range got {
			order[at] = g.n
			require.LessOrEqual(t, g.n-at, size-1, "no item comes earlier than the buffer allows")
		}
		slices.Sort(order)
		require.Equal(t, append([]int{}, count(n)...), order)
	})
	var steps []step
	for i := range 100 {
		steps = append(steps, step{n: i})
	}
	require.Equal(t, steps, collect(ShuffleBuffer(sequence(steps), 1, 5), -1), "a buffer of one shuffles nothing")
	require.NotEqual(t, collect(ShuffleBuffer(sequence(steps), 100, 5), -1), collect(ShuffleBuffer(sequence(steps), 100, 6), -1))
	first := make([]float64, 8) // where item 0 goes: anywhere, equally likely
	for seed := range uint64(8000) {
		for at, s := range collect(ShuffleBuffer(sequence(steps[:8]), 8, seed), -1) {
			if s.n == 0 {
				first[at]++
			}
		}
	}
	for at, n := range first {
		require.InDelta(t, 1000, n, 5*math.Sqrt(1000), "place %d", at)
	}
	failed := errors.New("failed")
	require.Equal(t, []step{{0, failed}, {1, nil}}, collect(ShuffleBuffer(sequence([]step{{1, nil}, {0, failed}}), 4, 1), -1), "errors do not wait")
}
