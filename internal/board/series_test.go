package board

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func seriesOf(n int, value func(i int) float64) *series {
	s := &series{}
	for i := range n {
		s.add(point{int64(i + 1), float64(i+1) / 10, value(i)}, most)
	}
	return s
}

// Each value is in a bucket, whose extremes and mean are the points' own.
func TestReduce_keepsMeanAndExtremes(t *testing.T) {
	s := seriesOf(100_000, func(i int) float64 {
		switch i {
		case 77_777:
			return 50
		case 12_345:
			return math.NaN()
		}
		return math.Sin(float64(i) / 1000)
	})
	for _, x := range []axis{bySteps, bySeconds} {
		all := s.between(x, math.Inf(-1), math.Inf(1))
		b := bucketOf(x, 500, all)
		require.Positive(t, b)
		require.Equal(t, b, math.Exp2(math.Round(math.Log2(b))))
		c := reduce(all, x, b)
		require.LessOrEqual(t, len(c.x), 502)
		require.GreaterOrEqual(t, len(c.x), 250)
		highest, sum := math.Inf(-1), 0
		at := 0
		for i := range c.x {
			low, high, mean, n := math.Inf(1), math.Inf(-1), 0.0, 0
			place := math.Floor(x(all[at]) / b)
			for ; at < len(all) && math.Floor(x(all[at])/b) == place; at++ {
				if v := all[at].value; !math.IsNaN(v) {
					low, high, mean, n = min(low, v), max(high, v), mean+v, n+1
				}
			}
			require.Equal(t, low, c.low[i])
			require.Equal(t, high, c.high[i])
			require.InDelta(t, mean/float64(n), c.mean[i], 1e-9)
			require.Equal(t, place, math.Floor(c.x[i]/b))
			highest, sum = max(highest, c.high[i]), sum+n
		}
		require.Equal(t, 50.0, highest)
		require.Equal(t, 99_999, sum)
	}
}

// Few points are themselves, also next to a series with many.
func TestBucketOf(t *testing.T) {
	few, many := seriesOf(100, func(i int) float64 { return 1 }), seriesOf(10_000, func(i int) float64 { return 1 })
	require.Zero(t, bucketOf(bySteps, 500, few.points))
	require.Equal(t, 32.0, bucketOf(bySteps, 500, few.points, many.points))
	require.Zero(t, bucketOf(bySteps, 500))
	require.Equal(t, 2.0, bucketOf(bySeconds, 500, many.points, nil), "1000 s in 500 parts")
	c := reduce(few.points, bySteps, 0)
	require.Len(t, c.x, 100)
	require.Equal(t, 100.0, c.x[99])
}

func TestSeries_between(t *testing.T) {
	s := seriesOf(10, func(i int) float64 { return 0 })
	require.Len(t, s.between(bySteps, 3, 5), 3)
	require.Len(t, s.between(bySteps, 2.5, 5.5), 3)
	require.Len(t, s.between(bySeconds, .3, .5), 3)
	require.Empty(t, s.between(bySteps, 20, 30))
	require.Empty(t, s.between(bySteps, 5, 3))
}

// A value of the same step replaces the earlier one; time does not run back.
func TestSeries_add(t *testing.T) {
	s := &series{}
	s.add(point{1, 5, 1}, most)
	s.add(point{2, 4, 2}, most)
	s.add(point{2, 6, 3}, most)
	require.Equal(t, []point{{1, 5, 1}, {2, 6, 3}}, s.points)
	s.rewind(2)
	require.Equal(t, []point{{1, 5, 1}}, s.points)
	require.Equal(t, 1, s.rewound)
	s.rewind(7)
	require.Equal(t, 1, s.rewound)
}

// The older half keeps its extremes, the newer one all.
func TestSeries_thin(t *testing.T) {
	s := &series{}
	for i := range 101 {
		v := float64(i % 4)
		if i == 21 {
			v = -9
		}
		s.add(point{int64(i), 0, v}, 100)
	}
	require.Less(t, len(s.points), 80)
	require.Equal(t, 1, s.rewound)
	var steps []int64
	for _, p := range s.points {
		steps = append(steps, p.step)
	}
	require.IsIncreasing(t, steps)
	require.Contains(t, s.points, point{21, 0, -9})
	require.Contains(t, s.points, point{3, 0, 3})
	require.NotContains(t, s.points, point{2, 0, 2})
	require.Contains(t, s.points, point{62, 0, 2})
}

func TestColumns_JSON(t *testing.T) {
	var c columns
	c.add(1, math.NaN(), math.Inf(-1), 1.23456789)
	var got map[string][]*float64
	require.NoError(t, json.Unmarshal(append(append([]byte(`{"z":[]`), c.appendJSON(nil)...), '}'), &got))
	require.Equal(t, 1.0, *got["x"][0])
	require.Nil(t, got["mean"][0])
	require.Nil(t, got["low"][0])
	require.Equal(t, 1.234568, *got["high"][0])
}
