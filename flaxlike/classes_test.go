package flaxlike_test

import (
	"context"
	"fmt"
	"io"
	"math"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/janpfeifer/must"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/nn"
	"github.com/lazo-ml/lazo/optim"
	"github.com/lazo-ml/lazo/xla"
)

// asIs returns each input as an output of the same name.
func asIs(through map[string]func(*graph.Node) *graph.Node, names ...string) flaxlike.Functional {
	return func(_ *model.Scope, input func(string) *graph.Node) map[string]*graph.Node {
		out := map[string]*graph.Node{}
		for _, name := range names {
			if out[name] = input(name); through[name] != nil {
				out[name] = through[name](out[name])
			}
		}
		return out
	}
}

// Probabilities come by the output's loss, and what are probabilities already stay: one program has all kinds.
func TestProbabilities(t *testing.T) {
	softmaxed := func(x *graph.Node) *graph.Node { return graph.Softmax(x) }
	sigmoided := func(x *graph.Node) *graph.Node { return graph.Sigmoid(x) }
	nanOfInf := func(x *graph.Node) *graph.Node {
		_ = graph.IsFinite(x) // so that infinite inputs are taken
		return graph.Add(x, graph.MulScalar(x, 0))
	}
	names := []string{"classes", "two", "several", "number", "soft", "sig"}
	losses := []flaxlike.Loss{
		{Name: "sparse_categorical_crossentropy", Output: "classes"}, {Name: "binary_crossentropy", Output: "two"},
		{Name: "binary_focal_crossentropy", Output: "several"}, {Name: "mse", Output: "number"},
	}
	m := newModel(t, asIs(map[string]func(*graph.Node) *graph.Node{"soft": softmaxed, "sig": sigmoided, "two": nanOfInf}, names...), flaxlike.WithLoss(losses...), flaxlike.WithBatchSize(2))
	log := func(p float64) float32 { return float32(math.Log(p)) }
	logit := func(p float64) float32 { return float32(math.Log(p / (1 - p))) }
	fields := []data.Field{
		data.Named("classes", []float32{log(.1) + 50, log(.7) + 50, log(.2) + 50, log(.4) - 90, log(.4) - 90, log(.2) - 90}, 2, 3),
		data.Named("two", []float32{logit(.7), logit(.2)}, 2, 1),
		data.Named("several", []float32{logit(.45), logit(.9), 1000, -1000}, 2, 2),
		data.Named("number", []float32{7, 8}, 2, 1),
		data.Named("soft", []float32{log(.75), log(.25), log(.5), log(.5)}, 2, 2),
		data.Named("sig", []float32{logit(.55), logit(.5)}, 2),
	}
	set, err := data.New(fields...)
	require.NoError(t, err)
	p, err := m.Predict(t.Context(), set)
	require.NoError(t, err)
	require.Equal(t, 2, p.Len())
	for name, want := range map[string][]float32{
		"classes": {.1, .7, .2, .4, .4, .2}, "two": {.7, .2}, "several": {.45, .9, 1, 0}, "soft": {.75, .25, .5, .5}, "sig": {.55, .5},
	} {
		got, err := p.Probabilities(name)
		require.NoError(t, err)
		require.InDeltaSlice(t, want, got.Flat, 1e-5, name)
		require.Equal(t, output(t, p, name).Dims, got.Dims)
	}
	for name, want := range map[string]string{"classes": "classes", "two": "binary", "several": "multi-label", "number": "numbers", "soft": "classes", "sig": "binary"} {
		require.Equal(t, want, must.M1(p.Kind(name)), name)
	}
	_, err = p.Probabilities("number")
	require.ErrorIs(t, err, flaxlike.ErrNoProbabilities)
	require.EqualError(t, err, "flaxlike: probabilities: output \"number\": its loss is for numbers, not for classes: no probabilities\n  use Output for the numbers")
	_, err = p.Classes("number")
	require.ErrorContains(t, err, "flaxlike: classes: output \"number\": its loss is for numbers")
	_, err = p.Output()
	require.EqualError(t, err, `flaxlike: output: the model has the outputs ["classes" "number" "several" "sig" "soft" "two"]: give the name of one`)
	_, err = p.Labels("none")
	require.ErrorContains(t, err, `output "none": unknown name; the model has ["classes" `)
	_, err = flaxlike.Prediction{}.Classes()
	require.ErrorContains(t, err, "the prediction is empty")

	for name, want := range map[string]data.Array{
		"classes": {Flat: []int32{1, 0}, Dims: []int{2}}, "two": {Flat: []int32{1, 0}, Dims: []int{2}},
		"several": {Flat: []int32{0, 1, 1, 0}, Dims: []int{2, 2}}, "soft": {Flat: []int32{0, 0}, Dims: []int{2}}, "sig": {Flat: []int32{1, 0}, Dims: []int{2}},
	} {
		require.Equal(t, want, must.M1(p.Classes(name)), name)
	}
	low := p.WithThresholds(0.1)
	require.Equal(t, []int32{1, 1, 1, 0}, must.M1(low.Classes("several")).Flat)
	require.Equal(t, []int32{1, 1}, must.M1(low.Classes("two")).Flat)
	_, err = low.Classes("classes")
	require.ErrorContains(t, err, "thresholds are given, but each example has exactly one of several classes")
	_, err = p.WithThresholds(0.4, 0.95).Classes("sig")
	require.EqualError(t, err, `flaxlike: classes: output "sig": there are 2 thresholds for 1 classes: expected one, or one for each`)
	_, err = p.WithThresholds(2).Classes("sig")
	require.EqualError(t, err, `flaxlike: classes: output "sig": a threshold is 2, expected probabilities, 0 to 1`)
	require.Equal(t, [][]string{{"1"}, {"0"}}, must.M1(p.Labels("several")))

	fields[1].Array.Flat.([]float32)[1] = float32(math.Inf(1))
	p, err = m.Predict(t.Context(), set)
	require.NoError(t, err)
	_, err = p.Classes("two")
	require.EqualError(t, err, `flaxlike: classes: output "two": example 1 has a NaN, which belongs to no class`)
	_, err = p.Probabilities("two")
	require.EqualError(t, err, `flaxlike: probabilities: output "two": example 1 has a NaN, which belongs to no class`)
	require.Len(t, must.M1(p.Labels("soft")), 2)
}

