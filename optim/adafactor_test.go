package optim

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLongestAxes(t *testing.T) {
	for _, row := range []struct {
		dims            []int
		shorter, longer int
		ok              bool
	}{
		{nil, 0, 0, false},
		{[]int{500}, 0, 0, false},
		{[]int{200, 300}, 0, 1, true},
		{[]int{300, 200}, 1, 0, true},
		{[]int{200, 200}, 0, 1, true},
		{[]int{127, 1000}, 0, 0, false},
		{[]int{3, 3, 256, 128}, 3, 2, true},
		{[]int{400, 5, 300}, 2, 0, true},
	} {
		shorter, longer, ok := longestAxes(row.dims, 128)
		require.Equal(t, row.ok, ok, "%v", row.dims)
		if ok {
			require.Equal(t, [2]int{row.shorter, row.longer}, [2]int{shorter, longer}, "%v", row.dims)
		}
	}
}
