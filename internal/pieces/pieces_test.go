package pieces_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lazo-ml/lazo/internal/pieces"
)

// A list is as a slice, whatever is done to it in which order.
func TestList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var l pieces.List[int]
		var want []int
		next := 0
		for range rapid.IntRange(1, 30).Draw(t, "actions") {
			n := rapid.SampledFrom([]int{1, 3, 511, 512, 700}).Draw(t, "n")
			switch rapid.SampledFrom([]string{"push", "push", "pop", "keep"}).Draw(t, "action") {
			case "push":
				for range n {
					l.Push(next)
					want = append(want, next)
					next++
				}
			case "pop":
				for range min(n, len(want)) {
					l.Pop()
					want = want[:len(want)-1]
				}
			case "keep":
				even := func(i int) bool { return i%2 == 0 }
				l.Keep(even)
				var kept []int
				for i, v := range want {
					if even(i) {
						kept = append(kept, v)
					}
				}
				want = kept
			}
			require.Equal(t, len(want), l.Len())
			var all []int
			for v := range l.All {
				all = append(all, *v)
			}
			require.True(t, slices.Equal(want, all))
			if len(want) > 0 {
				middle := len(want) / 2
				require.Equal(t, want[middle], *l.At(middle))
				require.Equal(t, middle, l.Search(func(v *int) bool { return *v >= want[middle] }))
			}
		}
	})
}