// An infinite number or a NaN in an output of classes is an error of what is made of it.
func TestProbabilities_ofFiniteNumbers(t *testing.T) {
	asked := func(then func(*graph.Node) *graph.Node) func(*graph.Node) *graph.Node {
		return func(x *graph.Node) *graph.Node {
			_ = graph.IsFinite(x) // so that infinite inputs are taken
			return then(x)
		}
	}
	same := func(x *graph.Node) *graph.Node { return graph.Identity(x) }
	m := newModel(t, asIs(map[string]func(*graph.Node) *graph.Node{"one": asked(same), "several": asked(same), "soft": asked(func(x *graph.Node) *graph.Node { return graph.Softmax(x) })},
		"one", "several", "soft"), flaxlike.WithLoss(flaxlike.Loss{Name: sparse, Output: "one"}, flaxlike.Loss{Name: "binary_crossentropy", Output: "several"}))
	inf := math.Inf(1)
	for _, c := range []struct {
		row  [2]float64
		has  string
		soft string
	}{{[2]float64{inf, -inf}, "+Inf", "a NaN"}, {[2]float64{0, -inf}, "-Inf", ""}, {[2]float64{inf, 0}, "+Inf", "a NaN"}, {[2]float64{math.NaN(), 0}, "a NaN", "a NaN"}, {[2]float64{1, 0}, "", ""}} {
		field := func(name string) data.Field {
			return data.Named(name, []float32{1, 2, float32(c.row[0]), float32(c.row[1])}, 2, 2)
		}
		p := must.M1(m.Predict(t.Context(), must.M1(data.New(field("one"), field("several"), field("soft")))))
		for output, has := range map[string]string{"one": c.has, "several": c.has, "soft": c.soft} {
			_, classes := p.Classes(output)
			_, probabilities := p.Probabilities(output)
			_, labels := p.Labels(output)
			for _, err := range []error{classes, probabilities, labels} {
				if has == "" {
					require.NoError(t, err, "%s %v", output, c.row)
				} else {
					require.ErrorContains(t, err, fmt.Sprintf("output %q: example 1 has %s, which belongs to no class", output, has))
				}
			}
			require.Len(t, must.M1(p.Output(output)).Flat, 4, "the numbers themselves")
		}
	}
}

