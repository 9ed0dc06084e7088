package strategies_test

import (
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/strategies"
)

func TestInputs(t *testing.T) {
	batch := func(fields ...data.Field) data.Batch { return data.Batch{Fields: fields} }
	in, err := strategies.Inputs(batch(data.X([]int64{1, 2, 3, 4}, 2, 2)))
	require.NoError(t, err)
	require.Equal(t, []strategies.Input{{Name: "x", Shape: shapes.Make(dtypes.Int64, 2, 2)}}, in)
	_, err = strategies.Inputs(batch(data.X([]int64{1, 2, 3}, 2, 2)))
	require.EqualError(t, err, `strategies: field "x": dims [2 2] mean 4 elements, but Flat has 3`)
}
