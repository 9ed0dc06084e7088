package flaxlike_test

import (
	"context"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/callbacks"
	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/nn"
)

// Evaluate within an epoch changes none of its figures.
func TestFit_evaluateInACallbackLeavesTheEpochsFigures(t *testing.T) {
	set := sorted(t, 160)
	fit := func(between bool) *loop.History {
		m := newModel(t, nn.Dense{Units: 3}, flaxlike.WithLoss(sparse), flaxlike.WithMetrics("accuracy"), flaxlike.WithSeed(3))
		f := quiet(flaxlike.Fit{Epochs: 2})
		if between {
			f.Callbacks = []loop.Option{loop.Watch(loop.Every(loop.Steps(2)), func(ctx context.Context, _ loop.Report) error {
				_, err := m.Evaluate(ctx, set)
				return err
			})}
		}
		h, err := m.Fit(t.Context(), set, f)
		require.NoError(t, err)
		return h
	}
	want, got := fit(false), fit(true)
	for _, name := range []string{"loss", "accuracy"} {
		require.Equal(t, series(t, want, name), series(t, got, name), name)
	}
}

// A copy in memory does not outlive the process: the program that is started again says so, and checkpoint.KeepBest
// holds.
func TestFit_keepBestStartedAgain(t *testing.T) {
	set := line(t, 64)
	fit := func(folder *checkpoint.Folder, keep loop.Option, epochs int) (*flaxlike.Model, *loop.History, error) {
		m := newModel(t, nn.Dense{Units: 1}, flaxlike.WithLoss("mse"), flaxlike.WithOptimizer("sgd"), flaxlike.WithLearningRate(1.3), flaxlike.WithSeed(3)) // it diverges
		h, err := m.Fit(t.Context(), set, quiet(flaxlike.Fit{Epochs: epochs, Validation: set, Callbacks: []loop.Option{keep, resume(folder)}}))
		return m, h, err
	}
	for _, again := range []int{4, 6} { // the same once more, which makes no step, and a longer one
		folder := openFolder(t, t.TempDir(), checkpoint.Options{})
		_, _, err := fit(folder, callbacks.KeepBest("val_loss"), 4)
		require.NoError(t, err)
		_, h, err := fit(folder, callbacks.KeepBest("val_loss"), again)
		require.ErrorContains(t, err, "the best state is lost")
		require.Len(t, series(t, h, "val_loss"), again)

		keep := checkpoint.Resume(t.TempDir(), checkpoint.Every(loop.Epochs(1)), checkpoint.KeepBest("val_loss"))
		_, _, err = fit(nil, keep, 4)
		require.NoError(t, err)
		m, h, err := fit(nil, keep, again)
		require.NoError(t, err)
		value, at, err := h.Best("val_loss", loop.Lowest)
		require.NoError(t, err)
		require.Less(t, at.Steps, int64(2*again), "not the last")
		found, err := m.Evaluate(t.Context(), set)
		require.NoError(t, err)
		require.InDelta(t, value, found["loss"], 1e-6*value)
	}
}

