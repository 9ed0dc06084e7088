package plots

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// Ticks are multiples of 1, 2 or 5 times a power of ten within the axis, whole ones where only those have a meaning,
// and powers of ten on a logarithmic axis.
func TestAxis_ticks(t *testing.T) {
	for _, row := range []struct {
		of   axis
		want []string
	}{
		{axis{low: 0, high: 1}, []string{"0", "0.2", "0.4", "0.6", "0.8", "1"}},
		{axis{low: -0.13, high: 0.21}, []string{"-0.1", "0", "0.1", "0.2"}},
		{axis{low: 3, high: 47}, []string{"10", "20", "30", "40"}},
		{axis{low: 1, high: 3}, []string{"1", "1.5", "2", "2.5", "3"}},
		{axis{low: 1, high: 3, whole: true}, []string{"1", "2", "3"}},
		{axis{low: 0, high: 1_234_567}, []string{"0", "500000", "1e+06"}},
		{axis{low: 10_000, high: 12_000}, []string{"10000", "10500", "11000", "11500", "12000"}},
		{axis{low: 0.01, high: 100, log: true}, []string{"0.01", "0.1", "1", "10", "100"}},
		{axis{low: 1e-9, high: 1, log: true}, []string{"1e-09", "1e-07", "1e-05", "0.001", "0.1"}},
	} {
		var got []string
		for _, tick := range row.of.ticks() {
			require.True(t, tick.Value > row.of.low-1e-9 && tick.Value < row.of.high+1e-9, "%+v: %v", row.of, tick.Value)
			got = append(got, tick.Label)
		}
		require.Equal(t, row.want, got, "%+v", row.of)
	}
}

// An axis includes each number that can be drawn, also if all are equal, and exists if there is none.
func TestAxis_around(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	require.Equal(t, axis{low: -2, high: 5}, around([]float64{nan, 1, -2}, []float64{inf, 5, -inf, 1e301}))
	require.Equal(t, axis{low: 0, high: 1}, around([]float64{nan, inf}))
	require.Equal(t, axis{low: 4, high: 12}, around([]float64{8, 8}))
	require.Equal(t, axis{low: -1e-3, high: 1e-3}, around([]float64{0}))
	require.Equal(t, axis{low: -0.5, high: 10.5}, axis{low: 0, high: 10}.wider())
	require.Equal(t, axis{low: 0.1, high: 10, log: true}, decades())
	require.Equal(t, axis{low: 1e-3, high: 2, log: true}, decades([]float64{1e-3, 2}))
	narrow := decades([]float64{2, 3})
	require.InDelta(t, math.Sqrt(6), math.Sqrt(narrow.low*narrow.high), 1e-9)
	require.NotEmpty(t, narrow.ticks())
}

// Fewer points keep the ends, the extremes and the gaps.
func TestThinned(t *testing.T) {
	x, y := make([]float64, 10_000), make([]float64, 10_000)
	for i := range x {
		x[i], y[i] = float64(i), math.Sin(float64(i))
	}
	y[1234], y[5678], y[7777] = 9, -9, math.NaN()
	fewX, fewY := thinned(x, y, 100)
	require.Less(t, len(fewX), 501)
	require.Len(t, fewY, len(fewX))
	require.Equal(t, []float64{0, 9999}, []float64{fewX[0], fewX[len(fewX)-1]})
	kept := map[float64]float64{}
	for i, at := range fewX {
		require.True(t, i == 0 || fewX[i-1] < at)
		kept[at] = fewY[i]
	}
	require.Equal(t, 9.0, kept[1234])
	require.Equal(t, -9.0, kept[5678])
	require.Contains(t, kept, 7777.0)
	require.True(t, math.IsNaN(kept[7777]))
	shortX, shortY := thinned(x[:400], y[:400], 100)
	require.Equal(t, x[:400], shortX)
	require.Equal(t, y[:400], shortY)
}
