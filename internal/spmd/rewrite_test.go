package spmd_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/pjrt"
	"github.com/lazo-ml/lazo/internal/spmd"
)

// partition returns the module of a program in testdata for this many partitions.
func partition(t testing.TB, name string, partitions int) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name+".mlir"))
	require.NoError(t, err)
	program := strings.ReplaceAll(string(text), `"data"=2`, fmt.Sprintf(`"data"=%d`, partitions))
	module, err := openCPU(t, partitions).Partition([]byte(program), pjrt.CompileOptions{Partitions: partitions, SPMD: true, Shardy: true})
	require.NoError(t, err)
	return module
}

func TestRewrite_division(t *testing.T) {
	module := partition(t, "division", 2)
	rewritten, found, err := spmd.Rewrite(module, 2)
	require.NoError(t, err)
	require.Equal(t, []string{
		"lazo.all_reduce {site = 0 : i64, op = 0 : i64, groups = array<i64: 0, 1>, group_size = 2 : i64}",
		"lazo.all_gather {site = 1 : i64, groups = array<i64: 0, 1>, group_size = 2 : i64}",
	}, spmd.Line(t, rewritten))
	require.Equal(t, 2, found.Exchanges)
	require.Equal(t, spmd.Call{0, spmd.AllReduce, []string{"all-reduce (dot.1)"}, 1, 0, 64, 2, "main.0_spmd"}, found.Calls[0])
	_, _, err = spmd.Rewrite(module, 0)
	require.EqualError(t, err, "spmd: rewrite for 0 ranks: expected 1 to 1048576")
	_, _, err = spmd.Rewrite(module, 3)
	require.ErrorIs(t, err, spmd.ErrUnsupported)
	require.EqualError(t, err, "spmd: rewrite division: the exchange is not supported: all-reduce all-reduce of main.0_spmd (dot.1): its groups [[0 1]] do not contain each of 3 partitions")
}
