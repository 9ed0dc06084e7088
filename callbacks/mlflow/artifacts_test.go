package mlflow

import (
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/flaxlike"
)

func TestSpec(t *testing.T) {
	got, err := spec([]Tensor{{Name: "x", Type: "float32", Dims: []int{-1, 3}}, {Type: "int64", Dims: []int{-1}}})
	require.NoError(t, err)
	require.JSONEq(t, `[{"name":"x","type":"tensor","tensor-spec":{"dtype":"float32","shape":[-1,3]}},{"type":"tensor","tensor-spec":{"dtype":"int64","shape":[-1]}}]`, got.(string))
	for _, none := range [][]Tensor{nil, {{Type: "bfloat16"}}} { // which NumPy lacks
		got, err := spec(none)
		require.NoError(t, err)
		require.Nil(t, got)
	}
}

func TestOutputsOf(t *testing.T) {
	row := func(name, kind string, dims ...int) flaxlike.LayerRow {
		return flaxlike.LayerRow{Name: name, Kind: kind, Output: shapes.Make(dtypes.Float32, dims...)}
	}
	layers := []flaxlike.LayerRow{row("0", "Dense", 2, 8), row("1", "Residual", 2, 4), row("1/0", "Dense", 2, 5), row("other", "variables")}
	require.Equal(t, []flaxlike.LayerRow{row("output", "Residual", 2, 4)}, outputsOf(layers), "the last layer, not one within it")
	own := []flaxlike.LayerRow{row("a", "output", 2), row("b", "output", 3)}
	require.Equal(t, own, outputsOf(append(layers, own...)))
	require.Empty(t, outputsOf(nil))
}
