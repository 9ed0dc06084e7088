package managed_test

import (
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
)

func TestArray(t *testing.T) {
	var logs loop.Logs
	logs.Metric("number", 1)
	logs.Output("text", "no array")
	for _, row := range []struct{ name, err string }{
		{"number", "managed: array: metrics.number is a single number: Logs.Float reads it"},
		{"text", "managed: array: outputs.text is a string, expected an output of Builder.Output"},
		{"nothing", "managed: array: loop: "},
	} {
		_, err := managed.Array(logs, row.name)
		require.ErrorContains(t, err, row.err)
	}
	_, err := managed.Array(logs, "nothing")
	require.ErrorIs(t, err, loop.ErrNoEntry)

	r := plugintest.CPU(t)
	step := managed.TestStep(func(b *managed.Builder) {
		b.Output("twice", graph.MulScalar(b.Field("x"), 2))
		b.Output("half", graph.ConvertDType(b.Field("x"), dtypes.BFloat16))
	})
	t.Cleanup(func() { require.NoError(t, step.Close()) })
	_, logs, err = step.Step(t.Context(), newState(t, r), data.Batch{Size: 2, Fields: []data.Field{data.X([]float32{1, 2}, 2, 1)}})
	require.NoError(t, err)
	for range 2 { // each a copy of its own
		a, err := managed.Array(logs, "outputs.twice")
		require.NoError(t, err)
		require.Equal(t, data.Array{Flat: []float32{2, 4}, Dims: []int{2, 1}}, a)
		a.Flat.([]float32)[0] = 9
	}
	_, err = managed.Array(logs, "half")
	require.ErrorContains(t, err, "graph.ConvertDType")
}
