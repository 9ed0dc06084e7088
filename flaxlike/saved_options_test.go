package flaxlike_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/nn"
)

// S46: the end of the context ends Open between two layers, also of a network whose build takes long.
func TestS46_openEndsWithItsContext(t *testing.T) {
	path := filepath.Join(t.TempDir(), "model.safetensors")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	built, last := 0, 9
	stops := nn.Func(func(scope *model.Scope, x *graph.Node) *graph.Node {
		if built++; built == last {
			cancel()
		}
		return x
	})
	network := func(other nn.Layer) nn.Layer { return nn.Sequential{other, other, other, nn.Dense{Units: 1}} }
	m := newModel(t, network(stops))
	require.NoError(t, m.Init(t.Context(), data.Batch{Fields: []data.Field{data.X(make([]float32, 2), 1, 2)}}))
	require.Equal(t, 3, built)
	require.NoError(t, m.Save(path))
	built, last = 0, 2
	_, err := flaxlike.Open(ctx, path, flaxlike.WithStrategy(jit(t)), flaxlike.WithNetwork(network(stops)))
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, 2, built)
}
