package losses_test

import (
	"encoding/json"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/nn"
	"github.com/lazo-ml/lazo/nn/losses"
)

// ctcOf returns the losses of flat logits, and the gradient of their sum.
func ctcOf(t *testing.T, dtype dtypes.DType, labels [][]int32, logits [][][]float64, lengths []int32) (each []float64, slope [][][]float64) {
	exec := graph.MustNewExec(plugintest.CPU(t), func(labels, logits, lengths *graph.Node) (each, slope *graph.Node) {
		z := graph.ConvertDType(logits, dtype)
		each = losses.CTC(labels, nn.Masked(z, lengths))
		slope = graph.Gradient(graph.ReduceAllSum(each), z)[0]
		return graph.ConvertDType(each, dtypes.Float64), graph.ConvertDType(slope, dtypes.Float64)
	})
	a, b, err := exec.Call2(labels, logits, lengths)
	require.NoError(t, err)
	return a.Value().([]float64), b.Value().([][][]float64)
}

func greatest(a, b []float64) (difference float64) {
	for i := range a {
		difference = max(difference, math.Abs(a[i]-b[i]))
	}
	return difference
}

func flat(a [][][]float64) (all []float64) {
	for _, of := range a {
		for _, row := range of {
			all = append(all, row...)
		}
	}
	return all
}

func TestCTC_equalsOptax(t *testing.T) {
	text, err := os.ReadFile("testdata/ctc.json")
	require.NoError(t, err)
	var peer struct {
		Labels                             [][]int32
		Lengths                            []int32
		Frames, Classes                    int
		Logits, Losses, Gradients, Float32 []float64
	}
	require.NoError(t, json.Unmarshal(text, &peer))
	var logits [][][]float64
	for of := range slices.Chunk(peer.Logits, peer.Frames*peer.Classes) {
		logits = append(logits, slices.Collect(slices.Chunk(of, peer.Classes)))
	}
	each, slope := ctcOf(t, dtypes.Float64, peer.Labels, logits, peer.Lengths)
	require.Less(t, greatest(peer.Losses, each), 1e-12)
	require.Less(t, greatest(peer.Gradients, flat(slope)), 1e-12)
	each, slope = ctcOf(t, dtypes.Float32, peer.Labels, logits, peer.Lengths)
	require.Less(t, greatest(peer.Losses, each), 10*peer.Float32[0])
	require.Less(t, greatest(peer.Gradients, flat(slope)), 10*peer.Float32[1])
	each, _ = ctcOf(t, dtypes.BFloat16, peer.Labels, logits, peer.Lengths)
	require.Less(t, greatest(peer.Losses, each), 0.2)
}

// The sum over all paths, which are counted one by one.
func TestCTC_isTheSumOfAllPaths(t *testing.T) {
	logits := [][]float64{{0.5, -1, 2}, {1, 1, -2}, {0, 0.3, 0.1}, {-1, 2, 0.7}}
	for _, labels := range [][]int32{{1, 2, 0}, {1, 1, 0}, {2, 0, 0}, {0, 0, 0}, {1, 2, 1}, {2}} {
		p := 0.0
		for path := range 81 {
			odds, read, before := 1.0, []int32{}, int32(0)
			for f, at := 0, path; f < 4; f, at = f+1, at/3 {
				class, sum := int32(at%3), 0.0
				for _, z := range logits[f] {
					sum += math.Exp(z)
				}
				odds *= math.Exp(logits[f][class]) / sum
				if class != 0 && class != before {
					read = append(read, class)
				}
				before = class
			}
			if slices.Equal(read, slices.DeleteFunc(slices.Clone(labels), func(l int32) bool { return l == 0 })) {
				p += odds
			}
		}
		each, _ := ctcOf(t, dtypes.Float64, [][]int32{labels}, [][][]float64{logits}, []int32{4})
		require.InDelta(t, -math.Log(p), each[0], 1e-12, "%d", labels)
	}
}

// Too many labels for the frames are impossible, and other labels are faults; neither moves a weight.
func TestCTC_refusesLabels(t *testing.T) {
	logits := make([][][]float64, 5)
	for i := range logits {
		logits[i] = [][]float64{{1, 2, 3}, {3, 1, 2}, {0, 0, 0}}
	}
	each, slope := ctcOf(t, dtypes.Float32, [][]int32{{1, 1, 0}, {1, 1, 2}, {3, 0, 0}, {1, 0, 2}, {-1, 0, 0}}, logits, []int32{3, 3, 3, 3, 3})
	require.False(t, math.IsInf(each[0], 0) || math.IsNaN(each[0]))
	require.NotZero(t, flat(slope[:1])[0])
	require.True(t, math.IsInf(each[1], 1), "%v", each)
	for _, v := range each[2:] {
		require.True(t, math.IsNaN(v), "%v", each)
	}
	for _, v := range flat(slope[1:]) {
		require.Zero(t, v)
	}
	_, _, err := graph.MustNewExec(plugintest.CPU(t), func(labels, logits *graph.Node) (a, b *graph.Node) {
		return losses.CTC(labels, logits), labels
	}).Call2([]int32{1, 2}, [][][]float32{{{1, 2}}, {{1, 2}}})
	require.ErrorContains(t, err, "ctc: labels (Int32)[2] do not fit the output (Float32)[2, 1, 2]: expected integers [batch, labels]")
}
