package pretrained_test

import (
	"testing"

	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/nn"
)

//lazo:norace
func TestMPNet_numbers(t *testing.T) { numbers(t, "mpnet") }

// The buckets of relative positions are those of transformers' T5, which MPNet has, too.
func TestRelativePositions(t *testing.T) {
	f := fixtureOf(t, "mpnet")
	const places = 300
	table := make([]float32, 32)
	for i := range table {
		table[i] = float32(i)
	}
	for name, want := range f.under("buckets/") {
		state, err := managed.New(host(t), managed.WithValues(map[string]*tensors.Tensor{"/embeddings": tensors.FromFlatDataAndDimensions(table, 32, 1)}))
		require.NoError(t, err)
		step := managed.TestStep(func(b *managed.Builder) {
			b.Output("y", nn.RelativePositions{Heads: 1, Causal: name == "causal"}.Apply(b.Scope(), b.Field("x")))
		})
		_, logs, err := step.Step(t.Context(), state, data.Batch{Size: 1, Fields: []data.Field{data.X(make([]float32, places), 1, places, 1)}})
		require.NoError(t, err)
		got, err := managed.Array(logs, "y")
		require.NoError(t, err)
		require.Equal(t, []int{1, 1, places, places}, got.Dims)
		require.Len(t, want.data, 2*places-1)
		for query := range places {
			for key := range places {
				require.Equal(t, float32(want.data[key-query+places-1]), got.Flat.([]float32)[query*places+key], "%s: place %d for %d", name, key, query)
			}
		}
		require.NoError(t, step.Close())
		require.NoError(t, state.Close())
	}
}
