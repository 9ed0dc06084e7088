package outputs_test

import (
	"math"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/nn/losses"
)

// A label outside the classes has the loss NaN: with 0, a training on wrong labels looked perfect. Outside a mask it
// changes neither the loss nor a gradient.
func TestCrossEntropy_labelsOutsideTheClasses(t *testing.T) {
	for name, open := range plugintest.Platforms {
		backend := open(t)
		run := func(labels any, mask []bool) (each []float32, loss float32, slope [][]float32) {
			of := graph.MustNewExec(backend, func(logits, labels, mask *graph.Node) []*graph.Node {
				values := losses.CrossEntropy(labels, logits)
				loss := losses.MaskedMean(values, mask)
				return []*graph.Node{values, loss, graph.Gradient(loss, logits)[0]}
			})
			out := of.MustCall([][]float32{{1, 2, 3}, {1, 2, 3}, {1, 2, 3}}, labels, mask)
			return out[0].Value().([]float32), out[1].Value().(float32), out[2].Value().([][]float32)
		}
		for _, labels := range []any{[]int32{0, -1, 3}, []int64{0, math.MinInt64, math.MaxInt64}, []int8{0, -128, 127}, []uint8{0, 3, 255}} {
			each, loss, slope := run(labels, []bool{true, false, false})
			require.InDelta(t, 2.407606, each[0], 1e-6, name)
			require.True(t, math.IsNaN(float64(each[1])) && math.IsNaN(float64(each[2])), "%s: %v: %v", name, labels, each)
			require.Equal(t, each[0], loss, name)
			require.Equal(t, [][]float32{{0, 0, 0}, {0, 0, 0}}, slope[1:], name)

			_, loss, slope = run(labels, []bool{true, true, false})
			require.True(t, math.IsNaN(float64(loss)), name)
			require.Equal(t, []float32{0, 0, 0}, slope[1], name)
		}
	}
}

// Labels of a narrow dtype may number more classes than the dtype holds.
func TestCrossEntropy_narrowLabels(t *testing.T) {
	of := graph.MustNewExec(plugintest.CPU(t), losses.CrossEntropy)
	got := of.MustCall([]uint8{0, 255}, [][]float32{make([]float32, 300), make([]float32, 300)})[0].Value().([]float32)
	require.InDeltaSlice(t, []float32{5.703782, 5.703782}, got, 1e-5)
}

// A label outside [0, 1] has the loss NaN: with labels 1 and 2, or -1 and 1, a binary loss trained towards nothing, and
// was negative.
func TestBinaryCrossEntropy_labelsOutsideZeroToOne(t *testing.T) {
	for name, open := range plugintest.Platforms {
		backend := open(t)
		for loss, f := range map[string]func(labels, z *graph.Node) *graph.Node{"plain": losses.BinaryCrossEntropy, "focal": losses.BinaryFocalCrossEntropy} {
			of := graph.MustNewExec(backend, func(labels, z *graph.Node) []*graph.Node {
				each := f(labels, z)
				return []*graph.Node{each, graph.Gradient(graph.ReduceAllSum(each), z)[0]}
			})
			for _, labels := range []any{[]float32{0, 0.5, 1, 2, -1, 1.5}, []float32{0, 0.5, 1, float32(math.NaN()), float32(math.Inf(1)), -0.001}} {
				out := of.MustCall(labels, []float32{0.3, 0.3, 0.3, 0.3, 0.3, 0.3})
				each, slope := out[0].Value().([]float32), out[1].Value().([]float32)
				for i := range each {
					require.Equal(t, i > 2, math.IsNaN(float64(each[i])), "%s %s: %v", name, loss, each)
					require.Equal(t, i > 2, slope[i] == 0 || math.IsNaN(float64(slope[i])), "%s %s: %v", name, loss, slope)
				}
			}
			ints := of.MustCall([]int32{0, 1, 2}, []float32{0.3, 0.3, 0.3})[0].Value().([]float32)
			require.True(t, math.IsNaN(float64(ints[2])) && !math.IsNaN(float64(ints[0]+ints[1])))
		}
	}
}
