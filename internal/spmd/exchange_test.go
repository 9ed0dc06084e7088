package spmd_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/spmd"
)

func TestRewrite_eachKind(t *testing.T) {
	rewritten, _, err := spmd.Rewrite(partition(t, "each_kind", 2), 2)
	require.NoError(t, err)
	require.Equal(t, []string{
		"lazo.all_to_all {site = 0 : i64, groups = array<i64: 0, 1>, group_size = 2 : i64}",
		"lazo.all_gather {site = 1 : i64, groups = array<i64: 0, 1>, group_size = 2 : i64}",
		"lazo.reduce_scatter {site = 2 : i64, op = 3 : i64, groups = array<i64: 0, 1>, group_size = 2 : i64}",
		"lazo.collective_permute {site = 3 : i64, pairs = array<i64: 0, 1, 1, 0>}",
	}, spmd.Line(t, rewritten))
}
