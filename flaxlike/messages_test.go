package flaxlike_test

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/callbacks"
	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/internal/golden"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/nn"
	"github.com/lazo-ml/lazo/optim"
)

// desk has the tools to make a mistake with.
type desk struct{ *testing.T }

func (m desk) made(options ...flaxlike.Option) error {
	_, err := flaxlike.New(m.Context(), nn.Dense{Units: 1}, append(options, flaxlike.WithStrategy(jit(m)))...)
	return err
}

func (m desk) fit(n nn.Layer, set *data.Set, f flaxlike.Fit, options ...flaxlike.Option) error {
	_, err := newModel(m, n, options...).Fit(m.Context(), set, quiet(f))
	return err
}

func (m desk) set(fields ...data.Field) *data.Set {
	set, err := data.New(fields...)
	require.NoError(m, err)
	return set
}

var (
	pixels  = data.X(make([]float32, 64*8*8), 64, 8, 8)
	classes = data.Y(make([]int32, 64), 64)
)

var mistakes = []struct {
	name string
	do   func(m desk) error
}{
	{"unknown loss", func(m desk) error { return m.made(flaxlike.WithLoss("sparse_categorical_cross_entropy")) }},
	{"unknown metric", func(m desk) error { return m.made(flaxlike.WithMetrics("acuracy")) }},
	{"unknown optimizer", func(m desk) error { return m.made(flaxlike.WithOptimizer("Adam W")) }},
	{"unknown activation", func(m desk) error {
		return m.fit(nn.Activation("rellu"), line(m, 64), flaxlike.Fit{}, flaxlike.WithLoss("mse"))
	}},
	{"no loss", func(m desk) error { return m.fit(nn.Dense{Units: 1}, line(m, 64), flaxlike.Fit{}) }},
	{"cosine of one number", func(m desk) error {
		return m.fit(nn.Dense{Units: 1}, line(m, 64), flaxlike.Fit{}, flaxlike.WithLoss("cosine_similarity"))
	}},
	{"hinge of one class", func(m desk) error {
		return m.fit(nn.Dense{Units: 1}, line(m, 64), flaxlike.Fit{}, flaxlike.WithLoss("categorical_hinge"))
	}},
	{"two losses of one name", func(m desk) error { return m.made(flaxlike.WithLoss("mse", "mse")) }},
	{"two Fits at once", func(m desk) error {
		model := newModel(m, nn.Dense{Units: 1}, flaxlike.WithLoss("mse"))
		var second error
		_, err := model.Fit(m.Context(), line(m, 64), quiet(flaxlike.Fit{Callbacks: []loop.Option{
			loop.Watch(loop.At(loop.Steps(1)), func(context.Context, loop.Report) error {
				_, second = model.Fit(m.Context(), line(m, 64), quiet(flaxlike.Fit{}))
				return nil
			})}}))
		require.NoError(m, err)
		return second
	}},
	{"no network", func(m desk) error {
		_, err := flaxlike.New(m.Context(), nil)
		return err
	}},
	{"nil layer", func(m desk) error {
		return m.fit(nn.Sequential{nn.Dense{Units: 1}, nil}, line(m, 64), flaxlike.Fit{}, flaxlike.WithLoss("mse"))
	}},
	{"images not flattened", func(m desk) error {
		return m.fit(nn.Dense{Units: 10}, m.set(pixels, classes), flaxlike.Fit{}, flaxlike.WithLoss(sparse))
	}},
	{"images without a channel", func(m desk) error {
		return m.fit(nn.Sequential{nn.Conv{Channels: 4, Window: []int{3}}, nn.Flatten{}, nn.MaxPool{Window: 2}}, m.set(pixels, classes), flaxlike.Fit{}, flaxlike.WithLoss(sparse))
	}},
	{"integers where floats are wanted", func(m desk) error {
		return m.fit(nn.Sequential{nn.Flatten{}, nn.Dense{Units: 10}}, m.set(data.X(make([]uint8, 64*64), 64, 8, 8), classes), flaxlike.Fit{}, flaxlike.WithLoss(sparse))
	}},
	{"floats as labels", func(m desk) error {
		return m.fit(nn.Dense{Units: 3}, line(m, 64), flaxlike.Fit{}, flaxlike.WithLoss(sparse))
	}},
	{"label out of range", func(m desk) error {
		return m.fit(nn.Dense{Units: 2}, sorted(m, 64), flaxlike.Fit{}, flaxlike.WithLoss(sparse))
	}},
	{"labels from 1", func(m desk) error {
		set := m.set(data.X(make([]float32, 64), 64, 1), data.Y(func() []int32 {
			y := make([]int32, 64)
			for i := range y {
				y[i] = int32(i%10) + 1
			}
			return y
		}(), 64))
		return m.fit(nn.Dense{Units: 10}, set, flaxlike.Fit{}, flaxlike.WithLoss(sparse))
	}},
	{"one-hot labels", func(m desk) error {
		return m.fit(nn.Dense{Units: 3}, m.set(data.X(make([]float32, 64), 64, 1), data.Y(make([]float32, 192), 64, 3)), flaxlike.Fit{}, flaxlike.WithLoss(sparse))
	}},
	{"one-hot labels in integers", func(m desk) error {
		return m.fit(nn.Dense{Units: 3}, m.set(data.X(make([]float32, 64), 64, 1), data.Y(make([]int32, 192), 64, 3)), flaxlike.Fit{}, flaxlike.WithLoss(sparse))
	}},
	{"softmax before the loss", func(m desk) error {
		return m.fit(nn.Sequential{nn.Dense{Units: 3}, nn.Activation("softmax")}, sorted(m, 64), flaxlike.Fit{}, flaxlike.WithLoss(sparse))
	}},
	{"wrong width of the output", func(m desk) error {
		return m.fit(nn.Dense{Units: 2}, line(m, 64), flaxlike.Fit{}, flaxlike.WithLoss("mse"))
	}},
	{"numbers of classes for categorical_crossentropy", func(m desk) error {
		return m.fit(nn.Dense{Units: 3}, sorted(m, 64), flaxlike.Fit{}, flaxlike.WithLoss("categorical_crossentropy"))
	}},
	{"two units for binary_crossentropy", func(m desk) error {
		return m.fit(nn.Dense{Units: 2}, line(m, 64), flaxlike.Fit{}, flaxlike.WithLoss("binary_crossentropy"))
	}},
	{"numbers of classes for mse", func(m desk) error {
		return m.fit(nn.Dense{Units: 3}, sorted(m, 64), flaxlike.Fit{}, flaxlike.WithLoss("mse"))
	}},
	{"a network without variables", func(m desk) error {
		return m.fit(nn.Sequential{}, line(m, 64), flaxlike.Fit{}, flaxlike.WithLoss("mse"))
	}},
	{"a loss that gives nothing", func(m desk) error {
		return m.fit(nn.Dense{Units: 1}, line(m, 64), flaxlike.Fit{}, flaxlike.WithLoss(flaxlike.Loss{Func: func(_, _ *graph.Node) *graph.Node { return nil }}))
	}},
	{"a metric that gives nothing", func(m desk) error {
		return m.fit(nn.Dense{Units: 1}, line(m, 64), flaxlike.Fit{}, flaxlike.WithLoss("mse"),
			flaxlike.WithMetrics(flaxlike.Metric{Name: "own", Func: func(_, _ *graph.Node) *graph.Node { return nil }}))
	}},
	{"labels that are numbers, prepared as classes", func(m desk) error {
		return m.fit(nn.Dense{Units: 1}, tabled(m, 64, "1", "2", "3"), flaxlike.Fit{}, flaxlike.WithLoss("mse"), flaxlike.WithPreparation(numbered(m, "y", "1", "2", "3")))
	}},
	{"a set that is prepared already", func(m desk) error {
		return m.fit(nn.Dense{Units: 3}, sorted(m, 64), flaxlike.Fit{}, flaxlike.WithLoss(sparse), flaxlike.WithPreparation(numbered(m, "y", "a", "b", "c")))
	}},
	{"a validation set that is prepared already", func(m desk) error {
		return m.fit(nn.Dense{Units: 3}, tabled(m, 64, "a", "b", "c"), flaxlike.Fit{Validation: sorted(m, 64)}, flaxlike.WithLoss(sparse), flaxlike.WithPreparation(numbered(m, "y", "a", "b", "c")))
	}},
	{"rows without a preparation", func(m desk) error {
		_, err := newModel(m, nn.Dense{Units: 3}).PredictRows(m.Context(), map[string]any{"a": 1})
		return err
	}},
	{"no labels in the set", func(m desk) error {
		return m.fit(nn.Dense{Units: 1}, m.set(data.X(make([]float32, 64), 64, 1)), flaxlike.Fit{}, flaxlike.WithLoss("mse"))
	}},
	{"no input in the set", func(m desk) error {
		return m.fit(nn.Dense{Units: 1}, m.set(data.Named("image", make([]float32, 64), 64, 1), classes), flaxlike.Fit{}, flaxlike.WithLoss("mse"))
	}},
	{"no sample weights in the set", func(m desk) error {
		return m.fit(nn.Dense{Units: 1}, line(m, 64), flaxlike.Fit{}, flaxlike.WithLoss("mse"), flaxlike.WithSampleWeights("weight"))
	}},
	{"metric on a missing output", func(m desk) error {
		return m.fit(nn.Dense{Units: 1}, line(m, 64), flaxlike.Fit{}, flaxlike.WithLoss("mse"), flaxlike.WithMetrics(flaxlike.Metric{Name: "mae", Output: "pred"}))
	}},
	{"loss of several outputs", func(m desk) error {
		heads := func(scope *model.Scope, input func(string) *graph.Node) map[string]*graph.Node {
			return map[string]*graph.Node{"a": nn.Dense{Units: 1}.Apply(scope.In("a"), input("x")), "b": nn.Dense{Units: 1}.Apply(scope.In("b"), input("x"))}
		}
		return m.fit(flaxlike.Functional(heads), line(m, 64), flaxlike.Fit{}, flaxlike.WithLoss("mse"))
	}},
	{"scalar loss with sample weights", func(m desk) error {
		mean := func(labels, output *graph.Node) *graph.Node {
			return graph.ReduceAllMean(graph.Square(graph.Sub(labels, output)))
		}
		return m.fit(nn.Dense{Units: 1}, line(m, 64, data.Named("weight", make([]float32, 64), 64)), flaxlike.Fit{},
			flaxlike.WithLoss(flaxlike.Loss{Func: mean}), flaxlike.WithSampleWeights("weight"))
	}},
	{"residual that changes the shape", func(m desk) error {
		return m.fit(nn.Residual{nn.Dense{Units: 4}}, line(m, 64), flaxlike.Fit{}, flaxlike.WithLoss("mse"))
	}},
	{"validation without labels", func(m desk) error {
		return m.fit(nn.Dense{Units: 3}, sorted(m, 64), flaxlike.Fit{Validation: m.set(sorted(m, 64).Fields()[0])}, flaxlike.WithLoss(sparse))
	}},
	{"validation with a label too large", func(m desk) error {
		return m.fit(nn.Dense{Units: 3}, sorted(m, 64), flaxlike.Fit{Validation: m.set(sorted(m, 64).Fields()[0], data.Y(slices.Repeat([]int32{7}, 64), 64))}, flaxlike.WithLoss(sparse))
	}},
	{"validation of which no example counts", func(m desk) error {
		mask := data.Named(data.Mask, make([]bool, 64), 64)
		return m.fit(nn.Dense{Units: 3}, sorted(m, 64), flaxlike.Fit{Validation: m.set(append(sorted(m, 64).Fields(), mask)...)}, flaxlike.WithLoss(sparse))
	}},
	{"validation of another shape", func(m desk) error {
		return m.fit(nn.Dense{Units: 3}, sorted(m, 64), flaxlike.Fit{Validation: m.set(data.X(make([]float32, 32*4), 32, 4), data.Y(make([]int32, 32), 32))}, flaxlike.WithLoss(sparse))
	}},
	{"callback on an unknown entry", func(m desk) error {
		return m.fit(nn.Dense{Units: 1}, line(m, 64), flaxlike.Fit{Validation: line(m, 64), Epochs: 2,
			Callbacks: []loop.Option{callbacks.StopEarly("loss_val", callbacks.Evaluations(2))}}, flaxlike.WithLoss("mse"))
	}},
	{"nothing left to train", func(m desk) error {
		return m.fit(nn.Dense{Units: 1}, line(m, 64), flaxlike.Fit{Epochs: 5, InitialEpoch: 5}, flaxlike.WithLoss("mse"))
	}},
	{"both ends", func(m desk) error {
		return m.fit(nn.Dense{Units: 1}, line(m, 64), flaxlike.Fit{Epochs: 5, Until: loop.Steps(9)}, flaxlike.WithLoss("mse"))
	}},
	{"no steps of an epoch", func(m desk) error {
		_, err := newModel(m, nn.Dense{Units: 1}, flaxlike.WithLoss("mse")).FitBatches(m.Context(), line(m, 64).Batches(32), quiet(flaxlike.Fit{}))
		return err
	}},
	{"load before a batch", func(m desk) error {
		return newModel(m, nn.Dense{Units: 1}).Load(m.Context(), "model.safetensors")
	}},
	{"to leave labels of padding out", func(m desk) error {
		return m.fit(nn.Dense{Units: 3}, m.set(data.X(make([]float32, 64*3), 64, 3), data.Y(slices.Repeat([]int32{-100, 1}, 32), 64)), flaxlike.Fit{}, flaxlike.WithLoss(sparse))
	}},
	{"floats into an embedding", func(m desk) error {
		return m.fit(nn.Embedding{Vocabulary: 10, Width: 4}, line(m, 64), flaxlike.Fit{}, flaxlike.WithLoss("mse"))
	}},
	{"a layer that gives nothing", func(m desk) error {
		return m.fit(nn.Sequential{nn.Func(func(*model.Scope, *graph.Node) *graph.Node { return nil })}, line(m, 64), flaxlike.Fit{}, flaxlike.WithLoss("mse"))
	}},
	{"settings of no validation", func(m desk) error {
		return m.fit(nn.Dense{Units: 1}, line(m, 64), flaxlike.Fit{ValidationSteps: 3}, flaxlike.WithLoss("mse"))
	}},
	{"validation after the last epoch", func(m desk) error {
		return m.fit(nn.Dense{Units: 1}, line(m, 64), flaxlike.Fit{Epochs: 3, Validation: line(m, 64), ValidationAt: []int{2, 5}}, flaxlike.WithLoss("mse"))
	}},
	{"checkpoints of another model", func(m desk) error {
		folder := openFolder(m.T, m.TempDir(), checkpoint.Options{})
		require.NoError(m, m.fit(nn.Dense{Units: 1}, line(m, 64), flaxlike.Fit{Callbacks: []loop.Option{resume(folder)}}, flaxlike.WithLoss("mse")))
		return m.fit(nn.Sequential{nn.Dense{Units: 1}}, line(m, 64), flaxlike.Fit{Epochs: 2, Callbacks: []loop.Option{resume(folder)}}, flaxlike.WithLoss("mse"))
	}},
	{"windows larger than the images", func(m desk) error {
		return m.fit(nn.Sequential{nn.Reshape{8, 8, 1}, nn.MaxPool{Window: 4}, nn.MaxPool{Window: 4}, nn.Flatten{}, nn.Dense{Units: 10}}, m.set(pixels, classes), flaxlike.Fit{}, flaxlike.WithLoss(sparse))
	}},
	{"inputs without an axis of features", func(m desk) error {
		return m.fit(nn.Dense{Units: 1}, m.set(data.X(make([]float32, 64), 64), data.Y(make([]float32, 64), 64)), flaxlike.Fit{}, flaxlike.WithLoss("mse"))
	}},
	{"no units", func(m desk) error {
		return m.fit(nn.Sequential{nn.Dense{Units: 0}, nn.Dense{Units: 1}}, line(m, 64), flaxlike.Fit{}, flaxlike.WithLoss("mse"))
	}},
	{"labels that no logarithm has", func(m desk) error {
		return m.fit(nn.Dense{Units: 1}, m.set(data.X(make([]float32, 64), 64, 1), data.Y(slices.Repeat([]int32{1, 2}, 32), 64)), flaxlike.Fit{}, flaxlike.WithLoss("binary_crossentropy"))
	}},
	{"integers that an embedding has not", func(m desk) error {
		set := m.set(data.X(slices.Repeat([]int32{0, 10}, 32), 64), data.Y(make([]float32, 64*4), 64, 4))
		return m.fit(nn.Embedding{Vocabulary: 10, Width: 4}, set, flaxlike.Fit{}, flaxlike.WithLoss("mse"))
	}},
	{"weight below 0", func(m desk) error {
		return m.fit(nn.Dense{Units: 1}, line(m, 64, data.Named("weight", slices.Repeat([]float32{1, -1}, 32), 64)), flaxlike.Fit{}, flaxlike.WithLoss("mse"), flaxlike.WithSampleWeights("weight"))
	}},
	{"weight of no class", func(m desk) error {
		return m.fit(nn.Dense{Units: 3}, sorted(m, 64), flaxlike.Fit{}, flaxlike.WithLoss(sparse), flaxlike.WithClassWeights(map[int]float64{7: 2}))
	}},
	{"class weights of numbers", func(m desk) error {
		return m.fit(nn.Dense{Units: 1}, line(m, 64), flaxlike.Fit{}, flaxlike.WithLoss("mse"), flaxlike.WithClassWeights(map[int]float64{0: 2}))
	}},
	{"class weights of several labels", func(m desk) error {
		set := m.set(data.X(make([]float32, 64), 64, 1), data.Y(make([]float32, 256), 64, 4))
		return m.fit(nn.Dense{Units: 4}, set, flaxlike.Fit{}, flaxlike.WithLoss("binary_crossentropy"), flaxlike.WithClassWeights(map[int]float64{1: 2}))
	}},
	{"class weights of one-hot labels", func(m desk) error {
		set := m.set(data.X(make([]float32, 64), 64, 1), data.Y(slices.Repeat([]float32{0, 1}, 64), 64, 2))
		return m.fit(nn.Dense{Units: 2}, set, flaxlike.Fit{}, flaxlike.WithLoss("categorical_crossentropy"), flaxlike.WithClassWeights(map[int]float64{1: 2}))
	}},
	{"weighted by nothing", func(m desk) error {
		return m.fit(nn.Dense{Units: 1}, line(m, 64), flaxlike.Fit{}, flaxlike.WithLoss("mse"), flaxlike.WithMetrics(flaxlike.Metric{Name: "mae", Weighted: true}))
	}},
	{"one class", func(m desk) error {
		return m.fit(nn.Dense{Units: 1}, line(m, 64), flaxlike.Fit{}, flaxlike.WithLoss("categorical_crossentropy"))
	}},
	{"accuracy of one class", func(m desk) error {
		return m.fit(nn.Dense{Units: 1}, line(m, 64), flaxlike.Fit{}, flaxlike.WithLoss("mse"), flaxlike.WithMetrics("categorical_accuracy"))
	}},
	{"accuracy of numbers", func(m desk) error {
		return m.fit(nn.Dense{Units: 1}, line(m, 64), flaxlike.Fit{}, flaxlike.WithLoss("mse"), flaxlike.WithMetrics("accuracy"))
	}},
	{"class weights of smoothed labels", func(m desk) error {
		set := m.set(data.X(make([]float32, 64), 64, 1), data.Y(slices.Repeat([]float32{0.1, 0.9}, 32), 64))
		return m.fit(nn.Dense{Units: 1}, set, flaxlike.Fit{}, flaxlike.WithLoss("binary_crossentropy"), flaxlike.WithClassWeights(map[int]float64{1: 2}))
	}},
	{"probabilities that are not 1 together", func(m desk) error {
		set := m.set(data.X(make([]float32, 64), 64, 1), data.Y(slices.Repeat([]float32{0.9}, 128), 64, 2))
		return m.fit(nn.Dense{Units: 2}, set, flaxlike.Fit{}, flaxlike.WithLoss("kl_divergence"))
	}},
	{"accuracy beside an own loss", func(m desk) error {
		own := flaxlike.WithLoss(flaxlike.Loss{Name: "own", Func: func(labels, output *graph.Node) *graph.Node { return graph.Square(graph.Sub(labels, output)) }})
		set := m.set(data.X(make([]float32, 64), 64, 1), data.Y(make([]float32, 64), 64, 1))
		return m.fit(nn.Dense{Units: 1}, set, flaxlike.Fit{}, own, flaxlike.WithMetrics("accuracy"))
	}},
	{"auc of several classes", func(m desk) error {
		return m.fit(nn.Sequential{nn.Flatten{}, nn.Dense{Units: 3}}, m.set(pixels, classes), flaxlike.Fit{}, flaxlike.WithLoss(sparse), flaxlike.WithMetrics("auc"))
	}},
	{"perplexity of probabilities", func(m desk) error {
		return m.fit(nn.Sequential{nn.Flatten{}, nn.Dense{Units: 3}, nn.Activation("softmax")}, m.set(pixels, classes), flaxlike.Fit{},
			flaxlike.WithLoss(flaxlike.Loss{Func: func(_, output *graph.Node) *graph.Node { return graph.ReduceSum(output, -1) }}), flaxlike.WithMetrics("perplexity"))
	}},
	{"several labels for accuracy", func(m desk) error {
		set := m.set(data.X(make([]float32, 64), 64, 1), data.Y(slices.Repeat([]float32{1}, 128), 64, 2))
		return m.fit(nn.Dense{Units: 2}, set, flaxlike.Fit{}, flaxlike.WithLoss("binary_crossentropy"), flaxlike.WithMetrics("accuracy"))
	}},
	{"own loss of another axis", func(m desk) error {
		own := flaxlike.WithLoss(flaxlike.Loss{Name: "own", Func: func(_, output *graph.Node) *graph.Node { return graph.ReduceSum(output, 0) }})
		return m.fit(nn.Dense{Units: 3}, line(m, 64), flaxlike.Fit{}, own)
	}},
	{"own metric of another axis", func(m desk) error {
		own := flaxlike.WithMetrics(flaxlike.Metric{Name: "own", Func: func(_, output *graph.Node) *graph.Node { return graph.ReduceSum(output, 0) }})
		return m.fit(nn.Dense{Units: 1}, line(m, 64), flaxlike.Fit{}, own, flaxlike.WithLoss("mse"))
	}},
	{"all losses off", func(m desk) error { return m.made(flaxlike.WithLoss(flaxlike.Loss{Name: "mse", Off: true})) }},
	{"off with a weight", func(m desk) error {
		return m.made(flaxlike.WithLoss(flaxlike.Loss{Name: "mse", Off: true, Weight: 2}))
	}},
	{"a rate that nobody can tell", func(m desk) error {
		o := optim.New(0.1, optim.ScaleBySchedule(optim.Constant(0.1)), optim.Adam{})
		waiting := loop.WatchEntry("learning_rate", func(context.Context, loop.Report) error { return nil })
		return m.fit(nn.Dense{Units: 1}, line(m, 64), flaxlike.Fit{Callbacks: []loop.Option{waiting}}, flaxlike.WithLoss("mse"), flaxlike.WithOptimizer(o))
	}},
	{"another type", func(m desk) error {
		model := newModel(m, nn.Dense{Units: 1}, flaxlike.WithLoss("mse"))
		_, err := model.Fit(m.Context(), line(m, 64), quiet(flaxlike.Fit{}))
		require.NoError(m, err)
		_, err = model.Fit(m.Context(), m.set(data.X(make([]float64, 64), 64, 1), data.Y(make([]float64, 64), 64, 1)), quiet(flaxlike.Fit{}))
		return err
	}},
	{"steps of a table", func(m desk) error {
		return m.fit(nn.TimeDistributed{Layer: nn.Dense{Units: 1}}, m.set(data.X(make([]float32, 64*4), 64, 4), data.Y(make([]float32, 64), 64)), flaxlike.Fit{}, flaxlike.WithLoss("mse"))
	}},
	{"labels of other rows", func(m desk) error {
		_, _, err := newModel(m, nn.Dense{Units: 1}, flaxlike.WithLoss("mse")).TrainStep(m.Context(),
			data.Batch{Fields: []data.Field{data.X(make([]float32, 8), 8, 1), data.Y(make([]float32, 7), 7)}})
		return err
	}},
	{"save onto a folder", func(m desk) error {
		model := newModel(m, nn.Dense{Units: 1}, flaxlike.WithLoss("mse"))
		require.NoError(m, model.Init(m.Context(), first(m, line(m, 64), 32)))
		return model.Save(".")
	}},
	{"empty set", func(m desk) error {
		return m.fit(nn.Dense{Units: 1}, m.set(data.X([]float32{}, 0, 1), data.Y([]float32{}, 0)), flaxlike.Fit{}, flaxlike.WithLoss("mse"))
	}},
	{"batches that end early", func(m desk) error {
		_, err := newModel(m, nn.Dense{Units: 1}, flaxlike.WithLoss("mse")).FitBatches(m.Context(), loop.Data[data.Batch](line(m, 64).Batches(32).All()), quiet(flaxlike.Fit{Epochs: 5, StepsPerEpoch: 2}))
		return err
	}},
	{"rate below 0", func(m desk) error { return m.made(flaxlike.WithLearningRate(-1)) }},
}

// The first three lines of an error are enough to mend each of the common mistakes. testdata/errors.golden is to be
// read, not only compared.
//
//lazo:norace
func TestMessages(t *testing.T) {
	places := regexp.MustCompile(`(_test\.go):\d+`)
	var got strings.Builder
	for _, row := range mistakes {
		t.Run(row.name, func(t *testing.T) {
			err := row.do(desk{t})
			require.Error(t, err)
			require.NotContains(t, err.Error(), "goroutine", "no stack")
			if row.name != "checkpoints of another model" { // a long list of variables
				require.LessOrEqual(t, strings.Count(err.Error(), "\n"), 2, "three lines")
			}
			first, _, _ := strings.Cut(err.Error(), "\n")
			require.NotRegexp(t, `: (checkpoint|data|hlo|loop|managed|metrics|optim|pjrt|strategies|train|xla): `, first, "R41: one package's name, the outermost")
			fmt.Fprintf(&got, "== %s\n%s\n\n", row.name, places.ReplaceAllString(err.Error(), "$1:LINE"))
		})
	}
	golden.Equal(t, "testdata/errors.golden", got.String())
	t.Logf("%d mistakes", len(mistakes))
}