func TestProbabilities_notKnown(t *testing.T) {
	own := func(labels, output *graph.Node) *graph.Node { return graph.Square(graph.Sub(output, labels)) }
	fields := func(names ...string) *data.Set {
		var list []data.Field
		for _, name := range names {
			list = append(list, data.Named(name, []float32{1, 2}, 2, 1))
		}
		set, err := data.New(list...)
		require.NoError(t, err)
		return set
	}
	for want, options := range map[string][]flaxlike.Option{
		`flaxlike: probabilities: output "x": no loss by name says whether its numbers are logits`: {flaxlike.WithLoss(flaxlike.Loss{Func: own})},
		`flaxlike: probabilities: output "x": its loss is for numbers, not for classes`:            {flaxlike.WithLoss("mse")},
		`flaxlike: probabilities: output "x": no loss by name says`:                                {flaxlike.WithLoss("hinge")},
	} {
		m := newModel(t, asIs(nil, "x"), options...)
		_, err := probabilitiesOf(t, m, fields("x"))
		require.ErrorContains(t, err, want)
	}
}

// A model whose layers report losses and metrics of their own predicts any number of examples.
func TestPredict_ofAModelThatReports(t *testing.T) {
	m := newModel(t, nn.Func(func(scope *model.Scope, x *graph.Node) *graph.Node {
		h := nn.Dense{Units: 3}.Apply(scope.In("h"), x)
		managed.AddLoss("activity", graph.ReduceAllMean(graph.Square(h)))
		managed.AddMetric("largest", graph.ReduceAllMax(h))
		return h
	}), flaxlike.WithLoss(sparse), flaxlike.WithBatchSize(32))
	set := sorted(t, 50)
	out, err := m.Predict(t.Context(), set)
	require.NoError(t, err)
	require.Equal(t, []int{50, 3}, output(t, out).Dims)
	require.Equal(t, []int{50}, must.M1(out.Classes()).Dims)
	figures, err := m.Evaluate(t.Context(), must.M1(set.Slice(0, 32)))
	require.NoError(t, err)
	require.Contains(t, figures, "activity")
}

