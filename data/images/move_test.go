package images

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Pixels that are moved in runs come to where each of them would.
func TestMove_law(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, channels := rapid.IntRange(1, 6).Draw(t, "w"), rapid.IntRange(1, 4).Draw(t, "channels")
		columns := rapid.SliceOfN(rapid.IntRange(-1, w-1), 1, 12).Draw(t, "columns")
		rows := rapid.SliceOfN(rapid.IntRange(-1, 1), 1, 4).Draw(t, "rows")
		from := make([]int32, 2*w*channels)
		for i := range from {
			from[i] = int32(i + 1)
		}
		to := moveOf(from, []int{1, 2, w, channels}, []int{1, len(rows), len(columns), channels}, func(int) ([]int, []int) { return rows, columns })
		for i, r := range rows {
			for j, c := range columns {
				for k := range channels {
					want := int32(0)
					if r >= 0 && c >= 0 {
						want = from[(r*w+c)*channels+k]
					}
					require.Equal(t, want, to[(i*len(columns)+j)*channels+k])
				}
			}
		}
	})
}
