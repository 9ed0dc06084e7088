package spmd_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/pjrt"
	"github.com/lazo-ml/lazo/internal/spmd"
)

// Joined programs compute the same bits as those that XLA partitioned, and exchange the arrays of independent sums as
// one. wide has sums above and below the limit.
func TestJoin_isBitIdentical(t *testing.T) {
	const devices = 2
	client := openCPU(t, devices)
	texts := programs(t, devices, "mlp", "wide", "metrics", "batch norm", "lstm")
	for _, name := range []string{"each_kind", "loop", "six_sums"} {
		text, err := os.ReadFile(filepath.Join("testdata", name+".mlir"))
		require.NoError(t, err)
		texts[name] = string(text)
	}
	divided := pjrt.CompileOptions{Partitions: devices, SPMD: true, Shardy: true}
	for name, text := range texts {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			p := parse(t, text)
			require.Equal(t, devices, p.devices())
			var arguments [][]pjrt.Array
			for d := range devices {
				var list []pjrt.Array
				for i := range p.parameters {
					list = append(list, p.argument(t, i, d))
				}
				arguments = append(arguments, list)
			}
			module, err := client.Partition([]byte(text), divided)
			require.NoError(t, err)
			joined, err := spmd.Join(module, devices)
			require.NoError(t, err)
			var outputs [2][][][]byte
			for i := range outputs {
				var e *pjrt.Executable
				if i == 0 {
					e, err = client.Compile([]byte(text), divided)
				} else {
					e, err = client.CompileHLO(joined, pjrt.CompileOptions{Replicas: devices})
				}
				require.NoError(t, err)
				outputs[i] = run(t, e, arguments)
				for range 20 { // independent exchanges have one order on all devices
					require.Equal(t, outputs[i], run(t, e, arguments))
				}
				require.NoError(t, e.Close())
			}
			require.Equal(t, outputs[0], outputs[1])
			switch name {
			case "mlp":
				require.Equal(t, []string{"all-reduce of 1"}, spmd.Exchanges(t, joined), "of gradients and loss")
			case "wide":
				require.Equal(t, []string{"all-reduce of 3"}, spmd.Exchanges(t, joined), "two matrices are above the limit")
			}
		})
	}
}

func TestJoin_many(t *testing.T) {
	joined, err := spmd.Join(spmd.Many(), 2)
	require.NoError(t, err)
	require.Len(t, spmd.Exchanges(t, joined), 12)
	_, err = spmd.Join(spmd.Many(), 0)
	require.EqualError(t, err, "spmd: join for 0 devices: expected 1 to 1048576")
	_, err = spmd.Join(spmd.Many(), 3)
	require.ErrorIs(t, err, spmd.ErrUnsupported)
	_, err = spmd.Join([]byte("x"), 2)
	require.ErrorContains(t, err, "spmd: join: malformed module")
}