// Probabilities are refused also where layers after the softmax keep them probabilities; a layer that makes logits of
// them is accepted.
//
//lazo:norace
func TestLoss_refusesProbabilitiesBehindOtherLayers(t *testing.T) {
	graphs := func(f func(x *graph.Node) *graph.Node) nn.Layer {
		return nn.Func(func(_ *model.Scope, x *graph.Node) *graph.Node { return f(x) })
	}
	softmax, sigmoid := nn.Activation("softmax"), nn.Activation("sigmoid")
	clip := graphs(func(x *graph.Node) *graph.Node { return graph.ClipScalar(x, 1e-7, 1-1e-7) })
	places := nn.Sequential{nn.Reshape{4, 1}, nn.Dense{Units: 3}}
	for _, row := range []struct {
		name  string
		wrong string // "" for what is right
		net   []nn.Layer
	}{
		{"Flatten", "softmax", []nn.Layer{nn.Dense{Units: 3}, softmax, nn.Flatten{}}},
		{"Reshape", "softmax", []nn.Layer{nn.Dense{Units: 3}, softmax, nn.Reshape{3, 1}, nn.Reshape{3}}},
		{"Dropout", "softmax", []nn.Layer{nn.Dense{Units: 3}, softmax, nn.Dropout{Rate: 0.5}}},
		{"clip", "softmax", []nn.Layer{nn.Dense{Units: 3}, softmax, clip}},
		{"clamp", "sigmoid", []nn.Layer{nn.Dense{Units: 3}, sigmoid, graphs(func(x *graph.Node) *graph.Node {
			return graph.Clip(x, graph.Scalar(x.Graph(), x.DType(), 0.1), graph.Scalar(x.Graph(), x.DType(), 0.9))
		})}},
		{"mean over the places", "softmax", []nn.Layer{places, softmax, nn.GlobalMeanPool{}}},
		{"mean pool", "softmax", []nn.Layer{places, softmax, nn.MeanPool{Window: 4}, nn.Flatten{}}},
		{"max pool", "sigmoid", []nn.Layer{places, sigmoid, nn.MaxPool{Window: 4}, nn.Flatten{}}},
		{"all together", "sigmoid", []nn.Layer{places, sigmoid, nn.Dropout{Rate: 0.1}, nn.MeanPool{Window: 2}, clip, nn.GlobalMeanPool{}}},

		{"a layer behind it", "", []nn.Layer{nn.Dense{Units: 3}, softmax, nn.Dense{Units: 3}}},
		{"attention", "", []nn.Layer{places, graphs(func(x *graph.Node) *graph.Node {
			return graph.ReduceMean(graph.Einsum("bij,bjc->bic", graph.Softmax(graph.Einsum("bic,bjc->bij", x, x)), x), 1)
		})}},
		{"a gate", "", []nn.Layer{nn.Dense{Units: 3}, nn.Activation("swish"), nn.Dropout{Rate: 0.5}}},
		{"a sum", "", []nn.Layer{nn.Dense{Units: 3}, graphs(func(x *graph.Node) *graph.Node { return graph.Add(x, graph.Sigmoid(x)) })}},
		{"a logarithm", "", []nn.Layer{nn.Dense{Units: 3}, softmax, graphs(graph.Log)}},
		{"logits of a range", "", []nn.Layer{nn.Dense{Units: 3}, sigmoid, graphs(func(x *graph.Node) *graph.Node { return graph.MulScalar(x, 10) })}},
		{"relu and pools", "", []nn.Layer{places, nn.Activation("relu"), nn.MaxPool{Window: 2}, nn.GlobalMeanPool{}}},
	} {
		t.Run(row.name, func(t *testing.T) {
			set, err := data.New(data.X(make([]float32, 32*4), 32, 4), data.Y(make([]int32, 32), 32))
			require.NoError(t, err)
			m := newModel(t, nn.Sequential(row.net), flaxlike.WithLoss(sparse))
			_, err = m.Fit(t.Context(), set, quiet(flaxlike.Fit{}))
			if row.wrong == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, "the output went through a "+row.wrong+", expected logits")
		})
	}
	set := line(t, 32)
	m := newModel(t, nn.Sequential{nn.Dense{Units: 1}, sigmoid, nn.Reshape{1, 1}, nn.Reshape{1}}, flaxlike.WithLoss("binary_crossentropy"))
	_, err := m.Fit(t.Context(), set, quiet(flaxlike.Fit{}))
	require.ErrorContains(t, err, "the output went through a sigmoid")
}

// The values are what keras.activations of Keras 3.15 gives.
func TestActivation_ofKeras3(t *testing.T) {
	x := []float32{-4, -3, -2.5, -1, 0, 0.5, 2.4, 3, 4}
	for name, want := range map[string][]float32{
		"leaky_relu":   {-0.8, -0.6, -0.5, -0.2, 0, 0.5, 2.4, 3, 4},
		"hard_sigmoid": {0, 0, 0.08333334, 0.33333334, 0.5, 0.5833334, 0.90000004, 1, 1},
	} {
		set, err := data.New(data.X(x, 9, 1))
		require.NoError(t, err)
		out, err := newModel(t, nn.Activation(name)).Predict(t.Context(), set)
		require.NoError(t, err)
		require.InDeltaSlice(t, want, output(t, out).Flat, 1e-6, name)
	}
}
