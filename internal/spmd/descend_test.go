package spmd_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/spmd"
)

func TestRewrite_loop(t *testing.T) {
	rewritten, found, err := spmd.Rewrite(partition(t, "loop", 4), 4)
	require.NoError(t, err)
	require.Equal(t, []string{"lazo.all_reduce {site = 0 : i64, op = 0 : i64, groups = array<i64: 0, 1, 2, 3>, group_size = 4 : i64}"}, spmd.Line(t, rewritten))
	require.Equal(t, "region_0.0_spmd", found.Calls[0].Computation)
	require.Equal(t, 1, spmd.Loops(t, rewritten), "loops that carry a token")
}
