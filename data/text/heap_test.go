package text

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// Numbers come out in order, equal ones as often as they went in, whatever pushes and pops came between.
func TestHeap_popsInOrder(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	h := heap[int]{before: func(a, b int) bool { return a < b }}
	var want []int
	for range 2000 {
		if random.IntN(3) > 0 {
			x := random.IntN(50)
			h.push(x)
			want = append(want, x)
			slices.Sort(want)
			continue
		}
		got, ok := h.pop()
		require.Equal(t, len(want) > 0, ok)
		if ok {
			require.Equal(t, want[0], got)
			want = want[1:]
		}
	}
	require.NotEmpty(t, want)
	for _, x := range want {
		got, ok := h.pop()
		require.True(t, ok)
		require.Equal(t, x, got)
	}
	got, ok := h.pop()
	require.False(t, ok)
	require.Zero(t, got)
}