// Batches of a source have the results of a set, and each test in a Fit reads them from the beginning.
func TestBatchesInPlaceOfASet(t *testing.T) {
	m := newModel(t, nn.Sequential{nn.Dense{Units: 3}}, flaxlike.WithLoss("sparse_categorical_crossentropy"), flaxlike.WithMetrics("accuracy"), flaxlike.WithBatchSize(6))
	set := sorted(t, 12)
	passes := 0
	batches := loop.Data[data.Batch](func(yield func(data.Batch, error) bool) {
		passes++
		set.Batches(6).All()(yield)
	})
	type end struct {
		epoch   int
		figures loop.Logs
	}
	var ends []end
	history, err := m.Fit(t.Context(), set, flaxlike.Fit{Epochs: 9, Output: io.Discard, ValidationBatches: batches,
		Callbacks: []loop.Option{loop.Watch(loop.Every(loop.Epochs(1)), func(_ context.Context, r loop.Report) error {
			if ends = append(ends, end{int(r.Elapsed.Epochs), r.Logs}); r.Elapsed.Epochs == 2 {
				return loop.ErrStop
			}
			return nil
		})}})
	require.NoError(t, err)
	require.Equal(t, 2, history.Len())
	require.Len(t, ends, 2)
	require.Equal(t, 2, ends[1].epoch)
	require.Equal(t, 3, passes, "two tests, and the look before the first step")
	of, err := m.Evaluate(t.Context(), set)
	require.NoError(t, err)
	for name, v := range of {
		if name == "loss" || name == "accuracy" {
			got, err := ends[1].figures.Float("val_" + name)
			require.NoError(t, err)
			require.Equal(t, got, v)
		}
	}
	one, err := m.EvaluateBatches(t.Context(), batches)
	require.NoError(t, err)
	require.Equal(t, of, one)

	whole, err := m.Predict(t.Context(), set)
	require.NoError(t, err)
	var flat []float32
	for outputs, err := range m.PredictBatches(t.Context(), batches) {
		require.NoError(t, err)
		require.Equal(t, []int{6, 3}, output(t, outputs).Dims)
		flat = append(flat, output(t, outputs).Flat.([]float32)...)
	}
	require.Equal(t, output(t, whole).Flat, flat)
	for range m.PredictBatches(t.Context(), batches) {
		break
	}

	_, err = m.EvaluateBatches(t.Context(), nil)
	require.EqualError(t, err, "flaxlike: evaluate: the batches are nil")
	_, err = m.Fit(t.Context(), set, flaxlike.Fit{Validation: set, ValidationBatches: batches, Output: io.Discard})
	require.ErrorContains(t, err, "both ValidationBatches and a set to validate on are given")
	var got error
	for _, err := range m.PredictBatches(t.Context(), nil) {
		got = err
	}
	require.ErrorContains(t, got, "flaxlike: predict: ")
	_, err = m.Fit(t.Context(), set, flaxlike.Fit{Output: io.Discard, ValidationBatches: loop.Data[data.Batch](func(func(data.Batch, error) bool) {})})
	require.ErrorContains(t, err, `test "val": `)
}

// Another optimizer starts on the present parameters, with its own rate, and not during a Fit.
func TestSetOptimizer(t *testing.T) {
	m := newModel(t, nn.Sequential{nn.Dense{Units: 3}}, flaxlike.WithLoss("sparse_categorical_crossentropy"), flaxlike.WithBatchSize(6))
	set := sorted(t, 12)
	fit := flaxlike.Fit{Output: io.Discard, InOrder: true}
	_, err := m.Fit(t.Context(), set, fit)
	require.NoError(t, err)
	before, err := m.Predict(t.Context(), set)
	require.NoError(t, err)
	require.NoError(t, m.SetOptimizer(t.Context(), optim.New(0.25, optim.Momentum{Decay: 0.9})))
	after, err := m.Predict(t.Context(), set)
	require.NoError(t, err)
	require.Equal(t, before, after)
	fit.Callbacks = []loop.Option{loop.Watch(loop.Every(loop.Epochs(1)), func(_ context.Context, r loop.Report) error {
		rate, err := r.Logs.Float("learning_rate")
		require.NoError(t, err)
		require.Equal(t, 0.25, rate)
		_, err = r.Logs.Float("val_loss")
		require.ErrorIs(t, err, loop.ErrNoEntry, "which a map would give as 0")
		require.ErrorIs(t, m.SetOptimizer(t.Context(), optim.New(1)), xla.ErrBusy)
		return nil
	})}
	_, err = m.Fit(t.Context(), set, fit)
	require.NoError(t, err)
	require.ErrorContains(t, m.SetOptimizer(t.Context(), nil), "flaxlike: set the optimizer: the optimizer is nil")
}
