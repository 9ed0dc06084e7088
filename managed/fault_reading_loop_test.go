package managed_test

import (
	"fmt"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/strategies"
)

func dataThatReads(t *testing.T, strategy strategies.Strategy) {
	run := func(options ...loop.Option) (seen []string, values map[string][]byte) {
		state, err := managed.New(strategy, managed.WithOptimizer(sgd()))
		require.NoError(t, err)
		defer func() { require.NoError(t, state.Close()) }()
		train := stepper(t, managed.TrainStep(regression))
		test := stepper(t, managed.TestStep(func(b *managed.Builder) {
			regression(b)
			b.Metric("steps", graph.ConvertDType(b.Steps(), b.Field("x").DType()))
		}))
		batch := firstBatch(t)
		source := loop.Data[data.Batch](func(yield func(data.Batch, error) bool) {
			for i := 0; yield(batch, nil); i++ {
				switch i % 6 {
				case 1:
					seen = append(seen, fmt.Sprint(i, floats(t, state, "/dense/dense/weights")))
				case 2:
					_, logs, err := test.Step(t.Context(), state, batch)
					require.NoError(t, err)
					require.EqualValues(t, i+1, float(t, logs, "steps"))
					seen = append(seen, fmt.Sprint(i, float(t, logs, "loss")))
				case 4:
					view, err := state.View(t.Context())
					require.NoError(t, err)
					logs, err := view.Step(t.Context(), test, batch)
					require.NoError(t, err)
					seen = append(seen, fmt.Sprint(i, float(t, logs, "loss")))
					require.NoError(t, view.Close())
				case 5:
					rate, err := state.LearningRate()
					require.NoError(t, err)
					require.NoError(t, state.SetLearningRate(rate*0.9))
				}
			}
		})
		_, err = loop.New(loop.On(loop.EachStep, train)).Run(t.Context(), state, source, append(options, loop.Until(loop.Steps(40)))...)
		require.NoError(t, err)
		return seen, bits(t, state)
	}
	seen, values := run()
	want, single := run(loop.SingleSteps())
	require.Equal(t, want, seen)
	require.Equal(t, single, values)
	require.Len(t, seen, 20)
}
