package strategies

import (
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"
)

func TestCutAndPaste(t *testing.T) {
	whole := tensors.FromValue([][][]int32{{{1, 2, 3}, {4, 5, 6}}, {{7, 8, 9}, {10, 11, 12}}})
	for _, row := range []struct {
		start []int
		part  any
	}{
		{[]int{0, 0, 0}, whole.Value()},
		{[]int{1, 0, 0}, [][][]int32{{{7, 8, 9}, {10, 11, 12}}}},
		{[]int{0, 1, 0}, [][][]int32{{{4, 5, 6}}, {{10, 11, 12}}}},
		{[]int{0, 0, 1}, [][][]int32{{{2, 3}, {5, 6}}, {{8, 9}, {11, 12}}}},
		{[]int{1, 1, 2}, [][][]int32{{{12}}}},
	} {
		want := tensors.FromAnyValue
		part, err := want(row.part)
		require.NoError(t, err)
		got, err := cut(whole, part.Shape(), row.start)
		require.NoError(t, err)
		require.Equal(t, row.part, got.Value())
		empty := tensors.FromShape(whole.Shape())
		require.NoError(t, paste(empty, part, row.start))
		back, err := cut(empty, part.Shape(), row.start)
		require.NoError(t, err)
		require.Equal(t, row.part, back.Value())
	}
	scalar, err := cut(tensors.FromScalar(float32(3)), shapes.Make(dtypes.Float32), nil)
	require.NoError(t, err)
	require.Equal(t, float32(3), scalar.Value())
	none, err := cut(whole, shapes.Make(dtypes.Int32, 2, 0, 3), []int{0, 1, 0})
	require.NoError(t, err)
	require.Zero(t, none.Shape().Size())
}
