package losses_test

import (
	"math"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/nn/losses"
)

func TestNamed_settings(t *testing.T) {
	for _, row := range []struct {
		name     string
		settings []losses.Settings
		want     string
	}{
		{"mse", []losses.Settings{{Delta: 2}}, `loss "mse": Delta is 2, and this loss does not have it: expected 0`},
		{"huber", []losses.Settings{{Gamma: 1}}, `loss "huber": Gamma is 1, and this loss does not have it`},
		{"huber", []losses.Settings{{Delta: -1}}, `loss "huber": Delta is -1, expected a positive, finite number`},
		{"huber", []losses.Settings{{Delta: math.NaN()}}, `Delta is NaN, expected a positive, finite number`},
		{"huber", []losses.Settings{{}, {}}, `2 settings given, expected at most one`},
		{"binary_focal_crossentropy", []losses.Settings{{Alpha: 1.5}}, `Alpha is 1.5, expected a share up to 1`},
	} {
		_, err := losses.Named(row.name, row.settings...)
		require.ErrorContains(t, err, row.want)
	}
	f, err := losses.Named("huber", losses.Settings{Delta: 2})
	require.NoError(t, err)
	e, err := graph.NewExec(plugintest.Go(t), func(labels, output *graph.Node) *graph.Node { return f(labels, output) })
	require.NoError(t, err)
	out, err := e.Call1([]float32{0, 0, 0}, []float32{1, -2, 5})
	require.NoError(t, err)
	require.Equal(t, []float32{0.5, 2, 2 + 2*3}, out.Value())
}

func TestLosses_outsideTheirLabels(t *testing.T) {
	e, err := graph.NewExec(plugintest.Go(t), func(classes, logits *graph.Node) []*graph.Node {
		z := graph.Squeeze(graph.Slice(logits, graph.AxisRange(), graph.AxisElem(0)), -1)
		return []*graph.Node{
			losses.CrossEntropy(classes, logits),
			losses.BinaryCrossEntropy(graph.ConvertDType(classes, z.DType()), z),
			losses.MaskedMean(losses.CrossEntropy(classes, logits), graph.LessThan(classes, graph.Scalar(classes.Graph(), classes.DType(), 2))),
		}
	})
	require.NoError(t, err)
	out, err := e.Call([]int32{0, 1, 2}, [][]float32{{0, 0}, {0, 0}, {0, 0}})
	require.NoError(t, err)
	for _, each := range out[:2] {
		v := each.Value().([]float32)
		require.InDeltaSlice(t, []float32{math.Ln2, math.Ln2}, v[:2], 1e-6)
		require.True(t, math.IsNaN(float64(v[2])), "a label outside is NaN, got %g", v[2])
	}
	require.InDelta(t, math.Ln2, out[2].Value(), 1e-6, "a mask excludes the label outside")
}
