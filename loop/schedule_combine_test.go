package loop_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/loop"
)

func TestB15_anyAndAll(t *testing.T) {
	require.Equal(t, []int64{6, 12}, firings(every(2).And(every(3)), 12))
	require.Equal(t, []int64{2, 3, 4, 6, 8, 9, 10, 12}, firings(every(2).Or(every(3)), 12))
	t.Logf("B15: both in 12 turns: %v", firings(every(2).And(every(3)), 12))
}

// The slice passed to Or and And remains the caller's.
func TestCombined_keepsItsOwnList(t *testing.T) {
	list := []loop.Schedule{every(2), every(3)}
	anyOf, allOf := list[0].Or(list[1:]...), list[0].And(list[1:]...)
	list[0], list[1] = loop.Never, loop.Never
	require.Equal(t, []int64{2, 3, 4, 6}, firings(anyOf, 6))
	require.Equal(t, []int64{6}, firings(allOf, 6))
}
