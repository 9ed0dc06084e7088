package tensorboard_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lazo-ml/lazo/callbacks/tensorboard"
	"github.com/lazo-ml/lazo/loop"
)

// Jaxloop's test of its summary action: two histograms, a bare value and a typed scalar at step 1 come as one write of
// all.
func TestB62_histogramsAndScalarsOfATurn(t *testing.T) {
	got, err := write(t, func(l *loop.Logs) {
		l.Output("weights", tensorboard.NewHistogram([]float32{1, 2, 3}, 2))
		l.Output("biases", tensorboard.NewHistogram([]float64{0, 0.5, 1}, 0))
		l.Loss("bare", 0.5)
		l.Output("typed", int32(7))
	})
	require.NoError(t, err)
	require.Equal(t, 1, got.records)
	require.Equal(t, []string{"outputs/weights", "outputs/biases", "losses/bare", "outputs/typed"}, got.tags())
	plugins := map[string]int{}
	for _, p := range got.points {
		require.EqualValues(t, 1, p.step)
		plugins[p.plugin]++
	}
	require.Equal(t, map[string]int{"histograms": 2, "scalars": 2}, plugins)
	require.Equal(t, []float64{1, 2, 1, 2, 3, 2}, got.points[0].numbers)
	require.Equal(t, []int{2, 3}, got.points[0].shape)
	require.Equal(t, []int{30, 3}, got.points[1].shape)
	t.Logf("B62: %v in %d record", plugins, got.records)
}

// S66: one bucket stays one, which clu raises to two.
func TestNewHistogram(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for _, row := range []struct {
		name    string
		values  []float64
		buckets int
		want    []tensorboard.Bucket
	}{
		{"empty", nil, 3, nil},
		{"none finite", []float64{nan, inf, -inf}, 3, nil},
		{"all the same", []float64{2, 2}, 3, []tensorboard.Bucket{{Low: 1.5, High: 2.5, Count: 2}}},
		{"the last is closed", []float64{0, 1, 2}, 2, []tensorboard.Bucket{{Low: 0, High: 1, Count: 1}, {Low: 1, High: 2, Count: 2}}},
		{"not finite are left out", []float64{0, nan, inf, 2}, 1, []tensorboard.Bucket{{Low: 0, High: 2, Count: 2}}},
		{"as wide as can be", []float64{-math.MaxFloat64, 0, math.MaxFloat64}, 2,
			[]tensorboard.Bucket{{Low: -math.MaxFloat64, High: 0, Count: 1}, {Low: 0, High: math.MaxFloat64, Count: 2}}},
	} {
		t.Run(row.name, func(t *testing.T) {
			require.Equal(t, row.want, tensorboard.NewHistogram(row.values, row.buckets).Buckets)
		})
	}
}

// Each finite number is in the bucket where its edges say, none is lost, and buckets lie side by side.
func TestNewHistogram_law(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOf(rapid.Float64()).Draw(t, "values")
		h := tensorboard.NewHistogram(values, rapid.IntRange(0, 40).Draw(t, "buckets"))
		for i, b := range h.Buckets {
			count := 0.0
			for _, v := range values {
				if v >= b.Low && (v < b.High || i == len(h.Buckets)-1 && v == b.High) {
					count++
				}
			}
			require.Equal(t, count, b.Count)
			if i > 0 {
				require.Equal(t, h.Buckets[i-1].High, b.Low)
			}
		}
		sum := 0.0
		for _, b := range h.Buckets {
			sum += b.Count
		}
		require.EqualValues(t, len(values), sum, "rapid draws finite numbers")
	})
}
