package managed_test

import (
	"fmt"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/strategies"
)

// A batch with more or fewer elements than its dims say is refused, first or later in a block, and never read past its
// end.
func TestBatch_lengthAndDims(t *testing.T) {
	r := plugintest.Devices(t, 2)
	parallel, err := strategies.DataParallel(r, strategies.Parallel{})
	require.NoError(t, err)
	const has = `field "x": dims [4 2] mean 8 elements, but Flat has`
	whole := []float32{1, 1, 1, 1, 1, 1, 1, 999}
	good, short, long := batchOf(data.X(whole, 4, 2)), batchOf(data.X(whole[:7], 4, 2)), batchOf(data.X(append(whole, 1), 4, 2))
	for _, s := range []strategies.Strategy{strategies.Jit(r), parallel, strategies.Eager(r)} {
		state, err := managed.New(s, managed.WithOptimizer(sgd()))
		require.NoError(t, err)
		sum := func(b *managed.Builder) {
			w := b.Scope().VariableWithValue("w", float32(1)).NodeValue(b.Graph())
			b.Loss("sum", graph.Mul(w, graph.ReduceAllSum(b.Field("x"))))
		}
		for _, step := range []*managed.Stepper{managed.TestStep(sum), managed.TrainStep(sum)} {
			stepper(t, step)
			for _, row := range []struct {
				batches []data.Batch
				want    string
			}{
				{[]data.Batch{short}, "step 1: %v: %s 7"},
				{[]data.Batch{good, good, short, good}, "step 3: %v: %s 7"},
				{[]data.Batch{good, long}, "step 2: %v: %s 9"},
			} {
				source := func(yield func(data.Batch, error) bool) {
					for _, b := range row.batches {
						if !yield(b, nil) {
							return
						}
					}
				}
				_, err := loop.New(loop.On(loop.EachStep, step)).Run(t.Context(), state, loop.Data[data.Batch](source))
				require.EqualError(t, err, "loop: "+fmt.Sprintf(row.want, step, has), s)
			}
			_, _, err = step.Step(t.Context(), state, short)
			require.EqualError(t, err, fmt.Sprintf("managed: %v: %s 7", step, has), s)
		}
		require.NoError(t, state.Close())
	}
}
