package arrays

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Orders of neighbouring epochs, and of neighbouring seeds, are to be as if drawn independently.
func TestOrderIsUniform(t *testing.T) {
	const n, draws = 10, 20_000
	for name, draw := range map[string]func(rows []int, i uint64){
		"epochs": func(rows []int, i uint64) { Permute(rows, 0, i) },
		"seeds":  func(rows []int, i uint64) { Permute(rows, i, 0) },
	} {
		var places [n][n]int // of an example
		same := 0            // examples at the place they had in the draw before
		previous, rows := make([]int, n), make([]int, n)
		for i := range uint64(draws) {
			draw(rows, i)
			for place, r := range rows {
				places[r][place]++
				if i > 0 && previous[place] == r {
					same++
				}
			}
			previous, rows = rows, previous
		}
		chi2 := 0.0
		for _, counts := range places {
			for _, k := range counts {
				d := float64(k) - draws/n
				chi2 += d * d / (draws / n)
			}
		}
		kept := float64(same) / (draws - 1)
		t.Logf("%s: %d orders of %d: chi-squared %.1f (90 expected), %.3f examples keep their place (1 expected)", name, draws, n, chi2, kept)
		require.Less(t, chi2, 140.0, name) // 3.5 standard deviations; the seeds are fixed, so it is no gamble
		require.InDelta(t, 1, kept, 0.03, name)
	}
}

func TestFloats(t *testing.T) {
	for _, flat := range []any{[]float64{0, 1}, []float32{0, 1}, []int8{0, 1}, []int16{0, 1}, []int32{0, 1}, []int64{0, 1}, []uint8{0, 1}, []uint16{0, 1},
		[]uint32{0, 1}, []uint64{0, 1}, []bool{false, true}} {
		numbers, ok := Floats(flat)
		require.True(t, ok, "%T", flat)
		require.Equal(t, []float64{0, 1}, numbers, "%T", flat)
	}
	_, ok := Floats([]string{"0", "1"})
	require.False(t, ok)
}
