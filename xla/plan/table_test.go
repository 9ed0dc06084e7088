package plan

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/golden"
	"github.com/lazo-ml/lazo/xla"
	"github.com/lazo-ml/lazo/xla/cost"
)

// S54: the estimate says that it has no latencies.
func TestReport_tables(t *testing.T) {
	target, err := ParseTarget("h100:8")
	require.NoError(t, err)
	hlo, err := os.ReadFile("../cost/testdata/gpu-data-parallel.hlo")
	require.NoError(t, err)
	counts, err := cost.Count(string(hlo), []cost.Axis{{Name: "data", Size: 8}})
	require.NoError(t, err)
	r := &Report{Program: "train step", Target: "h100:8", Devices: 8, Division: "data parallel: 4 examples on each of 8 devices, all of the state on each", Batch: 32,
		Memory: xla.Memory{Arguments: 58776, Outputs: 57856, Aliased: 57732, Temporary: 39960}, Counts: counts, Compiled: 2957 * time.Millisecond,
		Fit: Fit{Fits: true, Needs: 98860, Has: 80e9, By: "the sum"}, Estimate: estimate(target, counts)}
	small := &Report{Program: "train step", Target: "v5e:1x1", Devices: 1, Division: "one device", Fit: Fit{Needs: 21 << 30, Has: 63 << 28, By: "the compiler"}}
	var b strings.Builder
	require.NoError(t, r.WriteTable(&b))
	require.NoError(t, small.WriteTable(&b))
	require.NoError(t, WriteGrowth(&b, []*Report{small, r}))
	golden.Equal(t, "testdata/tables.golden", b.String())
}
