package flaxlike_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/janpfeifer/must"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/nn"
)

// A NaN or an infinite number in an input is an error before the first step, with the field and the example, in Fit,
// Evaluate and Predict; a network that asks where they are takes them.
func TestS36_inputsAreFinite(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	filled := func(fill func(x *graph.Node) *graph.Node) nn.Layer {
		return nn.Func(func(scope *model.Scope, x *graph.Node) *graph.Node {
			return nn.Dense{Units: 1}.Apply(scope, graph.ConvertDType(fill(x), dtypes.Float32))
		})
	}
	is := func(x *graph.Node) *graph.Node {
		return graph.Equal(graph.Abs(x), graph.Infinity(x.Graph(), x.DType(), 1))
	}
	zeros := graph.ZerosLike
	for name, c := range map[string]struct {
		network nn.Layer
		takes   []float64
	}{
		"asks nothing":            {filled(func(x *graph.Node) *graph.Node { return x }), nil},
		"a ReLU":                  {filled(func(x *graph.Node) *graph.Node { return graph.MaxScalar(x, 0) }), nil},
		"asks for NaN":            {filled(func(x *graph.Node) *graph.Node { return graph.Where(graph.IsNaN(x), zeros(x), x) }), []float64{nan}},
		"asks for what is no NaN": {filled(func(x *graph.Node) *graph.Node { return graph.Where(graph.NotEqual(x, x), zeros(x), x) }), []float64{nan}},
		"asks for finite numbers": {filled(func(x *graph.Node) *graph.Node { return graph.Where(graph.IsFinite(x), x, zeros(x)) }), []float64{nan, inf, -inf}},
		"asks for infinite ones":  {filled(func(x *graph.Node) *graph.Node { return graph.Where(is(x), zeros(x), x) }), []float64{inf, -inf}},
		"clips":                   {filled(func(x *graph.Node) *graph.Node { return graph.ClipScalar(x, -3, 3) }), []float64{inf, -inf}},
		"clamps": {filled(func(x *graph.Node) *graph.Node {
			return graph.Clip(x, graph.Scalar(x.Graph(), x.DType(), -3), graph.Scalar(x.Graph(), x.DType(), 3))
		}), []float64{inf, -inf}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, bad := range []float64{nan, inf, -inf, math.MaxFloat32} {
				for _, x := range []any{[]float32{1, 2, 3, 4, 5, float32(bad), 7, 8}, []float64{1, 2, 3, 4, 5, bad, 7, 8}} {
					set := must.M1(data.New(data.Field{Name: "x", Array: data.Array{Flat: x, Dims: []int{4, 2}}}, data.Y(make([]float32, 4), 4)))
					m := newModel(t, c.network, flaxlike.WithLoss("mse"))
					takes := slices.ContainsFunc(append(c.takes, math.MaxFloat32), func(v float64) bool { return v == bad || v != v && bad != bad })
					_, predict := m.Predict(t.Context(), set)
					if takes {
						require.NoError(t, predict, "%v %T", bad, x)
						continue
					}
					_, fit := m.Fit(t.Context(), set, quiet(flaxlike.Fit{}))
					_, evaluate := m.Evaluate(t.Context(), set)
					_, _, step := m.TrainStep(t.Context(), first(t, set, 4))
					for _, err := range []error{predict, fit, evaluate, step} {
						require.ErrorContains(t, err, fmt.Sprintf(`field "x": input %v of example 2 in the`, bad))
						require.ErrorContains(t, err, "the network takes finite numbers")
						require.ErrorIs(t, err, flaxlike.ErrValue)
					}
				}
			}
		})
	}
}
