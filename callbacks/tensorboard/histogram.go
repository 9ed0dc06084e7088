package tensorboard

import (
	"fmt"
	"log/slog"
	"math"
	"sort"
)

// Histogram is a distribution of numbers, logged with [loop.Logs.Output]. Buckets are ascending. An empty Histogram is
// not written.
type Histogram struct{ Buckets []Bucket }

// Bucket counts the values from Low to below High; the last bucket includes High.
type Bucket struct{ Low, High, Count float64 }

// NewHistogram counts values in buckets of equal width, 30 if buckets is at most 0. Equal values get one bucket of
// width 1 around them. NaN and infinities are ignored. The slice is not kept.
func NewHistogram[T float32 | float64](values []T, buckets int) Histogram {
	low, high := math.Inf(1), math.Inf(-1)
	for _, v := range values {
		if f := float64(v); isFinite(f) {
			low, high = min(low, f), max(high, f)
		}
	}
	if low > high {
		return Histogram{}
	}
	if low == high {
		low, high, buckets = low-0.5, high+0.5, 1
	}
	if buckets <= 0 {
		buckets = 30
	}
	all := make([]Bucket, buckets)
	edge := low
	for i := range all {
		all[i].Low = edge
		t := float64(i+1) / float64(buckets)
		// Ends are exact, nothing overflows, and edges ascend despite rounding.
		edge = max(edge, low*(1-t)+high*t)
		all[i].High = edge
	}
	for _, v := range values {
		if f := float64(v); isFinite(f) {
			i := sort.Search(buckets-1, func(i int) bool { return f < all[i].High })
			all[i].Count++
		}
	}
	return Histogram{all}
}

func isFinite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

func (h Histogram) String() string {
	n := 0.0
	for _, b := range h.Buckets {
		n += b.Count
	}
	if len(h.Buckets) == 0 {
		return "histogram of 0 values"
	}
	return fmt.Sprintf("histogram of %g values from %.6g to %.6g", n, h.Buckets[0].Low, h.Buckets[len(h.Buckets)-1].High)
}

func (h Histogram) LogValue() slog.Value { return slog.StringValue(h.String()) }
